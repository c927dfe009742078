"""What of the bytes of a Fetch a reader gets to see."""

import pytest

from goqueue.client.assigned import Assigned
from goqueue.client.reading import messages_of, visible_batches, whole_batches
from goqueue.model.errors import CorruptBatch
from goqueue.records.batch import Codec, check_batch
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.control import ControlKind, build_control
from goqueue.records.encode import sign
from goqueue.records.portions import RECORDS_MAX
from goqueue.wire.kafka.messages.fetch import AbortedTransaction


def batch_at(offset: int, *values: bytes, producer_id: int = -1) -> bytes:
    records: list[NewRecord] = [(1, None, value, []) for value in values]
    if producer_id < 0:
        return bytes(build_batch(records, base_offset=offset))
    return bytes(
        build_batch(
            records,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
    )


def marker_at(offset: int, kind: ControlKind, producer_id: int) -> bytes:
    data = build_control(kind, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=1)
    data[:8] = offset.to_bytes(8, "big")
    return bytes(data)


def seen(data: bytes, aborted: list[AbortedTransaction] | None) -> list[int]:
    return [batch.base_offset for batch, is_visible in visible_batches(memoryview(data), aborted) if is_visible]


def test_a_last_batch_that_is_cut_short_is_left_out() -> None:
    first, second = batch_at(0, b"a", b"b"), batch_at(2, b"c")
    whole = first + second
    for end in range(len(first), len(whole)):
        assert [batch.base_offset for batch in whole_batches(memoryview(whole[:end]))] == [0]
    assert [batch.base_offset for batch in whole_batches(memoryview(whole))] == [0, 2]


def test_damage_is_told_after_what_stands_before_it() -> None:
    data = bytearray(batch_at(0, b"a") + batch_at(1, b"b"))
    data[-1] ^= 1
    batches = whole_batches(memoryview(data))
    assert next(batches).base_offset == 0
    with pytest.raises(CorruptBatch):
        next(batches)


def test_aborted_transactions_and_marks_are_not_seen() -> None:
    data = b"".join(
        (
            batch_at(0, b"plain"),
            batch_at(1, b"aborted", producer_id=7),
            batch_at(2, b"committed", producer_id=8),
            batch_at(3, b"aborted too", producer_id=7),
            marker_at(4, ControlKind.ABORT, 7),
            marker_at(5, ControlKind.COMMIT, 8),
            batch_at(6, b"the next one of 7", producer_id=7),
            marker_at(7, ControlKind.COMMIT, 7),
        )
    )
    aborted = [AbortedTransaction(7, 1)]
    assert seen(data, aborted) == [0, 2, 6]
    assert seen(data, None) == [0, 1, 2, 3, 6]
    assert [batch.base_offset for batch, _ in visible_batches(memoryview(data), aborted)] == list(range(8))


def test_messages_before_the_position_are_left_out() -> None:
    data = bytearray(batch_at(10, b"a", b"b", b"c"))
    sign(memoryview(data))
    state = Assigned(("orders", 1), 11)
    (messages,) = messages_of(state, check_batch(memoryview(data)))
    assert [(one.topic, one.partition, one.offset, one.value) for one in messages] == [
        ("orders", 1, 11, b"b"),
        ("orders", 1, 12, b"c"),
    ]


def test_a_lane_that_only_the_batch_names_is_the_priority_of_its_messages() -> None:
    records: list[NewRecord] = [(1, None, b"a", []), (1, None, b"b", [("gq-priority", b"low"), ("x", b"1")])]
    said = ((0, ["critical", "critical"]), (2, ["normal", "normal"]), (None, ["normal", "low"]))
    for lane, priorities in said:
        batch = check_batch(memoryview(build_batch(records, lane=lane)))
        (messages,) = messages_of(Assigned(("orders", 0), 0), batch)
        assert [each.priority for each in messages] == priorities


def test_a_large_batch_becomes_messages_a_portion_at_a_time() -> None:
    records: list[NewRecord] = [(1, None, b"%d" % number + bytes(1000), []) for number in range(8000)]
    batch = check_batch(memoryview(build_batch(records, base_offset=10, codec=Codec.ZSTD)))
    found = list(messages_of(Assigned(("orders", 1), 3000), batch))
    assert [one.offset for some in found for one in some] == list(range(3000, 8010))
    assert max(map(len, found)) <= RECORDS_MAX
