"""A coordinator is loaded and unloaded while the node runs: nobody waits in vain, and nobody holds up the loop."""

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.model.errors import CoordinatorLoading, GoQueueError, NotCoordinator, NotTaken
from goqueue.runtime.coordinator import INBOX_MAX, WAIT_MS_MAX, Coordinator
from goqueue.runtime.coordinators import AllCoordinators, Coordinators
from goqueue.runtime.ledger import SLICE_COST, Ledger
from goqueue.runtime.life import Life
from goqueue.telemetry.calls import call_each
from tests.unit.runtime.shelf import Get, Library, Peek, Put, Shelf, Stored, WaitFor


def filled(count: int) -> Library:
    library = Library()
    for number in range(count):
        library.submit(Put(f"{number}", number))
    library.commit()
    return library


def expected(count: int) -> dict[str, int]:
    return {f"{number}": number for number in range(count)}


class Counting(Shelf):
    """Counts what was applied since anybody looked."""

    applied = 0

    def apply(self, fact: Any) -> None:
        type(self).applied += 1
        super().apply(fact)


def turns(library: Library) -> list[int]:
    """How much each turn of the loop applied, until there is nothing more to do."""
    counts = []
    while library.clock._soon:
        Counting.applied = 0
        library.clock._soon.popleft()()
        counts.append(Counting.applied)
    return counts


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_a_load_takes_turns_with_others(has_snapshot: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    library = filled(3000)
    if has_snapshot:
        library.ledger.snapshot(library.shelf, library.clock.now_ms())
    monkeypatch.setattr(library.coordinator, "_make_machine", Counting)
    library.coordinator.unload()
    library.coordinator.load()
    assert not library.coordinator.is_active
    counts = turns(library)
    assert max(counts) <= SLICE_COST
    assert sum(counts) == 3000
    assert library.shelf.plain == expected(3000)


def test_commands_that_come_while_it_is_loaded_wait_in_their_order() -> None:
    library = filled(1000)
    library.coordinator.unload()
    library.coordinator.load()
    seen: list[Any] = []
    for command in (Put("0", 77), Get("0"), Get("1"), WaitFor("new"), Put("new", 5)):
        library.coordinator.submit(command, seen.append)
    library.clock._soon.popleft()()
    library.coordinator.submit(Get("999"), seen.append)
    assert seen == []
    library.commit()
    assert seen == [77, 77, 1, 5, 5, 999]


def test_commands_that_waited_long_enough_are_refused_and_those_behind_them_at_once() -> None:
    library = filled(10)
    aside: list[Callable[[], None]] = []

    def later(work: Callable[[], None], done: Callable[[None], None]) -> None:
        aside.append(lambda: call_each((work, lambda: done(None))))

    library.ledger._aside = later
    library.coordinator.unload()
    library.coordinator.load()
    waiting = library.submit(Get("1"))
    library.coordinator.submit(Put("1", 100))  # of ours: nobody asks for the reply, and it must not be lost
    library.clock.advance(WAIT_MS_MAX - 1)
    assert waiting == []
    library.clock.advance(1)
    assert [(type(reply), reply.retriable) for reply in waiting] == [(CoordinatorLoading, True)]
    assert [type(reply) for reply in library.submit(Get("2"))] == [CoordinatorLoading]
    aside.pop()()
    library.commit()
    assert library.shelf.plain == expected(10) | {"1": 100}
    assert library.clock.timers == 0


def test_only_so_many_commands_wait() -> None:
    library = filled(1)
    library.coordinator.unload()
    library.coordinator.load()
    replies = [library.submit(Get("0")) for _ in range(INBOX_MAX + 5)]
    assert [len(each) for each in replies] == [0] * INBOX_MAX + [1] * 5
    library.commit()
    assert [each[0] for each in replies[:INBOX_MAX]] == [0] * INBOX_MAX


def test_who_waits_for_a_coordinator_that_is_unloaded_is_told_first() -> None:
    library = filled(1)
    order: list[Any] = []
    library.coordinator.submit(WaitFor("never"), order.append)
    library.coordinator.submit(Put("a", 1), order.append)
    library.coordinator.submit(Get("a"), order.append)
    library.coordinator.confirm(order.append)
    library.coordinator.when_durable(lambda: order.append("when durable"))
    library.coordinator.unload()
    assert [type(each) for each in order] == [NotCoordinator] * 3
    assert [type(reply) for reply in library.submit(Get("a"))] == [NotTaken]
    library.commit()
    assert [type(each) for each in order[3:]] == [NotCoordinator], "what was read may not be told; nobody is told twice"
    with pytest.raises(NotCoordinator):
        library.coordinator.peek()
    assert (library.coordinator.failure, library.clock.timers) == (None, 0)
    library.coordinator.load()
    library.commit()
    assert library.shelf.plain == {"0": 0, "a": 1}
    assert len(order) == 4


def test_an_unloaded_coordinator_writes_nothing_and_makes_no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goqueue.runtime.ledger.SNAPSHOT_EVERY_RECORDS", 1)
    library = Library()
    library.submit(Put("milk", 1, library.clock.now_ms() + 5000))
    library.coordinator.unload()
    operations = library.disk.op_count
    library.clock.advance(10_000)
    assert library.snapshots() == []
    assert library.disk.op_count == operations


def test_a_load_that_is_overtaken_by_an_unload_ends_there() -> None:
    library = filled(2000)
    library.coordinator.unload()
    library.coordinator.load()
    library.clock._soon.popleft()()
    library.coordinator.unload()
    library.commit()
    assert library.coordinator.life is Life.UNLOADED
    library.coordinator.load()
    library.commit()
    assert library.shelf.plain == expected(2000)


def test_it_serves_once_all_that_it_has_read_is_durable() -> None:
    """An answer that waits for nothing must not rest on what a loss of power could take back."""
    library = filled(1)
    library.submit(Put("a", 1))
    library.coordinator.unload()
    library.coordinator.load()
    seen = library.submit(Peek("a"))
    library.clock.run()
    assert (library.coordinator.life, seen) == (Life.LOADING, [])
    library.commit()
    assert (library.coordinator.life, seen) == (Life.ACTIVE, [1])


def test_a_ledger_that_cannot_be_read_is_tried_again() -> None:
    library = filled(100)
    library.coordinator.unload()
    fault = library.disk.faults.add("read", 5, prefix="logs/@shelf/0")
    library.coordinator.load()
    with capture_logs() as told:
        library.clock.run()
    if fault.hits:  # else the log had it in memory
        assert library.coordinator.life is Life.FAILED
        assert "coordinator stopped" in [event["event"] for event in told]
        library.clock.advance(10_000)
    library.commit()
    assert library.shelf.plain == expected(100)


def test_what_is_due_is_asked_for_after_every_load_and_before_any_command() -> None:
    library = filled(1)
    seen: list[Any] = []

    def loaded() -> None:
        seen.append(dict(library.shelf.plain))
        library.coordinator.submit(Put("due", 1), lambda reply: seen.append("due"))
        assert "due" not in library.shelf.plain, "one thing at a time"

    library.coordinator.on_loaded = loaded
    library.coordinator.unload()
    library.coordinator.load()
    library.coordinator.submit(Get("0"), lambda reply: seen.append("asked"))
    library.commit()
    assert seen == [{"0": 0}, "due", "asked"] or seen == [{"0": 0}, "asked", "due"]
    assert library.coordinator.loads == 2


def test_a_question_is_answered_when_what_it_saw_is_durable() -> None:
    library = Library()
    library.submit(Put("a", 1))
    answers: list[Any] = []
    library.coordinator.ask(lambda shelf: shelf.plain, answers.append)
    library.clock.run()
    assert answers == []
    library.commit()
    assert answers == [{"a": 1}]
    library.coordinator.unload()
    library.coordinator.ask(lambda shelf: shelf.plain, answers.append)
    assert type(answers[-1]) is NotCoordinator


def test_coordinators_are_found_by_key_and_made_when_they_are_needed() -> None:
    library = Library()

    def make(key: str) -> Coordinator[Shelf]:
        replica = library.replica(f"@{key}", cleanup_policy="compact")
        return Coordinator(key, Shelf, Ledger(replica, "shelf", (Stored,)), library.clock)

    everything = AllCoordinators()
    shelves = everything.add(Coordinators[str, Shelf]("shelves", make))
    with pytest.raises(NotCoordinator):
        shelves.of("a")
    added: list[str] = []
    shelves.on_added.append(lambda key, coordinator: added.append(key))
    replies: list[Any] = []
    shelves.of_or_made("a").submit(Put("x", 1), replies.append)
    assert shelves.of_or_made("a") is shelves.of("a")
    assert (list(shelves.active()), everything.lives()[Life.LOADING]) == ([], 1)
    library.commit()
    assert (replies, added, everything.lives()[Life.ACTIVE]) == ([1], ["a"], 1)
    assert [key for key, _ in shelves.active()] == ["a"]
    shelves.unload("a")
    assert (list(everything), len(shelves)) == ([], 0)
    shelves.of_or_made("b")
    assert [each.name for each in everything] == ["b"]


def test_a_refusal_says_that_it_may_be_asked_again() -> None:
    library = Library()
    library.coordinator.unload()
    refusal = library.coordinator.refusal()
    assert isinstance(refusal, GoQueueError)
    assert refusal.retriable
