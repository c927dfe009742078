"""A coordinator tells nobody what its ledger could still lose, handles one command at a time, and stops for good."""

import errno
from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.model.errors import BatchTooLarge, DiskFull, GoQueueError, LogPoisoned
from goqueue.runtime.deadline import RETRY_MS
from tests.unit.runtime.shelf import Drop, Get, Library, Peek, Put, WaitFor


def test_a_reply_is_given_once_its_facts_are_durable() -> None:
    library = Library()
    replies = library.submit(Put("a", 1))
    library.clock.advance(60_000)
    assert replies == []
    library.commit()
    assert replies == [1]


def test_a_reply_without_facts_waits_for_what_it_saw() -> None:
    """It may tell of a fact that is not durable yet."""
    library = Library()
    library.submit(Put("a", 1))
    replies = library.submit(Get("a"))
    library.clock.run()
    assert replies == []
    library.commit()
    assert replies == [1]
    assert library.submit(Get("a")) == [1]


def test_an_immediate_reply_waits_for_nothing() -> None:
    library = Library()
    stored = library.submit(Put("a", 1))
    assert library.submit(Peek("a")) == [1]
    assert stored == []
    library.commit()
    assert stored == [1]


def test_replies_leave_in_the_order_of_their_commands() -> None:
    library = Library()
    order: list[str] = []
    library.coordinator.submit(Put("a", 1), lambda reply: order.append("put"))
    library.committer.run_once()  # durable, but nobody has been woken yet
    library.coordinator.submit(Get("a"), lambda reply: order.append("get"))
    library.commit()
    assert order == ["put", "get"]


def test_a_command_that_waits_is_answered_by_a_later_one() -> None:
    library = Library()
    waiting = library.submit(WaitFor("a"))
    library.commit()
    assert waiting == []
    library.submit(Put("a", 7))
    assert waiting == []
    library.commit()
    assert waiting == [7]
    library.submit(Put("a", 8))
    library.commit()
    assert waiting == [7]


def test_a_command_submitted_from_within_a_reply_comes_after_those_before_it() -> None:
    library = Library()
    seen: list[Any] = []

    def then(reply: Any) -> None:
        seen.append(reply)
        library.coordinator.submit(Put("a", reply + 10), seen.append)
        library.coordinator.submit(Get("a"), seen.append)
        assert not library.coordinator._inbox or library.coordinator._busy

    library.coordinator.submit(Put("a", 1), then)
    library.coordinator.submit(Put("a", 2), seen.append)
    library.commit()
    assert seen == [1, 2, 11, 11]


def test_a_command_submitted_while_facts_are_acted_upon_is_decided_after_them() -> None:
    library = Library()
    seen: list[dict[str, int]] = []

    def act(_facts: object) -> None:
        seen.append(library.shelf.plain)
        if library.shelf.plain == {"a": 1}:
            library.coordinator.submit(Drop("a"))
            assert library.shelf.plain == {"a": 1}, "one command at a time"

    library.coordinator.after_apply = act
    library.submit(Put("a", 1))
    assert seen == [{"a": 1}, {}]


def test_a_deadline_passes_without_a_command() -> None:
    library = Library()
    now_ms = library.clock.now_ms()
    library.submit(Put("milk", 1, now_ms + 5000))
    library.submit(Put("bread", 2, now_ms + 3000))
    library.submit(Put("salt", 3))
    library.commit()
    library.clock.advance(2999)
    assert set(library.shelf.plain) == {"milk", "bread", "salt"}
    library.clock.advance(1)
    assert set(library.shelf.plain) == {"milk", "salt"}
    library.clock.advance(2000)
    assert set(library.shelf.plain) == {"salt"}
    assert library.clock.timers == 0


