"""Power fails while a topic, its dead letters and the ledger of its queue groups each have an end of their own that is
not synced: no record is lost to a group, and none takes the place of another.
"""

from collections import Counter
from typing import Any

import pytest

from goqueue.broker.queues.settle import Wanted
from goqueue.machines.controller_commands import SetOptions
from goqueue.machines.deliveries.commands import How
from goqueue.machines.transactions.commands import AddPartitions, EndTransaction, InitProducer
from goqueue.model.codes import Code
from goqueue.records.build import build_batch
from goqueue.records.messages import NewMessage
from tests.layers import in_layers
from tests.sim.lives import LATE_MS, Life, Sender, delayed, ledger, new_node, pass_ms, start, start_hastily
from tests.unit.broker.queue_node import QueueNode

LEASE_MS = 10_000
LEASES = {"lease_ms": str(LEASE_MS), "attempts_max": "1"}


def taken_and_acked(node: QueueNode) -> list[bytes | None]:
    """All that a group gets, until there is no more."""
    found: list[bytes | None] = []
    while got := node.receive(most=100):
        found += [each.value for each in got]
        node.ack(*got)
    return found


def received_while_unsynced(durability: str) -> Life:
    """Two records are taken, one is acked and one rejected, before and after the log of the topic is synced."""
    node = new_node(durability=durability, **LEASES)
    assert taken_and_acked(node) == [b"first"]
    life = Life(node, node.disk.op_count)
    for value in (b"one", b"two", b"three", b"four"):
        node.publish("orders", value)
    got: list[Any] = []
    if durability == "disk":
        node.commit()
    for _ in range(2):
        two = node.receive(most=2)
        node.broker.settler.settle([Wanted(two[0].receipt)], lambda verdicts: None)
        node.broker.settler.settle([Wanted(two[1].receipt, How.REJECT, reason="bad")], lambda verdicts: None)
        node.commit()
        got += two
    assert [each.value for each in got] == [b"one", b"two", b"three", b"four"]
    pass_ms(node, 2_000)
    return life


@pytest.mark.parametrize("durability", in_layers(["disk", "os"], first=1))
def test_a_group_gets_every_record_that_comes_after_a_power_loss_whatever_each_log_kept(durability: str) -> None:
    life = received_while_unsynced(durability)
    for _, label, image in life.crashes():
        node = start(image, life.node.clock.now_ms())
        there = Counter(node.values("orders"))
        new = Sender(10, tuple((b"new %d" % number, []) for number in range(5)))
        new.send_until_acked(node)
        pass_ms(node, 2 * LEASE_MS)
        got = taken_and_acked(node)
        pass_ms(node, 2_000)
        letters = node.values("orders.dlq") if "orders.dlq" in node.broker.topics.image.topics else []
        assert sorted(each for each in got if each in new.values) == sorted(new.values), (label, got, letters)
        assert not set(letters) & set(new.values), (label, letters)
        assert set(got) | set(letters) <= {*there, *new.values, b"two", b"four"}, label
        # What was rejected is delivered again, or is a dead letter: it is not nowhere.
        assert {b"two", b"four"} & there.keys() <= {*got, *letters}, (label, got, letters)


def test_what_a_group_has_settled_stays_settled_when_the_power_fails_again() -> None:
    """A topic that does not wait for the disk lost its end, the groups noted that, and the note may be lost too."""
    life = received_while_unsynced("os")
    log = "00000000000000000000.log"
    companion = f"logs/@deliveries.{b'orders'.ljust(16, b'.').hex()}/0/{log}"
    kept = f"kept create {companion} 1 of 1, {companion} 9 of 9, logs/orders/0/{log} 0 of 4"
    lost_all = [image for _, label, image in life.crashes() if label.endswith(kept)]
    image = lost_all[-1]
    node = start_hastily(image, life.node.clock.now_ms())
    for number in range(3):
        node.publish("orders", b"new %d" % number)
    ledger(node, "orders/0").sync()
    last = start(image.crashed(lost=image.unsynced()), node.clock.now_ms())
    assert taken_and_acked(last) == [b"new 0", b"new 1", b"new 2"]


