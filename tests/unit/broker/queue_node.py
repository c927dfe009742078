"""A node that tests of the queue side ask in plain calls: each lets happen what it causes and returns the answer."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from goqueue.broker.queues.settle import Wanted
from goqueue.broker.queues.taking import BYTES_MAX, LeasedPlace, ReceiveRequest
from goqueue.broker.reading.scan import scan
from goqueue.machines.controller_commands import DeleteTopic
from goqueue.machines.deliveries.commands import How, Place, Verdict
from goqueue.records.decode import DecodedRecord
from goqueue.records.messages import NewMessage, Sent
from goqueue.records.native import Headers
from goqueue.testing import MemoryDisk, VirtualClock
from tests.brokers import TestBroker


class Got(NamedTuple):
    """A record as a consumer got it."""

    value: bytes | None
    key: bytes | None
    headers: Headers
    partition: int
    offset: int
    attempt: int
    first_delivered_ms: int
    deadline_ms: int
    receipt: str


class Parked:
    """A receive that may wait."""

    def __init__(self, node: "QueueNode", group: str) -> None:
        self._node = node
        self._group = group
        self.replies: list[list[LeasedPlace]] = []
        self.cancel: Callable[[], None] = lambda: None

    @property
    def is_over(self) -> bool:
        return bool(self.replies)

    @property
    def got(self) -> list[Got]:
        (reply,) = self.replies
        assert [each.error for each in reply] == [None] * len(reply)
        return [one for leased in reply for one in self._node.opened(leased, self._group)]

    @property
    def values(self) -> list[bytes | None]:
        return [each.value for each in self.got]

    @property
    def errors(self) -> list[str]:
        return [str(each.error) for reply in self.replies for each in reply if each.error is not None]


class QueueNode(TestBroker):
    __test__ = False

    # -- publishing

    def send(self, topic: str, *messages: NewMessage | bytes) -> list[Sent]:
        """The answers, whatever they are."""
        made = [NewMessage(each) if isinstance(each, bytes) else each for each in messages]
        return self.reply(lambda done: self.broker.sender.send(topic, made, done))  # type: ignore[no-any-return]

    def put(self, topic: str, *messages: NewMessage | bytes) -> list[int]:
        """All of them; their offsets."""
        sent = self.send(topic, *messages)
        assert [each.error for each in sent] == [None] * len(messages)
        return [each.offset for each in sent]

    def reply(self, submit: Callable[[Callable[[Any], None]], object]) -> Any:
        """What a call of the broker tells its callback, which it must do exactly once and without time passing."""
        replies: list[Any] = []
        submit(replies.append)
        self.commit()
        (reply,) = replies
        return reply

    # -- receiving

    def park(
        self,
        topic: str = "orders",
        group: str = "workers",
        consumer: str = "one",
        *,
        most: int = 10,
        partitions: Sequence[int] | None = None,
        wait_ms: int = 0,
        lease_ms: int | None = None,
        bytes_max: int = BYTES_MAX,
        start: str = "earliest",
    ) -> Parked:
        if partitions is None:
            partitions = range(self.broker.topics.image.topics[topic].partitions)
        places = [(topic, partition) for partition in partitions]
        request = ReceiveRequest(group, consumer, places, most, bytes_max, wait_ms, lease_ms, start)
        parked = Parked(self, group)
        receiving = self.broker.receiver.receive(request, parked.replies.append)
        if receiving is not None:
            parked.cancel = receiving.cancel
        self.commit()
        return parked

    def receive(self, *args: Any, **options: Any) -> list[Got]:
        return self.park(*args, **options).got

    def received(self, *args: Any, **options: Any) -> list[bytes | None]:
        return [each.value for each in self.receive(*args, **options)]

    def opened(self, leased: LeasedPlace, group: str) -> list[Got]:
        place = Place(group, leased.topic, leased.partition)
        return [
            Got(
                record.value,
                record.key,
                record.headers,
                leased.partition,
                record.offset,
                run.attempt,
                run.first_delivered_ms,
                leased.deadline_ms,
                self.broker.settler.receipt(place, record.offset, leased.lease, leased.epoch),
            )
            for record, run in self.broker.receiver.read(leased, group)
        ]

    # -- settling

    def verdicts(self, *wanted: Wanted) -> list[Any]:
        return self.reply(lambda done: self.broker.settler.settle(wanted, done))  # type: ignore[no-any-return]

    def settle(self, got: Sequence[Got], how: How = How.ACK, delay_ms: int = -1, reason: str = "") -> None:
        wanted = [Wanted(each.receipt, how, delay_ms, reason) for each in got]
        assert self.verdicts(*wanted) == [Verdict.DONE] * len(wanted)

    def ack(self, *got: Got) -> None:
        self.settle(got)

    # -- looking

    def records(self, topic: str, partition: int = 0) -> list[DecodedRecord]:
        """As a stream reader sees them, committed ones only."""
        found: list[DecodedRecord] = []
        replica = self.broker.topics.replica(topic, partition)
        bounds = replica.start_offset, replica.high_watermark

        def take(records: list[DecodedRecord]) -> bool:
            found.extend(records)
            return True

        assert self.reply(lambda done: scan(replica, bounds, self.clock, take, done)) is None
        return found

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        return [each.value for each in self.records(topic, partition)]

    # -- life

    def pass_ms(self, ms: float) -> None:
        """Everything at its own time, and synced before time goes on."""
        self.commit()
        while (step_ms := self.clock.next_after_ms) is not None and step_ms <= ms:
            self.clock.advance(step_ms)
            ms -= step_ms
            self.commit()
        self.clock.advance(ms)
        self.commit()

    def delete(self, topic: str) -> None:
        self.ask(self.broker.topics.submit, DeleteTopic(topic))

    def restarted(self, how: str = "kill", after_ms: int = 0) -> "QueueNode":
        """The next one on the same disk: after a stop, a kill or a loss of power."""
        disk: MemoryDisk = self.disk
        if how == "stop":
            self.stop()
        elif how == "kill":
            disk.survive_as_kill()
        else:
            assert how == "power", how
            disk = disk.crashed(lost=disk.unsynced())
        return QueueNode(disk, VirtualClock(self.clock.now_ms() + after_ms))


def queue_node(topic: str = "orders", partitions: int = 1, **options: str) -> QueueNode:
    node = QueueNode()
    node.create(topic, partitions, **options)
    return node
