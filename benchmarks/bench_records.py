"""The batch codec: what the hot path does to a batch, and what it costs to look inside one."""

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256

from aiokafka.record._crecords import (  # type: ignore[import-untyped]
    DefaultRecordBatch,
    DefaultRecordBatchBuilder,
)
from crc32c import crc32c

from benchmarks.harness import Row, best_us, row
from goqueue.records.batch import CHECKED_FROM, HEADER, Codec, check_batch, place
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.decode import DecodedRecord, decode
from goqueue.records.rewrite import rebuild_batch, stamp_append_time

RECORDS = 1000
VALUE_BYTES = 100
NOW_MS = 1_700_000_000_000
ROUNDS = 150


def run() -> list[Row]:
    rows = make_rows()
    return [*measure_header(rows), *measure_build(rows), *measure_decode(rows), *measure_rewrite(rows)]


def make_rows() -> list[NewRecord]:
    """Values as compressible as JSON with an id in it: about two to one."""
    ids = [sha256(b"%d" % index).hexdigest().encode() for index in range(RECORDS)]
    values = [(b'{"id": "%s", "name": ""' % identity).ljust(VALUE_BYTES - 1) + b"}" for identity in ids]
    return [(NOW_MS + index, None, value, []) for index, value in enumerate(values)]


def measure_header(rows: list[NewRecord]) -> list[Row]:
    """On a batch of one record, where the checksum, taken off here, is small enough to be taken off exactly."""
    small, large = memoryview(build_batch(rows[:1])), memoryview(build_batch(rows))

    def handle() -> None:
        place(check_batch(small), 41, 7)

    handle()
    assert check_batch(small)[:3] == (41, len(small) - 12, 7)
    ours_us, raw_us, crc_us = best_us(
        ROUNDS, 500, handle, lambda: HEADER.unpack_from(small, 0), lambda: crc32c(small[CHECKED_FROM:])
    )
    large_us, copy_us = best_us(ROUNDS, 50, lambda: crc32c(large[CHECKED_FROM:]), lambda: bytes(large))
    return [
        row("check and place, less checksum", ours_us - crc_us, "us/batch", raw_us, "< 1 us; baseline: struct"),
        row("checksum", len(large) / large_us / 1000, "GB/s", len(large) / copy_us / 1000, None),
    ]


def measure_build(rows: list[NewRecord]) -> list[Row]:
    def raw() -> bytearray:
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 2**40)
        for offset, (timestamp, key, value, headers) in enumerate(rows):
            builder.append(offset, timestamp, key, value, headers)
        built: bytearray = builder.build()
        return built

    assert raw() == build_batch(rows)
    found = []
    for codec in Codec:
        check_same(rows, decode(check_batch(memoryview(build_batch(rows, codec=codec)))))
        found.append(compare(f"build, {codec.name.lower()}", partial(build_batch, rows, codec=codec), raw, codec))
    return found


def measure_decode(rows: list[NewRecord]) -> list[Row]:
    plain = bytes(build_batch(rows))

    def raw() -> list[DecodedRecord]:
        return list(DefaultRecordBatch(plain))

    check_same(rows, raw())
    found = []
    for codec in Codec:
        batch = check_batch(memoryview(build_batch(rows, codec=codec)))
        check_same(rows, decode(batch))
        found.append(compare(f"decode, {codec.name.lower()}", partial(decode, batch), raw, codec))
    return found


def measure_rewrite(rows: list[NewRecord]) -> list[Row]:
    batch = check_batch(memoryview(build_batch(rows)))
    records = decode(batch)
    check_same(rows, decode(check_batch(memoryview(rebuild_batch(batch, records)))))
    rebuild_us, build_us = best_us(ROUNDS, 1, lambda: rebuild_batch(batch, records), lambda: build_batch(rows))
    stamped = stamp_append_time(batch, NOW_MS + 5)
    assert stamped.is_append_time
    assert stamped == check_batch(batch.data)
    stamp_us, crc_us = best_us(
        ROUNDS, 50, lambda: stamp_append_time(batch, NOW_MS + 5), lambda: crc32c(batch.data[CHECKED_FROM:])
    )
    return [
        row("rebuild after compaction", per_second(rebuild_us), "records/s", per_second(build_us), None),
        row("stamp append time", stamp_us, "us/batch", crc_us, None),
    ]


def compare(name: str, ours: Callable[[], object], raw: Callable[[], object], codec: Codec) -> Row:
    """Against aiokafka's bare codec on the same records, uncompressed and unchecked."""
    ours_us, raw_us = best_us(ROUNDS, 1, ours, raw)
    aim = ">= 3 M/s; baseline: bare aiokafka" if codec is Codec.NONE else None
    return row(name, per_second(ours_us), "records/s", per_second(raw_us), aim)


def check_same(rows: Sequence[NewRecord], records: Sequence[DecodedRecord]) -> None:
    """A benchmark of something that failed measures nothing."""
    assert len(records) == RECORDS
    assert {len(record.value or b"") for record in records} == {VALUE_BYTES}
    assert [(record.timestamp, record.key, record.value, record.headers) for record in records] == list(rows)


def per_second(batch_us: float) -> float:
    return RECORDS * 1e6 / batch_us