def test_what_is_sent_again_under_its_id_is_there_once_whatever_each_log_kept() -> None:
    node = new_node()
    node.ask(node.broker.topics.submit, SetOptions("orders", {"dedup.ms": "300000"}))
    life = Life(node, node.disk.op_count)
    wanted = (
        NewMessage(b"now", dedup_id=b"one"),
        NewMessage(b"late", dedup_id=b"two", delay_ms=LATE_MS),
        NewMessage(b"now too", dedup_id=b"three"),
    )
    node.put("orders", *wanted)
    pass_ms(node, LATE_MS + 100)
    for _, label, image in life.crashes():
        again = start(image, node.clock.now_ms())
        others = (NewMessage(b"other", dedup_id=b"four", delay_ms=LATE_MS), NewMessage(b"plain", delay_ms=LATE_MS))
        again.put("orders", *others)
        for _ in range(2):
            again.put("orders", *wanted)
            pass_ms(again, 2 * LATE_MS)
        found = Counter(again.values("orders"))
        assert found == Counter([b"first", b"now", b"late", b"now too", b"other", b"plain"]), label


def transactional(node: QueueNode, name: str, *records: Any) -> tuple[int, int]:
    """What a transaction has sent, and that was acknowledged; who has to commit it."""
    submit = node.broker.transactions.submit
    reply = node.ask(submit, InitProducer(name, 60_000))
    if reply.code is Code.CONCURRENT_TRANSACTIONS:  # what a crash left open is aborted first
        reply = node.ask(submit, InitProducer(name, 60_000))
    _, producer_id, epoch = reply
    assert node.ask(submit, AddPartitions(name, producer_id, epoch, (("orders", 0),))).code is Code.NONE
    batch = build_batch(
        [(1000, b"key", value, headers) for value, headers in records],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )
    node.broker.publisher.publish("orders", 0, memoryview(batch))
    return producer_id, epoch


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_transaction_with_delayed_records_is_there_as_a_whole_whatever_each_log_kept(is_commit: bool) -> None:
    node = new_node()
    life = Life(node, node.disk.op_count)
    producer = transactional(node, "shop", (b"a", []), (b"B", delayed(LATE_MS)))
    replies: list[tuple[int, Any]] = []
    node.commit()
    end = EndTransaction("shop", *producer, commit=is_commit)

    def ended(reply: Any) -> None:
        replies.append((node.disk.op_count, reply.code))

    node.broker.transactions.submit(end, ended)
    node.commit()
    pass_ms(node, 100)
    ((answered_at, code),) = replies
    assert code is Code.NONE
    outcomes = set()
    for upto, label, image in life.crashes():
        again = start(image, node.clock.now_ms())
        new = Sender(10, ((b"N", delayed(LATE_MS)),))
        new.send_until_acked(again)
        other = transactional(again, "shop", (b"c", []), (b"D", delayed(LATE_MS)))
        again.commit()
        reply = again.ask(again.broker.transactions.submit, EndTransaction("shop", *other, commit=True))
        assert reply.code is Code.NONE, label
        pass_ms(again, 3 * LATE_MS)
        found = Counter(again.values("orders"))
        assert found - Counter([b"a", b"B"]) == Counter([b"first", b"N", b"c", b"D"]), (label, found)
        outcome = found[b"a"], found[b"B"]
        assert outcome in ((1, 1), (0, 0)), (label, found)
        assert upto < answered_at or outcome == ((1, 1) if is_commit else (0, 0)), label
        outcomes.add(outcome)
        assert again.broker.schedules.measure().pending == 0, label
    assert outcomes == ({(1, 1), (0, 0)} if is_commit else {(0, 0)})