def test_a_deadline_that_passed_while_the_node_was_down_passes_at_once() -> None:
    library = Library()
    library.submit(Put("milk", 1, library.clock.now_ms() + 5000))
    library.commit()
    library.clock.advance(4000)
    library.coordinator.stop()
    library.clock.advance(100_000)
    again = library.again()
    assert again.shelf.plain == {"milk": 1}
    again.clock.run()
    assert again.shelf.plain == {}


def test_a_full_disk_refuses_one_command_and_the_next_one_may_succeed() -> None:
    library = Library()
    waiting = library.submit(WaitFor("a"))
    fault = library.disk.faults.add("allocate", errno.ENOSPC)
    (reply,) = library.submit(Put("a", 1))
    assert isinstance(reply, DiskFull)
    assert fault.hits == 1
    assert library.shelf.plain == {}
    replies = library.submit(Put("a", 2))
    library.commit()
    assert (replies, waiting) == ([2], [2])
    assert library.again().shelf.plain == {"a": 2}


def test_a_decision_that_is_too_large_for_one_batch_is_refused_and_the_next_one_may_succeed() -> None:
    library = Library()
    library.submit(Put("milk", 1, library.clock.now_ms() + 5000))
    (reply,) = library.submit(Put("x" * 2_000_000, 1))
    assert isinstance(reply, BatchTooLarge)
    replies = library.submit(Put("a", 2))
    library.commit()
    assert replies == [2]
    library.clock.advance(5000)
    assert library.shelf.plain == {"a": 2}, "deadlines go on too"
    assert library.again().shelf.plain == {"a": 2}


def test_a_deadline_that_met_a_full_disk_passes_when_there_is_room_again() -> None:
    library = Library()
    library.submit(Put("milk", 1, library.clock.now_ms() + 1000))
    for number in range(200):  # so that the next fact needs room
        library.submit(Put("filler", number))
    library.commit()
    fault = library.disk.faults.add("allocate", errno.ENOSPC, forever=True)
    other = library.disk.faults.add("create", errno.ENOSPC, forever=True)
    while not (replies := library.submit(Put("x" * 1000, 1))):
        pass
    assert isinstance(replies[0], DiskFull)
    library.clock.advance(10 * RETRY_MS)
    assert library.shelf.plain.get("milk") in (1, None)
    assert fault.hits + other.hits < 30, "a full disk is not asked without a pause"
    library.disk.faults.clear()
    library.clock.advance(RETRY_MS)
    assert "milk" not in library.shelf.plain


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_a_poisoned_ledger_stops_the_coordinator_and_answers_everyone_who_waits(kind: str) -> None:
    library = Library()
    library.submit(Put("milk", 1, library.clock.now_ms() + 9000))
    library.commit()
    parked = library.submit(WaitFor("a"))
    pending = library.submit(Put("b", 2))
    fault = library.disk.faults.add(kind, errno.EIO, prefix="logs/@shelf/0")  # type: ignore[arg-type]
    with capture_logs() as told:
        failed = library.submit(Put("c", 3))
        library.commit()
    assert fault.hits == 1
    for replies in (parked, pending, failed):
        assert [type(reply) for reply in replies] == [LogPoisoned]
    assert [type(reply) for reply in library.submit(Get("milk"))] == [LogPoisoned]
    assert [event["event"] for event in told].count("coordinator stopped") == 1
    assert library.clock.timers == 0
    library.coordinator.stop()
    assert library.again().shelf.plain.get("milk") == 1


def test_after_a_stop_nothing_is_written_and_a_second_stop_is_fine() -> None:
    library = Library()
    library.submit(Put("milk", 1, library.clock.now_ms() + 9000))
    library.commit()
    library.coordinator.stop()
    operations = library.disk.op_count
    library.coordinator.stop()
    assert [type(reply) for reply in library.submit(Put("a", 1))] == [GoQueueError]
    library.clock.advance(100_000)
    assert library.disk.op_count == operations
    assert library.clock.timers == 0
    assert library.again().shelf.plain == {"milk": 1}
