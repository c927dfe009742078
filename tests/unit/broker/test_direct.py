"""Leases and acknowledgements that go the short way: stored once a turn, told after that, and taken back if they cannot
be stored.
"""

import errno
from typing import Any, Literal

import pytest

from goqueue.broker.queues.settle import Wanted
from goqueue.machines.deliveries.commands import How, Place, Settle, Settlement, Verdict
from goqueue.model.errors import DiskFull, GoQueueError
from goqueue.records.batch import Batch
from goqueue.replica.replica import Appended, Replica
from goqueue.runtime.company import LINGER_MS
from goqueue.telemetry.journeys import Step
from tests.unit.broker.queue_node import QueueNode, queue_node

PLACE = Place("workers", "orders", 0)
LEASE_MS = 30_000


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def ledger_end(node: QueueNode) -> int:
    """How many batches were written."""
    ledgers = [each for each in node.replicas.ledgers if each.name.startswith("@deliveries")]
    return sum(each.appended_batches for each in ledgers)


def test_all_acks_of_one_turn_are_one_batch_in_the_ledger() -> None:
    node = queue_node()
    node.put("orders", *numbered(20))
    held = node.receive(most=20)
    before = ledger_end(node)
    answers: list[Any] = []
    for one in reversed(held):
        node.broker.settler.settle([Wanted(one.receipt)], answers.append)
    assert answers == []
    node.commit()
    assert answers == [[Verdict.DONE]] * 20
    assert ledger_end(node) == before + 1
    after = node.restarted("power")
    assert after.received() == []
    assert after.broker.queues.measure(PLACE).start_offset == 20


def test_acks_out_of_order_are_still_known_after_a_loss_of_power() -> None:
    node = queue_node()
    node.put("orders", *numbered(300))
    held = node.receive(most=300)
    for one in held[1::2]:
        node.ack(one)
    after = node.restarted("power")
    assert after.received(most=300) == numbered(300)[::2]


def test_nobody_is_told_of_an_ack_before_it_is_durable() -> None:
    node = queue_node()
    node.put("orders", *numbered(3))
    held = node.receive(most=3)
    answers: list[Any] = []
    confirmed: list[GoQueueError | None] = []
    node.broker.settler.settle([Wanted(held[0].receipt)], answers.append)
    coordinator = node.broker.queues.companions.at(("orders", 0))
    assert coordinator is not None
    assert not coordinator.is_durable
    coordinator.confirm(confirmed.append)
    assert (answers, confirmed) == ([], [])
    node.clock.run()  # the turn ends, and the disk has not been asked yet
    assert (answers, confirmed) == ([], [])
    node.commit()
    assert (answers, confirmed) == ([[Verdict.DONE]], [None])


def test_acks_that_come_while_the_disk_is_busy_share_the_next_sync() -> None:
    node = queue_node()
    node.put("orders", *numbered(10))
    held = node.receive(most=10)
    before = ledger_end(node)
    answers: list[Any] = []
    for one in held:
        node.broker.settler.settle([Wanted(one.receipt)], answers.append)
        node.clock.run()
    assert ledger_end(node) == before + 1
    node.commit()
    node.clock.advance(LINGER_MS)
    node.commit()
    assert answers == [[Verdict.DONE]] * 10
    assert ledger_end(node) == before + 2


class Busy:
    """Consumers that acknowledge records of one partition while its ledger is being synced."""

    def __init__(self, count: int) -> None:
        self.node = queue_node()
        self.node.put("orders", *numbered(count))
        self._held = iter(self.node.receive(most=count))
        self.told = 0

    def ack(self, count: int = 1) -> None:
        """One after the other, in turns of their own."""
        for _ in range(count):
            self.node.broker.settler.settle([Wanted(next(self._held).receipt)], self._done)
            self.node.clock.run()

    def _done(self, verdicts: Any) -> None:
        assert verdicts == [Verdict.DONE]
        self.told += 1

    def batches(self) -> int:
        return ledger_end(self.node)


def test_consumers_that_come_back_after_a_sync_share_the_next_one_with_those_who_came_meanwhile() -> None:
    busy = Busy(20)
    busy.ack(4)  # one is being synced, three wait
    busy.node.commit()
    assert busy.told == 1
    before = busy.batches()
    busy.ack()
    busy.node.commit()
    assert (busy.told, busy.batches()) == (5, before + 1)
    for turn in range(1, 3):
        busy.ack(4)
        busy.node.commit()
        assert (busy.told, busy.batches()) == (5 + 4 * turn, before + 1 + turn)


def test_nobody_waits_longer_than_a_moment_for_consumers_that_do_not_come_back() -> None:
    busy = Busy(20)
    busy.ack(2)
    busy.node.commit()
    assert busy.told == 1
    busy.node.clock.advance(LINGER_MS)
    busy.node.commit()
    assert busy.told == 2
    busy.ack(2)  # the first is synced, the second waits for it
    busy.node.commit()
    assert busy.told == 4, "after a wait in vain the next sync is not waited for"


def test_consumers_that_come_back_one_after_the_other_share_a_sync_though_it_takes_longer_than_a_moment() -> None:
    busy = Busy(20)
    busy.ack(4)  # one is being synced, three wait
    busy.node.commit()
    busy.ack()
    busy.node.commit()
    before = busy.batches()
    assert busy.told == 5
    for _ in range(3):
        busy.ack()
        busy.node.clock.advance(LINGER_MS / 2)
        busy.node.commit()
    assert busy.told == 5
    busy.ack()
    busy.node.commit()
    assert (busy.told, busy.batches()) == (9, before + 1)


