"""What happens to records is counted exactly once, whoever does it; and their journeys tell it in order."""

from typing import Any

import pytest

from goqueue.broker.reading.wants import Limits, Want
from goqueue.machines.delays.commands import ScheduleKey
from goqueue.machines.deliveries.commands import How
from goqueue.machines.transactions.commands import EndTransaction
from goqueue.model.errors import GoQueueError
from goqueue.model.recurring import Recurring
from goqueue.records.messages import NewMessage
from goqueue.telemetry.journeys import Step
from tests.brokers import data
from tests.sim.test_transaction_crash_points import NAME, Bank
from tests.unit.broker.queue_node import QueueNode, queue_node

LEASE_MS = 30_000
TTL_MS = 5000


def counted(node: Any, topic: str = "orders", group: str | None = None) -> dict[str, int]:
    """Steps of a topic's records by name; with a group only the steps of that."""
    found: dict[str, int] = {}
    for step in Step:
        for (name, whose), count in node.broker.journeys.counts[step].items():
            if name == topic and whose == (group or ""):
                found[step.name] = count
    return found


def journey(node: QueueNode, offset: int, topic: str = "orders") -> list[tuple[str, str]]:
    return [(note.step.name, note.detail) for note in node.broker.journeys.of(topic, 0, offset)]


# -- publishing


def test_what_is_published_is_received_and_persisted_as_ranges() -> None:
    node = queue_node()
    node.put("orders", b"a", b"b", b"c")
    node.put("orders", b"d")
    assert counted(node) == {"RECEIVED": 4, "PERSISTED": 4}
    assert [(note.step, note.first, note.last) for note in node.broker.journeys.since(0)] == [
        (Step.RECEIVED, 0, 2),
        (Step.PERSISTED, 0, 2),
        (Step.RECEIVED, 3, 3),
        (Step.PERSISTED, 3, 3),
    ]


def test_persisted_is_what_nobody_waits_for_too() -> None:
    node = queue_node()
    node.publish("orders", b"a", b"b")
    node.clock.run()
    assert counted(node) == {"RECEIVED": 2}
    node.commit()
    assert counted(node) == {"RECEIVED": 2, "PERSISTED": 2}


def test_what_comes_in_one_turn_is_one_range() -> None:
    node = queue_node(partitions=2, durability="os")
    for partition in (0, 1, 0, 0, 1):
        node.publish("orders", b"a", b"b", partition=partition)
    node.clock.run()
    assert counted(node) == {"RECEIVED": 10, "PERSISTED": 10}
    notes = node.broker.journeys.since(0)
    assert sorted((note.step, note.partition, note.first, note.last) for note in notes) == [
        (Step.RECEIVED, 0, 0, 5),
        (Step.RECEIVED, 1, 0, 3),
        (Step.PERSISTED, 0, 0, 5),
        (Step.PERSISTED, 1, 0, 3),
    ]


def test_with_durability_os_it_is_persisted_without_a_sync() -> None:
    node = queue_node(durability="os")
    node.publish("orders", b"a")
    node.clock.run()
    assert counted(node) == {"RECEIVED": 1, "PERSISTED": 1}


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_after_a_restart_only_what_is_new_is_counted(how: str) -> None:
    node = queue_node()
    node.put("orders", b"a", NewMessage(b"later", delay_ms=1000))
    node.settle(node.receive(), How.REJECT)
    node = node.restarted(how)
    assert counted(node) == counted(node, group="workers") == {}
    node.put("orders", b"b")
    assert counted(node) == {"RECEIVED": 1, "PERSISTED": 1}


def test_what_an_idempotent_producer_repeats_is_counted_once() -> None:
    node = queue_node()
    for _ in range(3):
        assert node.publish("orders", b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0) == 0
    node.commit()
    assert counted(node) == {"RECEIVED": 2, "PERSISTED": 2}


def test_records_of_an_id_that_came_before_are_not_counted_again() -> None:
    node = queue_node(dedup_ms="60000")
    for ids in ((b"1", b"2"), (b"2", b"3", b"1", b"4"), (b"1", b"2")):
        node.put("orders", *(NewMessage(b"x", dedup_id=one) for one in ids))
    assert len(node.values("orders")) == 4
    assert counted(node)["RECEIVED"] == 4


def test_markers_of_transactions_are_no_messages() -> None:
    bank = Bank()
    bank.create("orders", 2)
    bank.ask(bank.broker.transactions.submit, EndTransaction(NAME, *bank.begin(), commit=True))
    bank.publish("orders", b"behind the marker")
    bank.commit()
    assert bank.broker.topics.replica("orders", 0).end_offset == 3
    counts = counted(bank)
    assert counts["RECEIVED"] == counts["PERSISTED"] == 3  # one in each partition, and one behind


def test_what_is_turned_away_is_counted_once_however_it_was_tried() -> None:
    node = queue_node(max_message_bytes="1000")
    sent = node.send("orders", b"a", b"x" * 2000, b"b", b"y" * 2000)
    assert [each.error is None for each in sent] == [True, False, True, False]
    assert counted(node) == {"RECEIVED": 2, "PERSISTED": 2, "REFUSED": 2}
    refused = [note for note in node.broker.journeys.since(0) if note.step is Step.REFUSED]
    assert [(note.first, note.last) for note in refused] == [(-1, -1), (-1, -1)]
    assert "at most" in refused[0].detail


