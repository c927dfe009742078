from operator import attrgetter

import pytest
from aiokafka.record._crecords import DefaultRecordBatch  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from goqueue.records.batch import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    TRANSACTIONAL_BIT,
    Batch,
    Codec,
)
from goqueue.records.build import build_batch
from goqueue.records.decode import PlainRecord, decode
from goqueue.records.encode import Head, assemble, encode_records
from goqueue.records.rewrite import DELETE_HORIZON_BIT, delete_horizon_ms, rebuild_batch, stamp_append_time
from tests.unit.records.samples import (
    ALL_CODECS,
    NOW_MS,
    checked,
    expected,
    fields,
    headers,
    int64,
    octets,
    quick,
    some_rows,
    thorough,
)

HORIZON_MS = NOW_MS + 86_400_000
KEPT = [
    attrgetter("base_offset", "last_offset_delta", "leader_epoch"),
    attrgetter("producer_id", "producer_epoch", "base_sequence"),
    attrgetter("is_append_time", "is_transactional", "is_control"),
]


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Any batch that a log may hold: gaps, wild times, every bit."""
    base_offset, base_timestamp = draw(st.integers(0, 2**62)), draw(int64)
    offsets = sorted(draw(st.sets(st.integers(base_offset, base_offset + 99), max_size=9)))
    records = [PlainRecord(offset, draw(int64), draw(octets), draw(octets), draw(headers)) for offset in offsets]
    bits = draw(st.sampled_from([0, APPEND_TIME_BIT, TRANSACTIONAL_BIT, CONTROL_BIT | TRANSACTIONAL_BIT]))
    horizon = draw(st.sampled_from([0, DELETE_HORIZON_BIT]))
    head = Head(
        last_offset_delta=99,
        base_timestamp=base_timestamp,
        max_timestamp=draw(int64),
        record_count=len(records),
        attributes=draw(st.sampled_from(ALL_CODECS)) | bits | horizon,
        base_offset=base_offset,
        leader_epoch=draw(st.integers(-1, 2**31 - 1)),
        producer_id=draw(int64),
        producer_epoch=draw(st.integers(-1, 2**15 - 1)),
        base_sequence=draw(st.integers(-1, 2**31 - 1)),
    )
    return checked(assemble(head, encode_records(records, base_offset, base_timestamp)))


@thorough
@given(batches(), st.sets(st.integers(0, 8)), st.none() | st.integers(0, 2**62))
def test_a_rebuilt_batch_keeps_the_chosen_records_and_all_that_identifies_it(
    batch: Batch, chosen: set[int], horizon: int | None
) -> None:
    records = [record for index, record in enumerate(decode(batch)) if index in chosen]
    rebuilt = checked(rebuild_batch(batch, records, delete_horizon_ms=horizon))

    assert fields(decode(rebuilt)) == fields(records)
    for field in KEPT:
        assert field(rebuilt) == field(batch), field
    assert rebuilt.record_count == len(records)
    assert rebuilt.codec == (batch.codec if records else Codec.NONE)
    if batch.is_append_time or not records:
        assert rebuilt.max_timestamp == batch.max_timestamp
    else:
        assert rebuilt.max_timestamp == max(record.timestamp for record in records)
    had = delete_horizon_ms(batch)
    assert delete_horizon_ms(rebuilt) == (horizon if had is None else had)


@quick
@given(batches())
def test_rebuilding_with_all_records_twice_changes_nothing_more(batch: Batch) -> None:
    once = rebuild_batch(batch, decode(batch))
    assert rebuild_batch(checked(once), decode(checked(once))) == once


def test_a_tombstone_horizon_stands_where_kafka_puts_it() -> None:
    batch = checked(build_batch(some_rows(), base_offset=10))
    data = rebuild_batch(batch, decode(batch)[1:3], delete_horizon_ms=HORIZON_MS)
    rebuilt = checked(data)
    assert delete_horizon_ms(batch) is None
    assert rebuilt.attributes == 0x40
    assert rebuilt.base_timestamp == HORIZON_MS
    assert [record.timestamp for record in decode(rebuilt)] == [NOW_MS + 1, NOW_MS + 2]
    assert rebuilt.max_timestamp == NOW_MS + 2
    theirs = DefaultRecordBatch(bytes(data))
    assert theirs.validate_crc()
    assert fields(theirs) == expected(some_rows(), 10)[1:3]


def test_a_horizon_once_set_stays() -> None:
    batch = checked(build_batch(some_rows()))
    first = checked(rebuild_batch(batch, decode(batch), delete_horizon_ms=HORIZON_MS))
    for later in (None, HORIZON_MS + 1):
        assert delete_horizon_ms(checked(rebuild_batch(first, decode(first), delete_horizon_ms=later))) == HORIZON_MS


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_an_emptied_batch_is_a_bare_header_that_clients_can_read(codec: Codec) -> None:
    batch = checked(
        build_batch(some_rows(), codec=codec, base_offset=10, producer_id=5, producer_epoch=1, base_sequence=2)
    )
    data = rebuild_batch(batch, [])
    empty = checked(data)
    assert len(data) == HEADER_BYTES
    assert (empty.base_offset, empty.last_offset, empty.record_count, empty.codec) == (10, 14, 0, Codec.NONE)
    assert (empty.producer_id, empty.base_sequence, empty.max_timestamp) == (5, 2, NOW_MS + 4)
    assert decode(empty) == []
    assert list(DefaultRecordBatch(bytes(data))) == []


def test_records_of_another_batch_are_refused() -> None:
    batch = checked(build_batch(some_rows(), base_offset=10))
    one, two = decode(batch)[:2]
    for wrong in ([two, one], [one, one], [PlainRecord(9, 0, None, None, [])], [PlainRecord(15, 0, None, None, [])]):
        with pytest.raises(ValueError, match="subset"):
            rebuild_batch(batch, wrong)


def test_a_horizon_that_does_not_fit_is_refused() -> None:
    batch = checked(build_batch(some_rows()))
    with pytest.raises(ValueError, match="bytes"):
        rebuild_batch(batch, [], delete_horizon_ms=2**63)


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_append_time_is_stamped_in_place(codec: Codec) -> None:
    data = build_batch(some_rows(), codec=codec, producer_id=5, producer_epoch=1, base_sequence=2, transactional=True)
    before = bytes(data)
    batch = checked(data)
    stamped = stamp_append_time(batch, NOW_MS + 999)
    assert stamped == checked(data)
    assert stamped.is_append_time
    assert stamped.attributes & CODEC_MASK == codec
    assert {record.timestamp for record in decode(stamped)} == {NOW_MS + 999}
    assert [row[2:] for row in fields(decode(stamped))] == [row[2:] for row in expected(some_rows())]
    assert data[:17] + data[23:35] + data[43:] == before[:17] + before[23:35] + before[43:]
    theirs = DefaultRecordBatch(bytes(data))
    assert theirs.validate_crc()
    assert {record.timestamp for record in theirs} == {NOW_MS + 999}


def test_an_append_time_that_does_not_fit_changes_nothing() -> None:
    data = build_batch(some_rows())
    before = bytes(data)
    with pytest.raises(ValueError, match="append time"):
        stamp_append_time(checked(data), 2**63)
    assert data == before
