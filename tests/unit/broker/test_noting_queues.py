"""What queue groups do with records is counted exactly once, by what it was."""

import errno

import pytest
from structlog.testing import capture_logs

from goqueue.broker.queues.settle import Wanted
from goqueue.machines.deliveries.commands import How, Verdict
from goqueue.records.filters import RecordFilter
from goqueue.records.messages import NewMessage
from goqueue.records.redrives import RedriveRequest
from goqueue.records.replays import ReplayRequest, Where
from goqueue.telemetry.journeys import Step
from tests.unit.broker.queue_node import queue_node
from tests.unit.broker.test_noting import counted, journey

LEASE_MS = 30_000
TTL_MS = 5000


# -- queue reads


def test_leases_and_acks_are_ranges() -> None:
    node = queue_node()
    node.put("orders", *[b"x"] * 10)
    got = node.receive(most=6, consumer="anna")
    node.ack(*got)
    assert counted(node, group="workers") == {"LEASED": 6, "ACKED": 6}
    notes = [note for note in node.broker.journeys.since(0) if note.group == "workers"]
    assert [(note.step, note.first, note.last, note.consumer) for note in notes] == [
        (Step.LEASED, 0, 5, "anna"),
        (Step.ACKED, 0, 5, ""),
    ]
    node.verdicts(Wanted(got[0].receipt))  # again: it is settled already
    assert counted(node, group="workers") == {"LEASED": 6, "ACKED": 6}


def test_each_way_to_end_a_delivery_has_its_own_count() -> None:
    node = queue_node(retry_backoff_ms="0")
    node.put("orders", *[b"%d" % number for number in range(5)])
    acked, nacked, rejected, extended, forgotten = node.receive()
    node.ack(acked)
    node.settle([nacked], How.RETRY, reason="try later")
    node.settle([rejected], How.REJECT, reason="cannot parse")
    node.settle([extended], How.EXTEND, delay_ms=10 * LEASE_MS)
    node.pass_ms(LEASE_MS)
    assert counted(node, group="workers") == {
        "LEASED": 5,
        "ACKED": 1,
        "NACKED": 1,
        "REJECTED": 1,
        "EXTENDED": 1,
        "LEASE_ENDED": 1,
        "DEAD_LETTERED": 1,
    }
    assert journey(node, nacked.offset)[-1] == ("NACKED", "try later")
    assert journey(node, rejected.offset)[-2:] == [
        ("REJECTED", "cannot parse"),
        ("DEAD_LETTERED", "rejected: cannot parse; now orders.dlq/0/0"),
    ]
    assert journey(node, forgotten.offset)[-1] == ("LEASE_ENDED", "")
    assert len(node.receive()) == 2
    assert counted(node, group="workers")["LEASED"] == 7
    assert counted(node, "orders.dlq") == {"RECEIVED": 1, "PERSISTED": 1}


def test_a_late_ack_is_an_ack() -> None:
    node = queue_node()
    node.put("orders", b"a")
    (got,) = node.receive()
    node.pass_ms(LEASE_MS)
    node.ack(got)
    assert counted(node, group="workers") == {"LEASED": 1, "LEASE_ENDED": 1, "ACKED": 1}
    assert journey(node, 0)[-1] == ("ACKED", "late")


@pytest.mark.parametrize("how", ["stop", "kill", "power"])
def test_an_ack_after_a_restart_is_an_ack(how: str) -> None:
    node = queue_node()
    node.put("orders", b"a", b"b")
    got = node.receive()
    node = node.restarted(how)
    node.ack(got[0])
    assert counted(node, group="workers") == {"ACKED": 1}
    assert node.received() == [b"b"]
    assert counted(node, group="workers") == {"LEASED": 1, "ACKED": 1}


def test_the_last_attempt_is_counted_as_what_it_was_and_then_it_is_dead() -> None:
    node = queue_node(attempts_max="2", retry_backoff_ms="0")
    node.put("orders", b"a", b"b")
    for _ in range(2):
        (nacked, _) = node.receive()
        node.settle([nacked], How.RETRY, delay_ms=0, reason="no luck")
        node.pass_ms(LEASE_MS)
    assert counted(node, group="workers") == {"LEASED": 4, "NACKED": 2, "LEASE_ENDED": 2, "DEAD_LETTERED": 2}
    assert journey(node, 0)[-2:] == [
        ("NACKED", "no luck"),
        ("DEAD_LETTERED", "attempts: no luck; now orders.dlq/0/0"),
    ]
    assert journey(node, 1)[-1] == ("DEAD_LETTERED", "attempts; now orders.dlq/0/1")