def test_a_refused_batch_is_counted_by_its_records() -> None:
    node = queue_node()
    with pytest.raises(GoQueueError):
        node.publish("orders", b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=5, transactional=True)
    with pytest.raises(GoQueueError):
        node.broker.publisher.publish("orders", 0, data(b"a", b"b")[:-1])
    assert counted(node) == {"REFUSED": 3}


def test_topics_that_nobody_made_are_not_counted_by_name() -> None:
    node = queue_node()
    for number in range(3):
        node.send(f"nowhere-{number}", b"a", b"b")
    with pytest.raises(GoQueueError):
        node.publish("orders", b"a", partition=9)
    assert node.broker.journeys.counts[Step.REFUSED] == {("", ""): 7}
    details = [note.detail for note in node.broker.journeys.since(0)]
    assert details[0] == "nowhere-0: there is no topic 'nowhere-0'"


def test_counters_go_with_their_topic_and_their_group() -> None:
    node = queue_node()
    node.create("bills")
    node.put("orders", b"a")
    node.put("bills", b"a")
    node.ack(*node.receive())
    node.receive("bills")
    node.delete("orders")
    assert counted(node) == counted(node, group="workers") == {}
    assert counted(node, "bills", "workers") == {"LEASED": 1}
    node.reply(lambda done: node.broker.queues.drop("workers", None, done))
    assert counted(node, "bills", "workers") == {}
    assert counted(node, "bills") == {"RECEIVED": 1, "PERSISTED": 1}


# -- delays


def test_a_delayed_record_is_scheduled_due_and_known_by_both_its_places() -> None:
    node = queue_node()
    node.put("orders", b"now", NewMessage(b"late", delay_ms=1000), NewMessage(b"later", delay_ms=1000), b"too")
    assert counted(node) == {"RECEIVED": 4, "PERSISTED": 4, "SCHEDULED": 2}
    due_ms = node.clock.now_ms() + 1000
    assert ("SCHEDULED", str(due_ms)) in journey(node, 2)
    node.pass_ms(2000)
    assert counted(node) == {"RECEIVED": 4, "PERSISTED": 6, "SCHEDULED": 2, "DUE": 2}
    (due,) = [note for note in node.broker.journeys.since(0) if note.step is Step.DUE]
    assert (due.first, due.last, due.detail) == (1, 2, "4")
    assert node.values("orders") == [b"now", b"too", b"late", b"later"]


def test_cancelled_and_moved_schedules() -> None:
    node = queue_node()
    node.put("orders", NewMessage(b"a", delay_ms=1000), NewMessage(b"b", delay_ms=1000))
    node.reply(lambda done: node.broker.schedules.cancel(ScheduleKey("orders", 0, 0), done))
    node.reply(lambda done: node.broker.schedules.reschedule(ScheduleKey("orders", 0, 1), 99_000, done))
    node.pass_ms(100_000)
    assert [step for step, _ in journey(node, 0)] == ["RECEIVED", "SCHEDULED", "PERSISTED", "CANCELLED"]
    assert [each for each in journey(node, 1) if each[0] == "SCHEDULED"][-1] == ("SCHEDULED", "99000")
    assert counted(node) == {"RECEIVED": 2, "PERSISTED": 3, "SCHEDULED": 3, "CANCELLED": 1, "DUE": 1}


@pytest.mark.parametrize("how", ["stop", "kill", "power"])
def test_what_was_due_before_a_restart_is_counted_by_who_published_it(how: str) -> None:
    node = queue_node()
    node.put("orders", NewMessage(b"a", delay_ms=1000))
    node = node.restarted(how, after_ms=5000)
    node.pass_ms(2000)
    assert node.values("orders") == [b"a"]
    assert counted(node) == {"PERSISTED": 1, "DUE": 1}


def test_a_recurring_message_is_received_like_any_other() -> None:
    node = queue_node()
    wanted = Recurring("tick", "orders", "* * * * *", b"t")
    node.reply(lambda done: node.broker.recurring.store(wanted, done))
    node.pass_ms(180_000)
    count = len(node.values("orders"))
    assert count == 3
    assert counted(node) == {"RECEIVED": count, "PERSISTED": count}


# -- stream reads


def fetch(node: QueueNode, offset: int, wait_ms: int = 0) -> list[Any]:
    replies: list[Any] = []
    limits = Limits(1, 1_000_000, wait_ms, consumer="reader-1")
    node.broker.fetcher.fetch([Want("orders", 0, offset, 1_000_000)], limits, replies.append)
    return replies


def test_a_fetch_is_noted_from_where_it_was_asked_when_it_is_answered() -> None:
    node = queue_node()
    node.put("orders", b"a", b"b", b"c")
    fetch(node, 1)
    assert counted(node)["FETCHED"] == 2
    replies = fetch(node, 3, wait_ms=1000)
    assert counted(node)["FETCHED"] == 2
    node.put("orders", b"d")
    assert replies
    assert counted(node)["FETCHED"] == 3
    fetched = [note for note in node.broker.journeys.since(0) if note.step is Step.FETCHED]
    assert [(note.first, note.last, note.consumer) for note in fetched] == [(1, 2, "reader-1"), (3, 3, "reader-1")]
    fetch(node, 4, wait_ms=1000)
    node.pass_ms(2000)
    assert counted(node)["FETCHED"] == 3
