"""What one partition has to get: sequences are kept as long as a batch may be stored, and never otherwise."""

import asyncio

from goqueue.client.batches import SEQUENCE_MASK, UNSENT, Batch, PartitionQueue
from goqueue.client.errors import ClientError
from goqueue.client.message import MIXED, NORMAL
from goqueue.model.lanes import Lane
from goqueue.records.batch import Codec, check_batch
from goqueue.records.decode import decode
from goqueue.records.wishes import batch_lane
from tests.unit.testing.loops import in_loop

NOW_S = 100.0


def filled(queue: PartitionQueue, messages: int, lane: int = NORMAL) -> Batch:
    batch = Batch(queue.place, NOW_S + 60, lane)
    loop = asyncio.get_running_loop()
    for number in range(messages):
        batch.add((1000 + number, None, b"%d" % number, []), 30, lane, loop.create_future())
    queue.waiting.append(batch)
    return batch


def started() -> PartitionQueue:
    queue = PartitionQueue("orders", 0)
    queue.adopt(7, 0)
    queue.is_known = True
    return queue


@in_loop
async def test_sequences_count_records_and_wrap() -> None:
    queue = started()
    queue.next_sequence = SEQUENCE_MASK - 1
    for messages in (2, 3, 1):
        filled(queue, messages)
    assert [queue.take().sequence for _ in range(3)] == [SEQUENCE_MASK - 1, 0, 3]


@in_loop
async def test_at_most_five_batches_are_under_way() -> None:
    queue = started()
    for _ in range(7):
        filled(queue, 1)
    taken = 0
    while queue.may_send(NOW_S):
        queue.take()
        taken += 1
    assert (taken, len(queue.waiting)) == (5, 2)


@in_loop
async def test_the_first_batch_of_an_epoch_goes_alone() -> None:
    queue = PartitionQueue("orders", 0)
    queue.adopt(7, 0)
    first, second = filled(queue, 1), filled(queue, 1)
    assert queue.may_send(NOW_S)
    assert queue.take() is first
    assert not queue.may_send(NOW_S)
    queue.unanswered -= 1
    queue.finish(first)
    assert queue.may_send(NOW_S)
    assert queue.take() is second


@in_loop
async def test_what_failed_is_sent_again_first_with_its_sequence() -> None:
    queue = started()
    batches = [filled(queue, 10) for _ in range(3)]
    for _ in range(3):
        queue.take()
    queue.unanswered -= 1
    assert not queue.may_send(NOW_S), "one has failed, two are open"
    filled(queue, 10)
    queue.unanswered -= 1
    queue.finish(batches[1])
    queue.unanswered -= 1
    queue.settle()
    assert [queue.take() for _ in range(2)] == [batches[0], batches[2]]
    assert [batch.sequence for batch in batches] == [0, 10, 20]
    assert queue.take().sequence == 30


@in_loop
async def test_behind_one_that_was_turned_away_all_are_numbered_anew() -> None:
    queue = started()
    first, bad, after, later = (filled(queue, 10) for _ in range(4))
    for _ in range(3):
        queue.take()
    first.has_doubt = after.has_doubt = True
    queue.unanswered = 0
    queue.turn_away(bad)
    queue.settle()
    assert list(queue.waiting) == [first, after, later]
    assert [queue.take().sequence for _ in range(3)] == [0, 10, 20]
    assert (first.has_doubt, after.has_doubt) == (True, False)


@in_loop
async def test_one_that_may_be_stored_and_is_given_up_needs_a_new_epoch() -> None:
    queue = started()
    bad, after = filled(queue, 10), filled(queue, 10)
    queue.take(), queue.take()
    bad.has_doubt = True
    queue.unanswered = 0
    queue.turn_away(bad)
    queue.settle()
    assert queue.needs_epoch
    queue.adopt(7, 1)
    assert (queue.take(), after.sequence, queue.epoch) == (after, 0, 1)


@in_loop
async def test_halves_take_the_place_of_a_batch() -> None:
    queue = started()
    batch, after = filled(queue, 5), filled(queue, 1)
    queue.take(), queue.take()
    halves = batch.split()
    queue.turn_away(batch, *halves)
    queue.unanswered = 0
    queue.settle()
    assert list(queue.waiting) == [*halves, after]
    assert [len(half.records) for half in halves] == [2, 3]
    assert sum(half.bytes for half in halves) == batch.bytes
    assert [queue.take().sequence for _ in range(3)] == [0, 2, 5]


@in_loop
async def test_a_new_sequence_is_written_into_the_bytes() -> None:
    queue = started()
    batch = filled(queue, 3)
    queue.take()
    first = bytes(batch.encode(Codec.ZSTD, 7, 0, transactional=False))
    batch.sequence = 40
    second = check_batch(memoryview(batch.encode(Codec.ZSTD, 8, 2, transactional=False)))
    assert (second.producer_id, second.producer_epoch, second.base_sequence) == (8, 2, 40)
    before = check_batch(memoryview(first))
    assert [one.value for one in decode(second)] == [one.value for one in decode(before)] == [b"0", b"1", b"2"]


@in_loop
async def test_the_lane_of_a_batch_is_that_of_all_its_records() -> None:
    queue = started()
    high = filled(queue, 2, Lane.HIGH)
    high.sequence = 0
    assert batch_lane(check_batch(memoryview(high.encode(Codec.NONE, 7, 0, transactional=False)))) == Lane.HIGH
    mixed = filled(queue, 2, Lane.HIGH)
    mixed.add((1, None, b"", []), 30, Lane.LOW, asyncio.get_running_loop().create_future())
    mixed.sequence = 2
    assert mixed.lane == MIXED
    assert batch_lane(check_batch(memoryview(mixed.encode(Codec.NONE, 7, 0, transactional=False)))) is None


@in_loop
async def test_a_cancelled_future_keeps_its_place() -> None:
    queue = started()
    batch = filled(queue, 3)
    batch.futures[1].cancel()
    batch.succeed(50, -1)
    assert [batch.futures[n].result().offset for n in (0, 2)] == [50, 52]
    assert [batch.futures[n].result().timestamp for n in (0, 2)] == [1000, 1002]
    failed = filled(queue, 2)
    failed.futures[0].cancel()
    failed.fail(ClientError("no"))
    assert isinstance(failed.futures[1].exception(), ClientError)
    assert failed.sequence == UNSENT
