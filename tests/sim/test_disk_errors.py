"""A disk error at every write and at every sync of a mixed load whose clients try again, then a loss of power: what was
acknowledged is there exactly once, whatever else happened.
"""

import errno
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.broker.gate import Gate
from goqueue.broker.queues.settle import Wanted
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.machines.deliveries.commands import How, Verdict
from goqueue.machines.groups import commands
from goqueue.machines.groups.commands import NO_OFFSET, OffsetToCommit
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.topic_partition import TopicPartition
from goqueue.model.transactions import Producer
from goqueue.records.messages import NewMessage
from goqueue.testing import MemoryDisk, VirtualClock
from goqueue.wire.kafka.frames import decode_response, request_frame
from goqueue.wire.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.brokers import data
from tests.unit.broker.queue_node import QueueNode
from tests.unit.doors.kafka.test_door_fuzz import Guest

VERSION = 10
TRIES = 3
TIMEOUT_MS = 10_000
DELAY_MS = 5_000
LEASE_MS = 60_000
ROUNDS = 2


class Node(QueueNode):
    """With a Kafka door."""

    def __init__(self, disk: MemoryDisk | None = None, clock: VirtualClock | None = None) -> None:
        super().__init__(disk, clock)
        self.door = KafkaDoor(Gate(self.broker))
        self._guests: dict[int, Guest] = {}

    def guest(self, producer_id: int) -> Guest:
        if producer_id not in self._guests:
            self._guests[producer_id] = Guest(self)  # type: ignore[arg-type]  # all that it asks for is a door
        return self._guests[producer_id]

    def try_to(self, submit: Callable[[Callable[[Any], None]], object]) -> Any:
        """The answer; None: there is none yet."""
        replies: list[Any] = []
        submit(replies.append)
        self.commit()
        return replies[0] if replies else None


class Stream:
    """An idempotent producer of one partition over Kafka's protocol: it sends again until it is acknowledged, and what
    comes behind is sent in the same read. It keeps its connection, where the short way of Produce is learned."""

    def __init__(self, producer_id: int, partition: int) -> None:
        self.producer_id = producer_id
        self.partition = partition
        self.values: list[bytes] = []
        self.acknowledged = 0

    def send(self, node: Node, *values: bytes, tries: int = TRIES) -> None:
        self.values += values
        for _ in range(tries):
            if self.acknowledged == len(self.values):
                return
            guest = node.guest(self.producer_id)
            guest.send(b"".join(self._frame(number) for number in range(self.acknowledged, len(self.values))))
            node.pass_ms(1)
            for reply in guest.replies():
                number, response, _ = decode_response(ProduceResponse, VERSION, reply)
                if response.responses[0].partition_responses[0].error_code == Code.NONE and number == self.acknowledged:
                    self.acknowledged += 1
            guest.transport.written.clear()

    def _frame(self, number: int) -> bytes:
        records = data(
            self.values[number], producer_id=self.producer_id, producer_epoch=0, base_sequence=number, timestamp=1
        )
        place = TopicProduceData("orders", topic_id("orders"), [PartitionProduceData(self.partition, records)])
        parts = request_frame(ProduceRequest(None, -1, 1000, [place]), VERSION, number, "c")
        return b"".join(part for part in parts if isinstance(part, bytes | memoryview))


def topic_id(topic: str) -> bytes:
    return topic.encode().ljust(16, b".")


class Load:
    """All clients of one run, and what each of them was promised."""

    def __init__(self) -> None:
        self.streams = [Stream(1000 + partition, partition) for partition in range(2)]
        self.unsent: list[NewMessage] = []
        """Of those with a dedup id, what was not acknowledged."""
        self.sent: set[bytes | None] = set()
        self.committed: list[set[bytes]] = []
        self.undecided: list[set[bytes]] = []
        self.offset = NO_OFFSET
        self.rejected: set[bytes | None] = set()

    def run(self, node: Node) -> None:
        for number in range(ROUNDS):
            for stream in self.streams:
                stream.send(node, *(b"%d-%d-%d" % (stream.partition, number, each) for each in range(3)))
            self._send(node, number)
            self._transact(node, number)
            self._commit_offset(node, number + 1)
            self._reject(node)

    def _send(self, node: Node, number: int) -> None:
        """As over HTTP, SQS and gRPC, some of it for later."""
        self.unsent += [
            NewMessage(b"now %d" % number, dedup_id=b"now %d" % number),
            NewMessage(b"late %d" % number, dedup_id=b"late %d" % number, delay_ms=DELAY_MS),
        ]
        self.send_again(node)

    def send_again(self, node: Node) -> None:
        for _ in range(TRIES):
            for message in list(self.unsent):
                answer = node.try_to(partial(node.broker.sender.send, "jobs", [message]))
                if answer is not None and answer[0].error is None:
                    self.unsent.remove(message)
                    self.sent.add(message.value)

    def _transact(self, node: Node, number: int) -> None:
        steps, values = node.broker.transaction_steps, {b"paid %d %d" % (number, each) for each in range(2)}
        reply = node.try_to(lambda done: steps.init(f"tx{number}", TIMEOUT_MS, done))
        if reply is None or isinstance(reply, GoQueueError) or reply.code is not Code.NONE:
            return
        producer = Producer(reply.producer_id, reply.epoch)
        if not isinstance(node.try_to(lambda done: steps.begin(producer, done)), str):
            return
        for partition, value in enumerate(sorted(values)):
            message = NewMessage(value, partition=partition)
            for _ in range(TRIES):
                placed = node.try_to(partial(steps.publish, producer, "orders", message, 0))
                if placed is not None and not isinstance(placed, GoQueueError):
                    break
            else:
                node.try_to(lambda done: steps.end(producer, commit=False, on_ended=done))
                return
        ended: list[Any] = []
        steps.end(producer, commit=True, on_ended=ended.append)
        node.pass_ms(1_500)
        (self.committed if ended == [None] else self.undecided).append(values)

    def _commit_offset(self, node: Node, offset: int) -> None:
        command = commands.CommitOffsets("readers", (OffsetToCommit("orders", 0, offset),))
        reply = node.try_to(lambda done: node.broker.groups.submit(command, done))
        if reply is not None and not isinstance(reply, GoQueueError) and reply.codes == (Code.NONE,):
            self.offset = offset

    def _reject(self, node: Node) -> None:
        parked = node.park("work", most=1)
        if not parked.is_over or parked.errors:
            return
        for got in parked.got:
            wanted = (Wanted(got.receipt, How.REJECT, reason="bad"),)
            verdicts = node.try_to(partial(node.broker.settler.settle, wanted))
            if verdicts == [Verdict.DONE]:
                self.rejected.add(got.value)