def test_a_lone_consumer_never_waits_for_company() -> None:
    busy = Busy(5)
    for number in range(5):
        busy.ack()
        busy.node.commit()
        assert busy.told == number + 1


class FullDisk:
    """The ledger of deliveries finds no room, while `is_full`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        append = Replica.append

        def refusing(replica: Replica, batch: Batch, now_ms: int, epoch: int | None = None) -> Appended:
            if self.is_full and replica.name.startswith("@deliveries"):
                raise DiskFull("no room")
            return append(replica, batch, now_ms, epoch)

        monkeypatch.setattr(Replica, "append", refusing)


def acked(node: QueueNode) -> int:
    return sum(node.broker.journeys.counts[Step.ACKED].values())


@pytest.mark.parametrize("how", ["stop", "kill", "power"])
def test_an_ack_that_finds_no_room_is_taken_back_and_may_be_repeated(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(monkeypatch)
    node = queue_node()
    node.put("orders", *numbered(4))
    held = node.receive(most=4)
    measure, tally = node.broker.queues.measure(PLACE), node.broker.queues.tally()
    disk.is_full = True
    answers = node.verdicts(*(Wanted(each.receipt) for each in held[:2]))
    assert [type(each) for each in answers] == [DiskFull, DiskFull]
    assert node.broker.queues.measure(PLACE) == measure
    assert node.broker.queues.tally() == tally
    assert acked(node) == 0
    disk.is_full = False
    node.ack(*held[:3])
    assert acked(node) == 3
    assert node.restarted(how).received(most=4) == [b"3"]


@pytest.mark.parametrize("how", ["stop", "kill", "power"])
def test_an_ack_that_was_refused_and_not_repeated_is_not_remembered(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(monkeypatch)
    node = queue_node()
    node.put("orders", *numbered(2))
    held = node.receive(most=2)
    disk.is_full = True
    assert isinstance(node.verdicts(Wanted(held[0].receipt))[0], DiskFull)
    disk.is_full = False
    node.ack(held[1])
    assert node.restarted(how).received(most=2) == [b"0"]


def test_what_was_taken_back_is_delivered_again_when_its_lease_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(monkeypatch)
    node = queue_node()
    node.put("orders", b"a")
    (held,) = node.receive()
    disk.is_full = True
    assert isinstance(node.verdicts(Wanted(held.receipt))[0], DiskFull)
    disk.is_full = False
    node.pass_ms(LEASE_MS)
    assert [(each.value, each.attempt) for each in node.receive()] == [(b"a", 2)]


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_an_ack_whose_ledger_fails_is_refused_and_the_record_comes_again_after_a_restart(
    operation: Literal["write", "sync"],
) -> None:
    node = queue_node()
    node.put("orders", *numbered(2))
    held = node.receive(most=2)
    node.ack(held[0])
    node.disk.faults.add(operation, errno.EIO, prefix="logs/@deliveries")
    (answer,) = node.verdicts(Wanted(held[1].receipt))
    assert isinstance(answer, GoQueueError)
    assert node.park(consumer="other").errors or node.received(consumer="other") == []
    node.disk.faults.clear()
    assert node.restarted("power").received(most=2) == [b"1"]


def test_acks_and_other_settlements_of_one_request_are_answered_together() -> None:
    node = queue_node()
    node.put("orders", *numbered(4))
    held = node.receive(most=4)
    hows = [How.ACK, How.REJECT, How.ACK, How.ACK]
    wanted = [Wanted(each.receipt, how) for each, how in zip([held[0], held[1], held[3], held[0]], hows)]
    assert node.verdicts(*wanted) == [Verdict.DONE, Verdict.DONE, Verdict.DONE, Verdict.REPEATED]
    assert node.restarted("power").received(most=4) == [b"2"]


def test_a_consumer_that_may_hold_no_more_gets_more_as_soon_as_it_has_acked() -> None:
    node = queue_node(unacked_max="2")
    node.put("orders", *numbered(3))
    held = node.receive(most=3)
    assert [each.value for each in held] == [b"0", b"1"]
    parked = node.park(wait_ms=1000)
    assert not parked.is_over
    node.ack(held[0])
    assert parked.values == [b"2"]


def test_what_is_left_unstored_is_stored_by_a_stop() -> None:
    node = queue_node()
    node.put("orders", *numbered(2))
    held = node.receive(most=2)
    answers: list[Any] = []
    node.broker.settler.settle([Wanted(held[0].receipt)], answers.append)
    assert node.restarted("stop").received(most=2) == [b"1"]


def test_a_command_sees_what_was_acked_before_it_in_the_same_turn() -> None:
    node = queue_node()
    node.put("orders", *numbered(3))
    node.receive(most=3)
    replies: list[Any] = []
    queues = node.broker.queues
    for first, how in ((0, How.ACK), (0, How.RETRY), (1, How.RETRY)):
        queues.submit(Settle(PLACE, (Settlement(first, first, how, 0),), "one"), replies.append)
    node.commit()
    assert [each.verdicts for each in replies] == [(Verdict.DONE,), (Verdict.REPEATED,), (Verdict.DONE,)]
    assert node.received(most=3) == [b"1"]