@pytest.mark.parametrize(("fate", "letters"), [("dead-letter", 2), ("drop", 0)])
def test_expired_records_are_no_acks_whatever_becomes_of_them(fate: str, letters: int) -> None:
    node = queue_node(message_ttl_ms=str(TTL_MS), expired_messages=fate)
    node.put("orders", b"a", b"b")
    (held,) = node.receive(most=1)
    node.pass_ms(TTL_MS)
    assert counted(node, group="workers").get("EXPIRED") == 1
    node.settle([held], How.RETRY)
    node.pass_ms(1000)
    expected = {"LEASED": 1, "NACKED": 1, "EXPIRED": 2}
    assert counted(node, group="workers") == expected | ({"DEAD_LETTERED": letters} if letters else {})


def test_what_retention_takes_unsettled_is_removed_and_nothing_else() -> None:
    node = queue_node()
    node.put("orders", *[b"x"] * 6)
    node.ack(*node.receive(most=3)[1:])
    node.broker.topics.replica("orders", 0).delete_before(5)
    assert len(node.receive(most=10)) == 1
    assert counted(node, group="workers") == {"LEASED": 4, "ACKED": 2, "REMOVED": 3}


def test_what_did_not_reach_its_consumer_is_returned() -> None:
    node = queue_node()
    for _ in range(4):
        node.put("orders", b"x" * 1000)
    assert len(node.receive(bytes_max=2500)) == 2
    assert counted(node, group="workers") == {"LEASED": 4, "RETURNED": 2}


def test_a_dead_letter_that_a_full_disk_kept_back_is_counted_once() -> None:
    node = queue_node()
    node.create("orders.dlq")
    node.put("orders", b"a")
    node.disk.faults.add("allocate", errno.ENOSPC, prefix="logs/orders.dlq", forever=True)
    with capture_logs():
        node.settle(node.receive(), How.REJECT)
        node.pass_ms(3000)
        assert "DEAD_LETTERED" not in counted(node, group="workers")
        node.disk.faults.clear()
        node.pass_ms(3000)
    assert len(node.values("orders.dlq")) == 1
    assert counted(node, group="workers") == {"LEASED": 1, "REJECTED": 1, "DEAD_LETTERED": 1}


# -- again


def test_redriven_letters_say_where_they_are_now_and_are_no_acks() -> None:
    node = queue_node()
    node.put("orders", b"a", b"b", b"c")
    node.settle(node.receive(), How.REJECT)
    request = RedriveRequest("orders", filter=RecordFilter(contains=b"b"))
    node.broker.dead_letters.redrive(request, lambda report: None)
    node.pass_ms(1000)
    node.broker.dead_letters.redrive(RedriveRequest("orders"), lambda report: None)
    node.pass_ms(1000)
    assert counted(node, "orders.dlq") == {"RECEIVED": 3, "PERSISTED": 3, "REDRIVEN": 3}
    redriven = [note for note in node.broker.journeys.since(0) if note.step is Step.REDRIVEN]
    assert [(note.first, note.last, note.detail) for note in redriven] == [
        (1, 1, "orders/0/3"),
        (0, 0, "orders/0/4"),
        (2, 2, "orders/0/5"),
    ]
    assert counted(node)["RECEIVED"] == 6
    assert not any(key[1] == "gq.redrive" for counts in node.broker.journeys.counts for key in counts)


def test_replayed_is_what_will_be_delivered_again() -> None:
    node = queue_node()
    node.put("orders", *(NewMessage(b"%d" % number, b"k%d" % (number % 2)) for number in range(6)))
    node.ack(*node.receive())
    request = ReplayRequest("workers", "orders", Where("earliest"), Where("latest"), RecordFilter(key=b"k1"))
    node.reply(lambda done: node.broker.replays.replay(request, done))
    again = node.receive()
    assert [each.offset for each in again] == [1, 3, 5]
    node.ack(*again)
    assert counted(node, group="workers") == {"LEASED": 9, "ACKED": 9, "REPLAYED": 3}
    node = node.restarted("stop")
    assert counted(node, group="workers") == {}


def test_verdicts_that_change_nothing_are_not_counted() -> None:
    node = queue_node()
    node.put("orders", b"a")
    (got,) = node.receive()
    node.ack(got)
    assert node.verdicts(Wanted(got.receipt, How.REJECT)) == [Verdict.REPEATED]
    assert counted(node, group="workers") == {"LEASED": 1, "ACKED": 1}
