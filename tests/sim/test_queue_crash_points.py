"""Every point at which a crash can strike while a delayed record fires, a record is acked or a dead letter is
written."""

from collections.abc import Callable
from typing import Any

from goqueue.broker.queues.settle import Wanted
from goqueue.broker.queues.taking import ReceiveRequest
from goqueue.machines.controller_commands import SetOptions
from goqueue.machines.deliveries.commands import How, Place, Verdict
from goqueue.records.batch import split
from goqueue.records.decode import decode
from goqueue.records.messages import NewMessage
from goqueue.testing import MemoryDisk, VirtualClock
from tests.brokers import TestBroker
from tests.sim.crashes import images

DELAY_MS = 5_000
LEASE_MS = 10_000
OPTIONS = {"lease_ms": str(LEASE_MS), "attempts_max": "1"}


def send(node: TestBroker, *messages: NewMessage) -> None:
    sent: list[Any] = []
    node.broker.sender.send("orders", messages, sent.append)
    node.commit()
    assert [one.error for one in sent[0]] == [None] * len(messages)


def receive(node: TestBroker) -> list[tuple[bytes | None, str]]:
    replies: list[Any] = []
    node.broker.receiver.receive(ReceiveRequest("workers", "one", [("orders", 0)], 10), replies.append)
    node.commit()
    place, settler = Place("workers", "orders", 0), node.broker.settler
    return [
        (record.value, settler.receipt(place, record.offset, leased.lease, leased.epoch))
        for leased in replies[0]
        for record, _ in node.broker.receiver.read(leased, "workers")
    ]


def settle(node: TestBroker, *wanted: Wanted) -> None:
    answers: list[Any] = []
    node.broker.settler.settle(wanted, answers.append)
    node.commit()
    assert answers == [[Verdict.DONE] * len(wanted)]


def values(node: TestBroker, topic: str) -> list[bytes | None]:
    if topic not in node.broker.topics.image.topics:
        return []
    replica = node.broker.topics.replica(topic, 0)
    found = []
    for batch in replica.batches_from(replica.start_offset):
        if not batch.is_control:
            (again,) = split(batch.data)
            found += [record.value for record in decode(again)]
    return found


def pass_time(node: TestBroker, ms: int) -> None:
    for _ in range(20):
        node.clock.advance(ms / 20)
        node.commit()


def at_every_crash_point(
    prepare: Callable[[TestBroker], Any],
    act: Callable[[TestBroker, Any], None],
    check: Callable[[TestBroker, str], None],
) -> None:
    """`act` after `prepare`, interrupted after each of its disk operations in every way that a crash can leave the
    disk; then `check` on a node that was started again."""
    disk = MemoryDisk()
    node = TestBroker(disk, VirtualClock())
    node.create("orders", 1, **OPTIONS)
    prepared = prepare(node)
    before, now_ms = disk.op_count, node.clock.now_ms()
    act(node, prepared)
    assert disk.op_count > before
    for upto in range(before, disk.op_count + 1):
        for label, image in images(disk, upto):
            check(TestBroker(image, VirtualClock(max(now_ms, node.clock.now_ms()))), label)


def test_a_delayed_record_fires_exactly_once_wherever_the_crash_comes() -> None:
    def check(node: TestBroker, label: str) -> None:
        pass_time(node, 3_000)
        assert values(node, "orders") == [b"late", b"later"], label
        assert node.broker.schedules.measure().pending == 0, label

    at_every_crash_point(
        lambda node: send(node, NewMessage(b"late", delay_ms=DELAY_MS), NewMessage(b"later", delay_ms=DELAY_MS)),
        lambda node, _: pass_time(node, DELAY_MS + 100),
        check,
    )


def test_a_cancelled_record_stays_cancelled_or_fires_once() -> None:
    def act(node: TestBroker, _: Any) -> None:
        replies: list[Any] = []
        (found,) = node.broker.schedules.pending("orders", 0, None, 10)
        node.broker.schedules.cancel(found.schedule.key, replies.append)
        node.commit()

    def check(node: TestBroker, label: str) -> None:
        pass_time(node, DELAY_MS + 100)
        assert values(node, "orders") in ([], [b"late"]), label

    at_every_crash_point(lambda node: send(node, NewMessage(b"late", delay_ms=DELAY_MS)), act, check)


def test_a_dead_letter_is_written_wherever_the_crash_comes() -> None:
    """Twice is possible, when the crash comes between the dead letter and the settlement; not at all is not."""

    def prepare(node: TestBroker) -> str:
        send(node, NewMessage(b"poison"))
        ((_, receipt),) = receive(node)
        return receipt

    def check(node: TestBroker, label: str) -> None:
        pass_time(node, LEASE_MS + 2_000)
        again = receive(node)
        dead = values(node, "orders.dlq")
        if again:  # the rejection was not acknowledged
            assert (again[0][0], dead) == (b"poison", []), label
        else:
            assert 1 <= len(dead) <= 2, label
            assert set(dead) == {b"poison"}, label
        assert values(node, "orders") == [b"poison"], label

    at_every_crash_point(
        prepare,
        lambda node, receipt: settle(node, Wanted(receipt, How.REJECT, reason="bad")),
        check,
    )


def test_an_acked_record_never_comes_back_and_an_unacked_one_always_does() -> None:
    disk = MemoryDisk()
    node = TestBroker(disk, VirtualClock())
    node.create("orders", lease_ms=str(LEASE_MS))
    send(node, *(NewMessage(b"%d" % number) for number in range(6)))
    promised: list[tuple[int, set[bytes | None]]] = []
    acked: set[bytes | None] = set()
    leased = receive(node)
    start = disk.op_count
    for value, receipt in leased[::2]:
        settle(node, Wanted(receipt))
        acked = acked | {value}
        promised.append((disk.op_count, acked))
    for upto in range(start, disk.op_count + 1):
        known = next((done for at, done in reversed(promised) if at <= upto), set())
        for label, image in images(disk, upto):
            got = {value for value, _ in receive(TestBroker(image, VirtualClock(node.clock.now_ms())))}
            assert not got & known, label
            assert got >= {b"%d" % number for number in range(6)} - acked, label


def test_what_is_sent_again_after_a_crash_is_there_once_wherever_the_crash_came() -> None:
    """Who did not hear of an acknowledgement sends again, under the same ids."""
    wanted = (
        NewMessage(b"now", dedup_id=b"one"),
        NewMessage(b"late", dedup_id=b"two", delay_ms=DELAY_MS),
        NewMessage(b"now too", dedup_id=b"three"),
    )

    def prepare(node: TestBroker) -> None:
        node.ask(node.broker.topics.submit, SetOptions("orders", {"dedup.ms": "300000"}))

    def act(node: TestBroker, prepared: object) -> None:
        send(node, *wanted)
        pass_time(node, DELAY_MS + 100)

    def check(node: TestBroker, label: str) -> None:
        send(node, *wanted)
        pass_time(node, 2 * DELAY_MS)
        send(node, *wanted)
        pass_time(node, 2 * DELAY_MS)
        assert sorted(each or b"" for each in values(node, "orders")) == [b"late", b"now", b"now too"], label
        assert node.broker.schedules.measure().pending == 0, label

    at_every_crash_point(prepare, act, check)