def node_with_topics(disk: MemoryDisk) -> Node:
    node = Node(disk)
    node.create("orders", 2)
    node.create("jobs", dedup_ms="3600000")
    node.create("work", lease_ms=str(LEASE_MS))
    node.create("work.dlq")
    node.put("work", *(b"%d" % number for number in range(ROUNDS)))
    return node


def check(load: Load, image: MemoryDisk, now_ms: int, label: str) -> None:
    node = Node(image, VirtualClock(now_ms))
    node.pass_ms(TIMEOUT_MS + 3_000)
    for stream in load.streams:
        missing = [each for each in stream.values[: stream.acknowledged] if each not in committed(node)]
        assert not missing, f"{label}: acknowledged and lost"
        stream.send(node)
        assert stream.acknowledged == len(stream.values), f"{label}: the producer cannot go on"
    load.send_again(node)
    assert not load.unsent, label
    node.pass_ms(DELAY_MS + 3_000)
    found = committed(node)
    for stream in load.streams:
        assert [each for each in found if each in set(stream.values)] == stream.values, label
    paid = {each for each in found if each.startswith(b"paid")}
    assert len(found) == sum(len(stream.values) for stream in load.streams) + len(paid), label
    for values in load.committed:
        assert values <= paid, f"{label}: a committed transaction is not whole"
    for values in load.undecided:
        assert values & paid in (set(), values), f"{label}: a transaction is torn apart"
    assert paid <= set().union(*load.committed, *load.undecided), label
    jobs = [b"late 0", b"late 1", b"now 0", b"now 1"]
    assert sorted(each or b"" for each in node.values("jobs")) == jobs, label
    fetch = commands.FetchOffsets("readers", (TopicPartition("orders", 0),), require_stable=True)
    (fetched,) = node.ask(node.broker.groups.submit, fetch).offsets
    assert fetched.offset >= load.offset, label
    assert load.rejected <= set(node.values("work.dlq")), f"{label}: a dead letter is lost"
    node.pass_ms(LEASE_MS)
    assert not load.rejected & set(node.received("work")), f"{label}: a rejected record came back"


def committed(node: Node) -> list[bytes]:
    return [value or b"" for partition in range(2) for value in node.values("orders", partition)]


def after_each_error(kind: Any, error: int, kept_bytes: int) -> Iterator[tuple[str, Load, MemoryDisk, int]]:
    """The load, once with each operation of this kind failing; and once with none, to know how many there are."""
    nth, seen = 0, 1
    while nth <= seen:
        disk = MemoryDisk()
        node = node_with_topics(disk)
        fault = disk.faults.add(kind, error, nth=nth, kept_bytes=kept_bytes)
        load = Load()
        load.run(node)
        assert fault.hits == (nth > 0)
        if not nth:
            seen = fault.seen
            assert (load.unsent, load.undecided) == ([], [])
            assert len(load.committed) == len(load.rejected) == ROUNDS
            assert all(each.acknowledged == len(each.values) for each in load.streams)
        yield f"{kind} {nth} of {seen}", load, disk, node.clock.now_ms()
        nth += 1


@pytest.mark.parametrize(
    ("kind", "error", "kept_bytes"),
    [
        pytest.param("write", errno.EIO, 0, marks=pytest.mark.second_layer),
        pytest.param("write", errno.ENOSPC, 40, marks=pytest.mark.second_layer),
        ("sync", errno.EIO, 0),
    ],
    ids=["write", "torn write", "sync"],
)
def test_what_was_acknowledged_is_there_once_whichever_operation_failed(kind: Any, error: int, kept_bytes: int) -> None:
    with capture_logs():
        for label, load, disk, now_ms in after_each_error(kind, error, kept_bytes):
            for lost in (disk.unsynced(), []):
                check(deepcopy(load), disk.crashed(lost=lost), now_ms, f"{label}, {len(lost)} operations lost")
