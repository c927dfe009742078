from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import pytest
from aiokafka.record._crecords import (  # type: ignore[import-untyped]
    DefaultRecordBatch,
    DefaultRecordBatchBuilder,
)
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, Record, RecordHeader
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from goqueue.records.batch import Codec, check_batch
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.decode import decode
from tests.unit.records.samples import (
    ALL_CODECS,
    NOW_MS,
    checked,
    expected,
    fields,
    quick,
    rows,
    some_rows,
    thorough,
)

seconds = st.integers(0, 2_000_000_000).map(lambda second: second * 1000)


@thorough
@given(
    new=rows(),
    codec=st.sampled_from(ALL_CODECS),
    base_offset=st.integers(0, 2**62),
    leader_epoch=st.integers(-1, 2**31 - 1),
    producer=st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1)),
    transactional=st.booleans(),
)
def test_what_is_built_is_decoded(
    new: list[NewRecord],
    codec: Codec,
    base_offset: int,
    leader_epoch: int,
    producer: tuple[int, int, int],
    transactional: bool,
) -> None:
    producer_id, producer_epoch, base_sequence = producer
    data = build_batch(
        new,
        codec=codec,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )
    batch = checked(data)
    assert fields(decode(batch)) == expected(new, base_offset)
    assert batch[:1] + batch[2:4] == (base_offset, leader_epoch, 2)
    assert (batch.size, batch.codec, batch.is_transactional) == (len(data), codec, transactional)
    assert (batch.is_control, batch.is_append_time, batch.is_dense) == (False, False, True)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == producer
    assert (batch.base_timestamp, batch.max_timestamp) == (new[0][0], max(row[0] for row in new))


def test_append_time_is_the_time_of_every_record() -> None:
    batch = checked(build_batch(some_rows(), append_time=NOW_MS + 77))
    assert batch.is_append_time
    assert batch.max_timestamp == NOW_MS + 77
    assert {record.timestamp for record in decode(batch)} == {NOW_MS + 77}


def test_keys_and_values_may_be_views() -> None:
    new: list[NewRecord] = [(NOW_MS, memoryview(b"key"), bytearray(b"value"), [])]
    assert fields(decode(checked(build_batch(new)))) == [(0, NOW_MS, b"key", b"value", [])]


def test_without_producer_the_header_says_so() -> None:
    batch = checked(build_batch(some_rows()))
    assert (batch.leader_epoch, batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1, -1)


GOOD: NewRecord = (NOW_MS, None, b"", [])


@pytest.mark.parametrize(
    ("new", "options"),
    [
        ([], {}),
        ([(-1, None, b"", [])], {}),
        ([GOOD, (-1, None, b"", [])], {}),
        ([(None, None, b"", [])], {}),
        ([(2**63, None, b"", [])], {}),
        ([(NOW_MS, "text", b"", [])], {}),
        ([(NOW_MS, None, 5, [])], {}),
        ([(NOW_MS, None, b"", None)], {}),
        ([(NOW_MS, None, b"", [(b"name", b"")])], {}),
        ([(NOW_MS, None, b"", [("\ud800", b"")])], {}),
        ([GOOD], {"base_offset": 2**63}),
        ([GOOD], {"leader_epoch": 2**31}),
        ([GOOD], {"append_time": 2**63}),
        ([GOOD], {"producer_id": 2**63, "producer_epoch": 0, "base_sequence": 0}),
        ([GOOD], {"producer_id": 5, "producer_epoch": 2**15, "base_sequence": 0}),
        ([GOOD], {"producer_id": 5, "producer_epoch": 0, "base_sequence": 2**31}),
        ([GOOD], {"producer_id": 5, "base_sequence": 0}),
        ([GOOD], {"producer_id": 5, "producer_epoch": 0}),
        ([GOOD], {"transactional": True}),
    ],
)
def test_mistakes_of_the_caller_are_value_errors(new: list[NewRecord], options: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        build_batch(new, **options)


@pytest.mark.parametrize("codec", ALL_CODECS)
@quick
@given(new=rows())
def test_aiokafka_reads_what_we_build(codec: Codec, new: list[NewRecord]) -> None:
    theirs = DefaultRecordBatch(bytes(build_batch(new, codec=codec, base_offset=9)))
    assert theirs.validate_crc()
    assert fields(theirs) == expected(new, 9)


@pytest.mark.parametrize("codec", ALL_CODECS)
@quick
@given(new=rows())
def test_we_read_what_aiokafka_builds(codec: Codec, new: list[NewRecord]) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, 1, 8, 2, 3, 2**40)
    for offset, row in enumerate(new):
        builder.append(offset, *row)
    batch = checked(builder.build())
    assert fields(decode(batch)) == expected(new)
    assert (batch.codec, batch.is_transactional, batch.producer_id) == (codec, True, 8)


def test_uncompressed_bytes_are_the_same_as_aiokafkas() -> None:
    builder = DefaultRecordBatchBuilder(2, 0, 1, 8, 2, 3, 2**40)
    for offset, row in enumerate(some_rows(50)):
        builder.append(offset, *row)
    ours = build_batch(some_rows(50), producer_id=8, producer_epoch=2, base_sequence=3, transactional=True)
    assert ours == builder.build()


@quick
@given(new=rows(seconds))
def test_kio_reads_what_we_build(new: list[NewRecord]) -> None:
    theirs, size = read_batch(bytes(data := build_batch(new, base_offset=9)), 0)
    assert size == len(data)
    assert [
        (
            record.offset,
            int(record.timestamp.timestamp()) * 1000,
            record.key,
            record.value,
            [((header.key or b"").decode(), header.value) for header in record.headers],
        )
        for record in theirs.records
    ] == expected(new, 9)


@quick
@given(new=rows(seconds))
def test_we_read_what_kio_writes(new: list[NewRecord]) -> None:
    records = tuple(
        Record(
            attributes=i8(0),
            timestamp=TZAwareMicros.parse(datetime.fromtimestamp(timestamp // 1000, UTC)),
            offset=i64(9 + index),
            key=None if key is None else bytes(key),
            value=None if value is None else bytes(value),
            headers=tuple(RecordHeader(key=name.encode(), value=content) for name, content in headers),
        )
        for index, (timestamp, key, value, headers) in enumerate(new)
    )
    out = BytesIO()
    write_new_batch(
        out,
        NewRecordBatch(
            producer_id=i64(8), producer_epoch=i16(2), base_sequence=i32(3), records=records, attributes=i16(0)
        ),
    )
    assert fields(decode(checked(out.getvalue()))) == expected(new, 9)


def test_copies_of_records_may_be_of_any_time() -> None:
    records: list[NewRecord] = [
        (5, b"k", b"v", [("h", b"1"), ("n", None)]),
        (-1, None, None, []),
        (-(2**63), b"", b"", []),
        (2**63 - 1, memoryview(b"k"), b"x", []),
    ]
    found = decode(check_batch(memoryview(build_batch(records, is_of_any_time=True))))
    assert [(one.timestamp, one.key, one.value, one.headers) for one in found] == [
        (time, None if key is None else bytes(key), value, headers) for time, key, value, headers in records
    ]
    with pytest.raises(ValueError, match="64 bits"):
        build_batch([(5, None, None, []), (-(2**63) - 1, None, None, [])], is_of_any_time=True)
    with pytest.raises(ValueError, match="needs a record"):
        build_batch([], is_of_any_time=True)
