"""Compressed batches that become a thousand times as large: whoever reads them unpacks what it needs, in turns, and
nobody is stopped by them.
"""

import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from goqueue.broker.publishing import opening
from goqueue.broker.queues.taking import ReceiveRequest
from goqueue.broker.reading.follow import Follower
from goqueue.broker.reading.open_batches import TURN_BYTES as LEASE_BYTES
from goqueue.broker.reading.scan import TURN_BYTES, scan
from goqueue.broker.tracing.trace_index import OPENED_COST_MAX, UNPACKED_COST
from goqueue.machines.deliveries.commands import How, Place
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import BatchTooLarge, GoQueueError
from goqueue.records import portions as portions_module
from goqueue.records.batch import Codec
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.compression import STEP_BYTES, decompress_steps
from goqueue.records.decode import DecodedRecord
from goqueue.records.filters import RecordFilter
from goqueue.records.replays import ReplayRequest, Where
from goqueue.telemetry.trace_ids import TRACEPARENT, Spot
from tests.unit.broker.queue_node import Got, QueueNode, queue_node
from tests.unit.records.samples import resign

MIB = 1024 * 1024
BOMB_BYTES = 16 * MIB
PARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STREAMED = [Codec.GZIP, Codec.LZ4, Codec.ZSTD]


class Unpacked:
    """Counts what comes out of compressed batches."""

    def __init__(self) -> None:
        self.bytes = 0

    def steps(self, codec: Codec, data: memoryview, max_bytes: int) -> Iterator[bytes | memoryview]:
        for part in decompress_steps(codec, data, max_bytes):
            self.bytes += len(part) if codec is not Codec.NONE else 0
            yield part


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> Unpacked:
    counting = Unpacked()
    monkeypatch.setattr(portions_module, "decompress_steps", counting.steps)
    return counting


def publish(node: QueueNode, records: list[NewRecord], codec: Codec = Codec.ZSTD, topic: str = "orders") -> int:
    offset = node.broker.publisher.publish(topic, 0, memoryview(build_batch(records, codec=codec)))[1].base_offset
    node.commit()
    return offset


def bomb(size: int = BOMB_BYTES, key: bytes | None = None) -> list[NewRecord]:
    """One record of zeros."""
    return [(1000, key, bytes(size), [])]


def many(count: int, size: int = 1024) -> list[NewRecord]:
    return [(1000 + number, b"%d" % (number % 7), b"%d" % number + bytes(size), []) for number in range(count)]


def number_of(value: bytes | None) -> int:
    return int((value or b"").rstrip(b"\0"))


