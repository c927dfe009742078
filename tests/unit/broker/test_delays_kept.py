"""Delays and everything that can come between: a second sending, a transaction, a restart. Once is once."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from goqueue.machines.transactions.commands import AddPartitions, EndTransaction, InitProducer
from goqueue.model.codes import Code
from goqueue.model.refusal import Refused
from goqueue.records.build import build_batch
from goqueue.records.messages import NewMessage
from goqueue.records.native import Headers
from tests.unit.broker.queue_node import QueueNode, queue_node

TICK_MS = 10
DELAY: Headers = [("gq-delay-ms", b"5000")]
STARTS = ("stop", "kill", "power")


class Idempotent:
    """A producer that sends a batch again when it is not sure that it arrived."""

    def __init__(self, node: QueueNode, producer_id: int = 7, epoch: int = 0, transactional: bool = False) -> None:
        self.node = node
        self.producer = {"producer_id": producer_id, "producer_epoch": epoch, "transactional": transactional}
        self.sequence = 0

    def send(self, *records: tuple[bytes, Headers], again: bool = False) -> int:
        first = self.sequence - len(records) if again else self.sequence
        made = [(1000, b"key", value, headers) for value, headers in records]
        data = build_batch(made, base_sequence=first, **self.producer)  # type: ignore[arg-type]
        acknowledger, appended = self.node.broker.publisher.publish("orders", 0, memoryview(data))
        acknowledged: list[bool] = []
        acknowledger.when_reached(appended.next_offset, lambda: acknowledged.append(acknowledger.failure is None))
        self.node.commit()
        assert acknowledged == [True]
        self.sequence = first + len(records)
        return appended.base_offset


def found(node: QueueNode) -> list[tuple[int, bytes | None]]:
    return [(each.offset, each.value) for each in node.records("orders")]


def pending(node: QueueNode) -> list[tuple[int, bytes | None]]:
    waiting = node.broker.schedules.pending("orders", None, None, 100)
    return [(each.schedule.key.offset, each.body.value) for each in waiting]


# -- sent twice


def test_a_batch_sent_again_schedules_nothing_twice_and_sequences_go_on() -> None:
    node = queue_node()
    producer = Idempotent(node)
    batch: tuple[tuple[bytes, Headers], ...] = ((b"a", []), (b"B", DELAY), (b"c", []))
    assert producer.send(*batch) == 0
    assert producer.send(*batch, again=True) == 0
    assert pending(node) == [(1, b"B")]
    assert producer.send((b"d", [])) == 3
    node.pass_ms(5000 + TICK_MS)
    assert producer.send((b"d", []), again=True) == 3
    assert producer.send((b"e", [])) == 5
    assert found(node) == [(0, b"a"), (2, b"c"), (3, b"d"), (4, b"B"), (5, b"e")]


def test_a_batch_sent_again_after_its_record_fired_or_was_cancelled_changes_nothing() -> None:
    node = queue_node()
    producer = Idempotent(node)
    producer.send((b"fires", DELAY), (b"is cancelled", DELAY))
    (key,) = (each.schedule.key for each in node.broker.schedules.pending("orders", 0, None, 9) if each.schedule.key[2])
    assert node.reply(lambda done: node.broker.schedules.cancel(key, done)).code is Code.NONE
    node.pass_ms(5000 + TICK_MS)
    producer.send((b"fires", DELAY), (b"is cancelled", DELAY), again=True)
    assert pending(node) == []
    node.pass_ms(10_000)
    assert found(node) == [(2, b"fires")]


def image_without_delays(node: QueueNode, publish: Any) -> QueueNode:
    """The node after a loss of power that came when a batch was synced and its schedules were not."""
    publish()
    node.clock.run()
    node.broker.topics.replica("orders", 0).sync()
    return node.restarted("power")


@pytest.mark.parametrize("after_ms", [0, 10_000])
def test_a_batch_sent_again_after_a_crash_schedules_what_the_crash_took(after_ms: int) -> None:
    """Also when its time has come meanwhile: the log holds the batch without it, so nobody else has it."""
    node = queue_node()
    at: Headers = [("gq-deliver-at", b"%d" % (node.clock.now_ms() + 5000))]
    records = [(1000, None, b"a", []), (1000, None, b"B", at)]
    data = build_batch(records, producer_id=7, producer_epoch=0, base_sequence=0)
    node = image_without_delays(node, lambda: node.broker.publisher.publish("orders", 0, memoryview(bytearray(data))))
    assert (found(node), pending(node)) == ([(0, b"a")], [])
    node.pass_ms(after_ms)
    producer = Idempotent(node)
    producer.sequence = 2
    assert producer.send((b"a", []), (b"B", at), again=True) == 0
    assert producer.send((b"a", []), (b"B", at), again=True) == 0
    node.pass_ms(6000)
    assert found(node) == [(0, b"a"), (2, b"B")]


@pytest.mark.parametrize("after_ms", [0, 10_000])
def test_a_batch_of_which_all_was_delayed_is_not_lost_by_a_crash_either(after_ms: int) -> None:
    node = queue_node()
    at: Headers = [("gq-deliver-at", b"%d" % (node.clock.now_ms() + 5000))]
    data = build_batch(
        [(1000, None, value, at) for value in (b"A", b"B")], producer_id=7, producer_epoch=0, base_sequence=0
    )
    node = image_without_delays(node, lambda: node.broker.publisher.publish("orders", 0, memoryview(bytearray(data))))
    assert (found(node), pending(node)) == ([], [])
    node.pass_ms(after_ms)
    producer = Idempotent(node)
    producer.sequence = 2
    assert producer.send((b"A", at), (b"B", at), again=True) == 0
    node.pass_ms(6000)
    assert node.values("orders") == [b"A", b"B"]


def test_a_record_that_was_not_delayed_is_not_scheduled_when_sent_again() -> None:
    node = queue_node()
    producer = Idempotent(node)
    past: Headers = [("gq-deliver-at", b"1000")]
    producer.send((b"a", past), (b"b", []))
    producer.send((b"a", past), (b"b", []), again=True)
    node.pass_ms(1000)
    assert found(node) == [(0, b"a"), (1, b"b")]


# -- transactions


class Transaction(Idempotent):
    def __init__(self, node: QueueNode) -> None:
        reply = node.ask(node.broker.transactions.submit, InitProducer("shop", 600_000))
        self.id, self.epoch = reply.producer_id, reply.epoch
        super().__init__(node, self.id, self.epoch, transactional=True)
        self.begin()

    def begin(self) -> None:
        command = AddPartitions("shop", self.id, self.epoch, (("orders", 0),))
        assert self.node.ask(self.node.broker.transactions.submit, command).code is Code.NONE

    def end(self, commit: bool) -> None:
        command = EndTransaction("shop", self.id, self.epoch, commit)
        assert self.node.ask(self.node.broker.transactions.submit, command).code is Code.NONE


def test_what_a_transaction_scheduled_waits_for_its_commit_and_then_for_its_time() -> None:
    node = queue_node()
    transaction = Transaction(node)
    transaction.send((b"a", []), (b"B", DELAY))
    node.pass_ms(2000)
    transaction.end(commit=True)
    assert node.values("orders") == [b"a"]
    node.pass_ms(2999)
    assert node.values("orders") == [b"a"]
    node.pass_ms(1 + TICK_MS)
    assert node.received() == [b"a", b"B"]


def test_a_transaction_that_lasts_longer_than_a_delay_holds_it_back() -> None:
    node = queue_node()
    transaction = Transaction(node)
    transaction.send((b"a", []), (b"B", DELAY))
    node.pass_ms(60_000)
    assert (node.values("orders"), node.received()) == ([], [])
    transaction.end(commit=True)
    node.pass_ms(TICK_MS)
    assert node.received() == [b"a", b"B"]


def test_what_an_aborted_transaction_scheduled_never_fires() -> None:
    node = queue_node()
    transaction = Transaction(node)
    transaction.send((b"a", []), (b"B", DELAY))
    transaction.end(commit=False)
    assert pending(node) == []
    transaction.begin()
    transaction.send((b"c", []), (b"D", DELAY))
    transaction.end(commit=True)
    node.pass_ms(20_000)
    assert node.values("orders") == [b"c", b"D"]


@pytest.mark.parametrize("how", STARTS)
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_that_outlives_a_restart_still_decides_over_its_delays(how: str, commit: bool) -> None:
    node = queue_node()
    transaction = Transaction(node)
    transaction.send((b"a", []), (b"B", DELAY))
    node = transaction.node = node.restarted(how)
    node.pass_ms(10_000)
    assert node.values("orders") == []
    transaction.end(commit)
    node.pass_ms(10_000)
    assert node.values("orders") == ([b"a", b"B"] if commit else [])


# -- restarts


@pytest.mark.parametrize("how", STARTS)
def test_a_restart_changes_no_delivery_time(how: str) -> None:
    node = queue_node()
    node.put("orders", *(NewMessage(b"%d" % ms, delay_ms=ms) for ms in (1000, 5000, 10_000_000)))
    node.pass_ms(3000)
    before = node.broker.schedules.pending("orders", None, None, 10)
    node = node.restarted(how)
    after = node.broker.schedules.pending("orders", None, None, 10)
    assert [each.body for each in after] == [each.body for each in before]
    assert [(each.schedule.key, each.schedule.due_ms) for each in after] == [
        (each.schedule.key, each.schedule.due_ms) for each in before
    ]
    node.pass_ms(1999)
    assert node.values("orders") == [b"1000"]
    node.pass_ms(1 + TICK_MS)
    assert node.values("orders") == [b"1000", b"5000"]
    node.pass_ms(10_000_000)
    assert node.values("orders") == [b"1000", b"5000", b"10000000"]


def test_what_became_due_while_the_node_was_down_comes_at_once() -> None:
    node = queue_node()
    node.put("orders", NewMessage(b"late", delay_ms=5000), NewMessage(b"later", delay_ms=6000))
    node = node.restarted("kill", after_ms=3_600_000)
    node.pass_ms(TICK_MS)
    assert node.values("orders") == [b"late", b"later"]


def after_each_step(node: QueueNode, ms: int, step_ms: int) -> Iterator[QueueNode]:
    """What a kill leaves, again and again."""
    for _ in range(0, ms, step_ms):
        node.pass_ms(step_ms)
        node = node.restarted("kill")
        yield node


def test_many_restarts_lose_nothing_and_repeat_nothing() -> None:
    node = queue_node()
    values = [b"%02d" % number for number in range(20)]
    node.put("orders", *(NewMessage(value, delay_ms=100 * number) for number, value in enumerate(values, 1)))
    for restarted in after_each_step(node, 2100, 70):
        node = restarted
    assert node.values("orders") == values


def test_a_job_too_large_for_one_batch_survives_a_crash_in_its_middle() -> None:
    """Half of it is in the log, that it is done is not stored: the other half follows, the first is not repeated."""
    node = queue_node(max_message_bytes="340")
    values = [b"%02d" % number * 50 for number in range(20)]
    for value in values:
        node.put("orders", NewMessage(value, delay_ms=1000))
    node.clock.advance(1000 + TICK_MS)
    node.commit()
    assert node.values("orders") == values
    # The ledger as it was before the firing, the log as it is after it.
    ends = range(node.disk.op_count)
    for upto in ends[-12:]:
        again = QueueNode(node.disk.crashed(upto), type(node.clock)(node.clock.now_ms()))
        again.pass_ms(TICK_MS)
        assert again.values("orders") == values


# -- the disk is full, or the topic's log fails


def test_what_finds_no_room_when_it_is_due_is_tried_again() -> None:
    node = queue_node()
    node.put("orders", NewMessage(b"late" * 10, delay_ms=1000))
    replica = node.broker.topics.replica("orders", 0)
    append = replica.append
    calls: list[int] = []

    def refuse_twice(*args: Any) -> Any:
        calls.append(node.clock.now_ms())
        if len(calls) < 3:
            raise Refused(Code.KAFKA_STORAGE_ERROR, "no room")
        return append(*args)

    replica.append = refuse_twice  # type: ignore[method-assign, assignment]
    node.pass_ms(4000)
    assert node.values("orders") == [b"late" * 10]
    assert [later - earlier for earlier, later in pairwise(calls)] == [1000, 1000]
