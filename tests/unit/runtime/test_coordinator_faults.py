"""Faults of ours: a coordinator that cannot go on stops and tells everyone who waits; one that can, goes on."""

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.machines.machine import Tick
from goqueue.model.errors import CoordinatorFailed
from tests.unit.runtime.shelf import Get, Library, Put, WaitFor


def fail(*_: object) -> Any:
    raise ZeroDivisionError


def breaking(library: Library, method: str, kind: type) -> None:
    """Let one of the machine's methods fail for what is of this kind."""
    sound: Callable[..., Any] = getattr(library.shelf, method)
    setattr(library.shelf, method, lambda what, *others: (fail if type(what) is kind else sound)(what, *others))


def expect_stopped(library: Library, told: list[Any]) -> None:
    assert [event["event"] for event in told] == ["coordinator failed", "coordinator stopped"]
    assert isinstance(told[0]["exc_info"], ZeroDivisionError)
    assert isinstance(library.coordinator.failure, CoordinatorFailed)
    assert library.coordinator.failure.retriable
    assert library.coordinator.faults == 1
    assert library.clock.timers == 0
    for command in (Put("new", 1), Get("milk"), WaitFor("new")):
        assert [type(reply) for reply in library.submit(command)] == [CoordinatorFailed]
    operations = library.disk.op_count
    library.coordinator.stop()
    assert library.disk.op_count == operations, "a state that is not what the ledger says is not saved"


def test_a_fact_that_cannot_be_applied_stops_the_coordinator_and_answers_everyone_who_waits() -> None:
    library = Library()
    library.submit(Put("milk", 1, library.clock.now_ms() + 9000))
    parked = library.submit(WaitFor("a"))
    library.commit()
    breaking(library, "apply", type(library.shelf.values["milk"]))
    with capture_logs() as told:
        failed = library.submit(Put("b", 2))
    library.commit()
    assert [type(reply) for reply in parked + failed] == [CoordinatorFailed] * 2
    expect_stopped(library, told)
    assert library.again().shelf.plain == {"milk": 1, "b": 2}, "a restart believes the ledger"


def test_a_deadline_that_cannot_be_decided_stops_the_coordinator() -> None:
    library = Library()
    parked = library.submit(WaitFor("a"))
    library.submit(Put("milk", 1, library.clock.now_ms() + 9000))
    library.commit()
    breaking(library, "decide", Tick)
    with capture_logs() as told:
        library.clock.advance(9000)
    assert [type(reply) for reply in parked] == [CoordinatorFailed]
    expect_stopped(library, told)


@pytest.mark.parametrize("what", ["after_apply", "next_deadline_ms"])
def test_what_has_to_be_done_about_facts_and_cannot_be_stops_the_coordinator(what: str) -> None:
    library = Library()
    if what == "after_apply":
        library.coordinator.after_apply = fail
    else:
        library.shelf.next_deadline_ms = fail  # type: ignore[method-assign]
    with capture_logs() as told:
        failed = library.submit(Put("a", 1))
    assert [type(reply) for reply in failed] == [CoordinatorFailed]
    expect_stopped(library, told)


def test_what_was_decided_before_the_fault_is_answered_when_it_is_durable() -> None:
    library = Library()
    sound = library.submit(Put("a", 1))
    library.coordinator.after_apply = fail
    with capture_logs():
        library.submit(Put("b", 2))
    library.commit()
    assert sound == [1]


def test_a_command_that_cannot_be_decided_is_refused_and_the_others_are_served() -> None:
    """One client's command must not cost everybody the coordinator: nothing was changed."""
    library = Library()
    with capture_logs() as told:
        refused = library.submit("nonsense")
    assert [(type(reply), reply.retriable) for reply in refused] == [(CoordinatorFailed, True)]
    assert [(event["event"], event["command"]) for event in told] == [("command failed", "str")]
    assert (library.coordinator.failure, library.coordinator.faults) == (None, 1)
    replies = library.submit(Put("a", 1))
    library.commit()
    assert replies == [1]


def test_a_reply_that_fails_costs_the_others_nothing() -> None:
    library = Library()
    replies: list[Any] = []

    def ask_and_fail(reply: Any) -> None:
        library.coordinator.submit(Get("milk"), replies.append)
        fail()

    for on_reply in (ask_and_fail, replies.append):
        library.coordinator.submit(WaitFor("milk"), on_reply)
    library.coordinator.submit(Put("milk", 1, library.clock.now_ms() + 9000), replies.append)
    with pytest.raises(ZeroDivisionError):
        library.commit()
    library.commit()
    assert (replies, library.coordinator.failure) == ([1, 1, 1], None)
    library.clock.advance(9000)
    assert library.shelf.plain == {}, "its deadlines pass"


def test_a_reply_that_fails_costs_the_next_command_nothing() -> None:
    library = Library()
    replies: list[Any] = []

    def ask_twice(_: Any) -> None:
        for on_reply in (fail, replies.append):
            library.coordinator.submit(Get("milk"), on_reply)

    with pytest.raises(ZeroDivisionError):
        library.coordinator.submit(Get("milk"), ask_twice)
    assert replies == [None]


def test_a_snapshot_that_cannot_be_made_is_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goqueue.runtime.ledger.SNAPSHOT_EVERY_RECORDS", 1)
    library = Library()
    sound = library.ledger._encoder
    library.submit(Put("a", 1))
    library.commit()
    library.ledger._encoder = type("Broken", (), {"encode": fail})()
    library.ledger._saving = None
    library.ledger._since_snapshot = 1
    with capture_logs() as told:
        library.ledger.maybe_snapshot(library.shelf, library.clock.now_ms())
    assert [event["event"] for event in told] == ["snapshot not saved"]
    library.ledger._encoder = sound
    library.submit(Put("b", 2))
    library.commit()
    assert library.snapshots()
