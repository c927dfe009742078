"""Large batches are opened some records at a time: what was not asked for is not unpacked."""

import tracemalloc
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.records.batch import Batch, Codec
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.compression import STEP_BYTES
from goqueue.records.decode import DecodedRecord
from goqueue.records.encode import Head, assemble
from goqueue.records.portions import RECORDS_MAX, find_record, portions
from goqueue.records.rewrite import rebuild_batch
from tests.unit.records.samples import (
    ALL_CODECS,
    COMPRESSED,
    MIB,
    NOW_MS,
    checked,
    expected,
    fields,
    plain_records,
    quick,
    rows,
)

STREAMED = [Codec.GZIP, Codec.LZ4, Codec.ZSTD]


def numbered(count: int, size: int = 0) -> list[NewRecord]:
    return [(NOW_MS + i, b"%d" % i, bytes(size), [("number", b"%d" % i)]) for i in range(count)]


def all_of(batch: Batch, **options: int) -> list[DecodedRecord]:
    return [record for portion in portions(batch, **options) for record in portion.records]


@pytest.mark.parametrize("codec", ALL_CODECS)
@quick
@given(some=rows(), repeat=st.integers(1, 300))
def test_portions_together_are_the_batch(codec: Codec, some: list[NewRecord], repeat: int) -> None:
    many = some * repeat
    batch = checked(build_batch(many, codec=codec))
    assert fields(all_of(batch)) == expected(many)
    assert all(len(portion.records) <= RECORDS_MAX for portion in portions(batch))


@pytest.mark.parametrize("codec", ALL_CODECS)
@pytest.mark.parametrize("size", [1, 300, 5000, STEP_BYTES + 1, 3 * STEP_BYTES])
def test_records_of_every_size_come_whole(codec: Codec, size: int) -> None:
    many = numbered(min(2000, 4 * MIB // size), size)
    assert fields(all_of(checked(build_batch(many, codec=codec)))) == expected(many)


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_records_from_an_offset_on_come_as_they_are(codec: Codec) -> None:
    many = numbered(3000, 300)
    batch = checked(build_batch(many, codec=codec))
    for start in (0, 1, 499, 500, 501, 1234, 2999):
        found = [record for record in all_of(batch, from_offset=start) if record.offset >= start]
        assert fields(found) == expected(many)[start:]
        record = find_record(batch, start)
        assert record is not None
        assert record.offset == start
    assert find_record(batch, 3000) is None


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_a_batch_with_gaps_is_read_from_an_offset_on(codec: Codec) -> None:
    whole = checked(build_batch(numbered(3000, 300), codec=codec))
    gaps = checked(rebuild_batch(whole, [record for record in all_of(whole) if record.offset % 3 == 1]))
    for start in (0, 1500, 2998):
        found = find_record(gaps, start)
        assert found is not None
        assert found.offset == next(each for each in range(start, 3000) if each % 3 == 1)
    assert find_record(gaps, 2999) is None


@pytest.mark.parametrize("codec", STREAMED)
def test_the_first_record_of_a_bomb_costs_no_more_than_a_step(codec: Codec) -> None:
    batch = checked(build_batch(numbered(16 * 1024, 1024), codec=codec))
    list(islice(portions(batch), 1))
    tracemalloc.start()
    try:
        (first,) = islice(portions(batch), 1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert first.records[0].offset == 0
    assert first.unpacked_bytes <= 2 * STEP_BYTES
    assert peak < 8 * STEP_BYTES


@pytest.mark.parametrize("codec", COMPRESSED)
def test_work_is_told_where_no_record_is_whole(codec: Codec) -> None:
    batch = checked(build_batch(numbered(1, 4 * MIB), codec=codec))
    told = list(portions(batch))
    assert sum(portion.unpacked_bytes for portion in told) == len(plain_records(batch))
    assert [len(portion.records) for portion in told if portion.records] == [1]


@pytest.mark.parametrize("codec", COMPRESSED)
def test_what_unpacks_beyond_the_limit_is_refused_when_the_limit_is_reached(codec: Codec) -> None:
    batch = checked(build_batch(numbered(4096, 1024), codec=codec))
    found: list[DecodedRecord] = []
    with pytest.raises(BatchTooLarge, match=str(2 * MIB)):
        found.extend(record for portion in portions(batch, max_bytes=2 * MIB) for record in portion.records)
    assert fields(found) == expected(numbered(4096, 1024))[: len(found)]
    assert len(found) < 2048


def test_a_batch_that_never_was_compressed_is_never_too_large() -> None:
    many = numbered(1000, 1024)
    assert fields(all_of(checked(build_batch(many)), max_bytes=1)) == expected(many)


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_records_that_are_missing_or_too_many_are_damage(codec: Codec) -> None:
    plain = plain_records(checked(build_batch(numbered(600, 10))))
    for damaged in (plain[:-1], plain + b"\0", plain[: len(plain) // 2], plain + plain):
        with pytest.raises(CorruptBatch):
            all_of(checked(assemble(Head(599, NOW_MS, NOW_MS, 600, codec), damaged)))


def test_a_record_of_a_million_headers_is_refused() -> None:
    many: list[NewRecord] = [(NOW_MS, None, None, [("", None)] * 1_000_000)]
    with pytest.raises(BatchTooLarge, match="of its records"):
        all_of(checked(build_batch(many, codec=Codec.ZSTD)))