def peak_of(happen: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        happen()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# -- journeys


def test_looking_for_traces_opens_no_more_than_its_share_of_large_batches(unpacked: Unpacked) -> None:
    node = queue_node()
    for _ in range(20):
        node.broker.publisher.publish("orders", 0, memoryview(build_batch(bomb(), codec=Codec.ZSTD)))
    node.commit()
    node.broker.tracing.journal.catch_up()
    assert 0 < unpacked.bytes <= OPENED_COST_MAX // UNPACKED_COST + 2 * STEP_BYTES
    assert node.broker.tracing.index.skipped == 20


def test_a_trace_in_the_first_records_of_a_large_batch_is_found() -> None:
    node = queue_node()
    publish(node, [(1000, None, bytes(1024), [(TRACEPARENT, PARENT)]), *many(8000)])
    node.broker.tracing.journal.catch_up()
    assert node.broker.tracing.traces.journey(Spot("orders", 0, 0)).trace_id == PARENT[3:35].decode()


# -- readers


@pytest.mark.parametrize("codec", STREAMED)
def test_one_record_of_a_large_batch_is_read_without_unpacking_the_rest(codec: Codec, unpacked: Unpacked) -> None:
    node = queue_node()
    publish(node, many(4000), codec)
    replica = node.broker.topics.replica("orders", 0)
    unpacked.bytes = 0
    found: list[DecodedRecord] = []

    def take(records: list[DecodedRecord]) -> bool:
        found.extend(records)
        return not found

    node.reply(lambda done: scan(replica, (0, 4000), node.clock, take, done))
    assert number_of(found[0].value) == 0
    assert unpacked.bytes <= TURN_BYTES + 2 * STEP_BYTES


@pytest.mark.parametrize("codec", STREAMED)
def test_a_large_batch_is_scanned_in_turns(codec: Codec, unpacked: Unpacked) -> None:
    node = queue_node()
    publish(node, many(5000), codec)
    publish(node, many(3), codec)
    replica = node.broker.topics.replica("orders", 0)
    unpacked.bytes, turns = 0, [0]
    found: list[int] = []

    def take(records: list[DecodedRecord]) -> bool:
        found.extend(number_of(each.value) for each in records)
        turns.append(unpacked.bytes)
        return True

    assert node.reply(lambda done: scan(replica, (0, 9999), node.clock, take, done)) is None
    assert found == [*range(5000), 0, 1, 2]
    assert max(after - before for before, after in pairwise(turns)) <= TURN_BYTES + 2 * STEP_BYTES


def test_a_filtered_replay_over_large_batches_needs_the_memory_of_one() -> None:
    node = queue_node()
    for _ in range(8):
        publish(node, bomb())
    publish(node, [(1000, b"wanted", b"x", [])])
    node.receive(most=1)
    replies: list[Any] = []
    request = ReplayRequest(
        "workers", "orders", Where("earliest"), Where("latest"), filter=RecordFilter(key=b"wanted"), is_dry_run=True
    )

    def happen() -> None:
        node.broker.replays.replay(request, replies.append)
        node.commit()

    assert peak_of(happen) < 5 * BOMB_BYTES
    ((replayed,),) = replies
    assert replayed.partition == 0


def test_a_follower_comes_past_large_batches_with_the_memory_of_one() -> None:
    node = queue_node()
    for _ in range(6):
        publish(node, bomb())
    publish(node, [(1000, None, b"behind", [])])
    follower = Follower(node.broker.topics, node.clock, "orders", {0: 0}, RecordFilter(contains=b"behind"))
    found: list[bytes | None] = []

    def happen() -> None:
        while (piece := follower.take()) is not None:
            found.extend(record.value for record in piece.records)

    assert peak_of(happen) < 5 * BOMB_BYTES
    assert (found, follower.positions) == ([b"behind"], {0: 7})


def test_a_follower_in_the_middle_of_a_batch_knows_where_it_is() -> None:
    node = queue_node()
    publish(node, many(5000))
    follower = Follower(node.broker.topics, node.clock, "orders", {0: 100}, RecordFilter())
    found: list[int] = []
    while (piece := follower.take()) is not None:
        found += [number_of(each.value) for each in piece.records]
        assert follower.positions == {0: found[-1] + 1}
    assert found == list(range(100, 5000))


def test_what_unpacks_beyond_all_limits_is_passed_over_by_readers() -> None:
    node = queue_node()
    publish(node, [(1000, None, b"before", [])])
    publish(node, bomb(65 * MIB))
    publish(node, [(1000, None, b"behind", [])])
    assert node.values("orders") == [b"before", b"behind"]
    assert [each.value for each in node.receive(most=10)] == [b"before", b"behind"]


def test_a_record_is_found_by_its_time_without_unpacking_all_that_lies(unpacked: Unpacked) -> None:
    """Headers that promise a late record which is not there."""
    node = queue_node()
    for _ in range(6):
        data = build_batch(bomb(8 * MIB), codec=Codec.ZSTD)
        data[35:43] = (5000).to_bytes(8, "big")
        node.broker.publisher.publish("orders", 0, memoryview(resign(data)))
    publish(node, [(6000, None, b"late", [])])
    unpacked.bytes = 0
    found = node.broker.topics.replica("orders", 0).first_at_or_after(4000)
    assert found is not None
    assert found.offset == 2
    assert unpacked.bytes <= 17 * MIB
    found = node.broker.topics.replica("orders", 0).first_at_or_after(5500)
    assert found == (6, 6000)


# -- leases


def received(node: QueueNode, most: int) -> Iterator[list[Got]]:
    while got := node.receive(most=most):
        node.ack(*got)
        yield got


@pytest.mark.parametrize("codec", STREAMED)
def test_a_large_batch_is_received_some_at_a_time_and_unpacked_once(codec: Codec, unpacked: Unpacked) -> None:
    node = queue_node(unacked_max="10000")
    publish(node, many(4000), codec)
    unpacked.bytes = 0
    found = [number_of(each.value) for got in received(node, 100) for each in got]
    assert found == list(range(4000))
    assert unpacked.bytes < 5 * MIB


@pytest.mark.parametrize("codec", STREAMED)
def test_one_large_record_is_unpacked_in_turns_before_it_is_received(codec: Codec, unpacked: Unpacked) -> None:
    node = queue_node()
    publish(node, bomb(), codec)
    node.receive("orders", "other")
    unpacked.bytes, turns = 0, [0]
    replies: list[Any] = []
    request = ReceiveRequest("workers", "one", [("orders", 0)], 10, start="earliest")
    node.broker.receiver.receive(request, replies.append)
    while not replies:
        node.clock._soon.popleft()()
        node.committer.run_once()
        turns.append(unpacked.bytes)
    ((leased,),) = replies
    assert [len(record.value or b"") for record, _ in node.broker.receiver.read(leased, "workers")] == [BOMB_BYTES]
    assert unpacked.bytes < BOMB_BYTES + 2 * STEP_BYTES, "once"
    assert max(after - before for before, after in pairwise(turns)) <= LEASE_BYTES + 2 * STEP_BYTES


def test_what_was_leased_for_a_client_that_left_meanwhile_goes_to_the_next() -> None:
    node = queue_node()
    publish(node, bomb())
    replies: list[Any] = []
    request = ReceiveRequest("workers", "one", [("orders", 0)], 10, start="earliest")
    receiving = node.broker.receiver.receive(request, replies.append)
    while not receiving._is_opening:  # type: ignore[union-attr]
        node.clock._soon.popleft()()
        node.committer.run_once()
    receiving.cancel()  # type: ignore[union-attr]
    node.commit()
    assert replies == []
    assert [(len(each.value or b""), each.attempt) for each in node.receive()] == [(BOMB_BYTES, 1)]


def test_many_large_records_are_received_a_few_at_a_time() -> None:
    node = queue_node()
    for number in range(8):
        publish(node, bomb(key=b"%d" % number))
    sizes: list[int] = []

    def happen() -> None:
        sizes.extend(len(got) for got in received(node, 10))

    assert peak_of(happen) < 5 * BOMB_BYTES
    assert sizes == [1] * 8


def test_what_was_given_back_unread_has_lost_no_attempt() -> None:
    node = queue_node()
    for _ in range(3):
        publish(node, bomb(LEASE_BYTES + 1))
    assert [each.attempt for got in received(node, 10) for each in got] == [1, 1, 1]


@pytest.mark.parametrize("codec", STREAMED)
def test_records_of_a_large_batch_are_leased_by_key(codec: Codec) -> None:
    node = queue_node(lease_order="key", unacked_max="10000")
    publish(node, many(6000, 512), codec)
    first = node.receive(most=100)
    assert sorted(number_of(each.value) for each in first) == list(range(7))
    node.ack(*first)
    node.pass_ms(100)
    place = Place("workers", "orders", 0)
    found = [number_of(each.value) for got in received(node, 1000) for each in got]
    assert sorted(found) == list(range(7, 6000))
    for key in range(7):
        assert [each for each in found if each % 7 == key] == list(range(7 + key, 6000, 7))
    assert node.broker.queues.measure(place).ready == (0, 0, 0, 0, 0)


def test_a_dead_letter_that_only_fits_compressed_does_not_hold_up_the_others() -> None:
    node = queue_node(attempts_max="1")
    publish(node, bomb(4 * MIB))
    publish(node, [(1000, None, b"small", [])])
    while got := node.receive(most=1):
        node.settle(got, How.REJECT)
    node.pass_ms(5000)
    assert [len(each or b"") for each in node.values("orders.dlq")] == [4 * MIB, 5]


# -- publishing


LOOKED_INTO: dict[str, dict[str, str]] = {
    "compacted": {"cleanup_policy": "compact"},
    "validated": {"schema_validation": "reject"},
    "wishes": {"wishes": "all"},
    "deduplicated": {"dedup_ms": "60000"},
}


@pytest.mark.parametrize("options", LOOKED_INTO.values(), ids=LOOKED_INTO.keys())
@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_where_records_are_looked_at_a_batch_beyond_the_limit_is_refused(options: dict[str, str], codec: Codec) -> None:
    node = queue_node(max_unpacked_bytes="100000", **options)  # type: ignore[arg-type]
    with pytest.raises(BatchTooLarge, match=r"100000 bytes.*max\.unpacked\.bytes") as caught:
        publish(node, bomb(100_000, b"key"), codec)
    assert code_of(caught.value) is Code.MESSAGE_TOO_LARGE
    assert node.values("orders") == []


@pytest.mark.parametrize("options", [{"cleanup_policy": "compact"}, {"wishes": "all"}, {"dedup_ms": "60000"}])
def test_where_records_are_looked_at_a_batch_within_the_limit_is_taken(options: dict[str, str]) -> None:
    node = queue_node(max_unpacked_bytes="100000", **options)  # type: ignore[arg-type]
    publish(node, bomb(90_000, b"key"))
    publish(node, bomb(200_000, b"plain"), Codec.NONE)
    assert [len(each or b"") for each in node.values("orders")] == [90_000, 200_000]


def test_where_nobody_looks_a_batch_is_taken_whatever_it_unpacks_to() -> None:
    node = queue_node(max_unpacked_bytes="1000")
    publish(node, bomb(2 * MIB))
    assert [len(each or b"") for each in node.values("orders")] == [2 * MIB]


def test_a_refused_batch_leaves_its_producer_where_it_was() -> None:
    node = queue_node(max_unpacked_bytes="100000", cleanup_policy="compact")
    about: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "codec": Codec.ZSTD}
    with pytest.raises(GoQueueError):
        node.broker.publisher.publish("orders", 0, memoryview(build_batch(bomb(10**6, b"k"), base_sequence=0, **about)))
    made = memoryview(build_batch([(1000, b"k", b"small", [])], base_sequence=0, **about))
    node.broker.publisher.publish("orders", 0, made)
    node.commit()
    assert node.values("orders") == [b"small"]


def test_a_compressed_batch_of_very_many_records_is_refused_where_each_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opening, "RECORDS_MAX", 1000)
    node = queue_node()
    node.create("latest", cleanup_policy="compact")
    records: list[NewRecord] = [(1000, b"k%d" % number, b"", []) for number in range(1001)]
    for topic, codec, count in (
        ("orders", Codec.ZSTD, 1001),
        ("latest", Codec.NONE, 1001),
        ("latest", Codec.ZSTD, 1000),
    ):
        node.broker.publisher.publish(topic, 0, memoryview(build_batch(records[:count], codec=codec)))
    with pytest.raises(BatchTooLarge, match="1001 records in a compressed batch"):
        node.broker.publisher.publish("latest", 0, memoryview(build_batch(records, codec=Codec.ZSTD)))
    node.commit()
    ends = {topic: node.broker.topics.replica(topic, 0).high_watermark for topic in ("orders", "latest")}
    assert ends == {"orders": 1001, "latest": 2001}
