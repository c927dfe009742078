"""Power fails while several logs have ends that are not synced, and each keeps as much of its own as it happens to.

A ledger that names offsets of another log must not believe that the two lose their ends together. Whoever was not
answered sends again, as producers do; others send something new to the offsets that were lost.
"""

from collections import Counter
from collections.abc import Callable
from itertools import islice

import pytest

from goqueue.machines.transactions.commands import InitProducer
from tests.layers import in_layers
from tests.sim.crashes import images_by_file
from tests.sim.lives import (
    LATE_MS,
    SOON_MS,
    Life,
    Sender,
    counted,
    delayed,
    ledger,
    new_node,
    pass_ms,
    start,
    start_hastily,
)
from tests.unit.broker.queue_node import QueueNode


def schedules_then_syncs(durability: str) -> Life:
    """Two senders; the delays are synced before the log of their topic, and one is due before that."""
    node = new_node(durability=durability)
    life = Life(node, node.disk.op_count)
    life.senders = [
        Sender(7, ((b"a", []), (b"A", delayed(LATE_MS)))),
        Sender(8, ((b"B", delayed(SOON_MS)),)),
        Sender(9, ((b"D", delayed(LATE_MS)), (b"E", delayed(LATE_MS)))),
    ]
    for sender in life.senders[:2]:
        sender.send(node)
    for _ in range(3):  # each time what the one before has caused
        ledger(node, "delays").sync()
        node.clock.advance(SOON_MS)
    life.senders[2].send(node)
    node.clock.run()
    node.commit()
    pass_ms(node, 100)
    return life


REPEATS: dict[str, Callable[[QueueNode, list[Sender], Sender], None]] = {}


def repeats(call: Callable[[QueueNode, list[Sender], Sender], None]) -> None:
    REPEATS[call.__name__] = call


@repeats
def something_new_first(node: QueueNode, unanswered: list[Sender], new: Sender) -> None:
    for sender in (new, *unanswered):
        sender.send_until_acked(node)


@repeats
def repeated_first(node: QueueNode, unanswered: list[Sender], new: Sender) -> None:
    for sender in (*unanswered, new):
        sender.send_until_acked(node)


@repeats
def repeated_twice(node: QueueNode, unanswered: list[Sender], new: Sender) -> None:
    for sender in (*unanswered, new, *unanswered):
        sender.send_until_acked(node)


@repeats
def never_repeated(node: QueueNode, unanswered: list[Sender], new: Sender) -> None:
    del unanswered[:]
    new.send_until_acked(node)


@pytest.mark.parametrize("how", in_layers(list(REPEATS), first=2))
def test_every_acknowledged_delayed_record_fires_once_whatever_each_log_kept(how: str) -> None:
    life = schedules_then_syncs("disk")
    now_ms = life.node.clock.now_ms()
    for upto, label, image in life.crashes():
        node = start(image, now_ms)
        unanswered = [sender for sender in life.senders if sender.acked_at > upto]
        answered = [sender for sender in life.senders if sender.acked_at <= upto]
        acked_at = [sender.acked_at for sender in life.senders]
        new = Sender(10, ((b"N", delayed(LATE_MS)), (b"n", []), (b"M", delayed(SOON_MS))))
        REPEATS[how](node, unanswered, new)
        pass_ms(node, 3 * LATE_MS)
        found = counted(node)
        wanted = {value for sender in (*answered, *unanswered, new) for value in sender.values}
        assert {value for value in found if found[value] != 1} == set(), (label, found)
        assert wanted <= found.keys(), (label, found)
        assert node.broker.schedules.measure().pending == 0, label
        for sender, at in zip(life.senders, acked_at):
            sender.acked_at = at


@pytest.mark.second_layer
def test_what_a_start_found_lost_stays_lost_when_the_power_fails_again() -> None:
    """The node has noted which places are gone, and may lose that note while the places are taken anew."""
    life = schedules_then_syncs("disk")
    now_ms = life.node.clock.now_ms()
    seen = 0
    for upto, label, image in islice(life.crashes(), 0, None, 5):
        unanswered = [sender for sender in life.senders if sender.acked_at > upto]
        if not unanswered:
            continue
        node = start_hastily(image, now_ms)
        since = image.op_count
        new = Sender(10, ((b"N", delayed(LATE_MS)), (b"n", []), (b"M", delayed(LATE_MS))))
        new.send(node)
        ledger(node, "orders/0").sync()
        node.is_hasty = False
        node.commit()
        for again in range(since, image.op_count + 1, 2):
            for second, other in images_by_file(image, again):
                seen += 1
                last = start(other, now_ms)
                others = [Sender(each.producer_id, each.records) for each in (*unanswered, new)]
                newest = Sender(11, ((b"X", delayed(LATE_MS)), (b"Y", delayed(LATE_MS))))
                for sender in (newest, *others):
                    sender.send_until_acked(last)
                pass_ms(last, 3 * LATE_MS)
                wanted = {value for sender in (*life.senders, new, newest) for value in sender.values}
                assert counted(last) == Counter(wanted), (label, second)
    assert seen


def test_delays_are_published_under_a_producer_of_their_own_whatever_each_log_kept() -> None:
    """It is asked for when the first record is due, of the ledger that gives these ids to everybody."""
    node = QueueNode()
    node.create("orders")
    reply = node.ask(node.broker.transactions.submit, InitProducer("shop", 60_000))
    first = Sender(reply.producer_id, ((b"now", []), (b"A", delayed(SOON_MS))))
    first.send_until_acked(node)
    life = Life(node, node.disk.op_count)
    pass_ms(node, 200)
    for _, label, image in life.crashes():
        again = start(image, node.clock.now_ms())
        pass_ms(again, 2_000)
        first.send_until_acked(again)
        pass_ms(again, 2_000)
        assert again.values("orders") == [b"now", b"A"], label


@pytest.mark.parametrize("how", in_layers(list(REPEATS), first=2))
def test_delays_of_a_topic_that_does_not_wait_for_the_disk_go_on_after_it_lost_its_end(how: str) -> None:
    """What was acknowledged from the page cache may be lost with it; nothing that comes later may be."""
    life = schedules_then_syncs("os")
    now_ms = life.node.clock.now_ms()
    for _, label, image in life.crashes():
        node = start(image, now_ms)
        new = Sender(10, ((b"N", delayed(LATE_MS)), (b"n", []), (b"M", delayed(SOON_MS))))
        REPEATS[how](node, [Sender(each.producer_id, each.records) for each in life.senders], new)
        pass_ms(node, 3 * LATE_MS)
        found = counted(node)
        assert {value for value in found if found[value] != 1} == set(), (label, found)
        assert set(new.values) <= found.keys(), (label, found)
        assert node.broker.schedules.measure().pending == 0, label
