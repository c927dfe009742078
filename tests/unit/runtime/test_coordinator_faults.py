"""Faults of ours: a coordinator whose state may be wrong tells everyone who waits, and reads its ledger again."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.machines.machine import Outcome, Tick
from goqueue.model.errors import CoordinatorFailed
from goqueue.runtime.life import BACKOFF_MS_MIN, SOUND_MS, UNDECIDED_MAX, Life
from tests.unit.runtime.shelf import Get, Library, Put, Shelf, Stored, WaitFor


def fail(*_: object) -> Any:
    raise ZeroDivisionError


class Broken(Shelf):
    """Fails in one of its methods, for what is of one kind, so many times: in this machine and in those that come after
    it.
    """

    method = ""
    kind: type = object
    times = 0

    @classmethod
    def fail_in(cls, method: str, kind: type, times: int) -> None:
        cls.method, cls.kind, cls.times = method, kind, times

    def _maybe_fail(self, method: str, what: object) -> None:
        if method == self.method and type(what) is self.kind and type(self).times:
            type(self).times -= 1
            fail()

    def decide(self, command: Any, ticket: int, now_ms: int) -> Outcome:
        self._maybe_fail("decide", command)
        return super().decide(command, ticket, now_ms)

    def apply(self, fact: Any) -> None:
        self._maybe_fail("apply", fact)
        super().apply(fact)

    def next_deadline_ms(self) -> int | None:
        self._maybe_fail("next_deadline_ms", self)
        return super().next_deadline_ms()


class Faulty(Library):
    """Its shelves are made by a class of its own, which can be told to fail."""

    def __init__(self) -> None:
        class Mine(Broken):
            pass

        self.make: type[Broken] = Mine
        super().__init__()

    def make_shelf(self) -> Shelf:
        return self.make()

    def fail_in(self, what: str, times: int = 1) -> None:
        if what == "after_apply":
            self.coordinator.after_apply = self._fail_after
            self._left = times
        elif what == "next_deadline_ms":
            self.make.fail_in(what, self.make, times)
        else:
            self.make.fail_in(
                *{"apply": ("apply", Stored), "tick": ("decide", Tick), "decide": ("decide", Put)}[what], times
            )

    def _fail_after(self, _facts: object) -> None:
        self._left -= 1
        if self._left >= 0:
            fail()

    def break_with(self, what: str) -> list[Any]:
        """Let it happen; where the reply will be, if anybody asked."""
        if what == "tick":
            self.clock.advance(9000)
            return []
        return self.submit(Put("b", 2))


FATAL = ["apply", "after_apply", "next_deadline_ms", "tick"]


def prepared() -> tuple[Faulty, list[Any]]:
    """With something on the shelf, something that spoils, and somebody who waits."""
    library = Faulty()
    library.submit(Put("milk", 1, library.clock.now_ms() + 9000))
    library.submit(Put("salt", 3))
    parked = library.submit(WaitFor("a"))
    library.commit()
    return library, parked


@pytest.mark.parametrize("what", FATAL)
def test_after_a_fault_those_who_wait_are_told_and_the_state_is_read_from_the_ledger_again(what: str) -> None:
    library, parked = prepared()
    before = library.shelf
    library.fail_in(what)
    with capture_logs() as told:
        failed = library.break_with(what)
        assert [type(reply) for reply in parked + failed] == [CoordinatorFailed] * (1 + len(failed))
        assert all(reply.retriable for reply in parked + failed)
        library.commit()
    (event,) = told
    assert (event["event"], type(event["exc_info"])) == ("coordinator failed", ZeroDivisionError)
    assert library.coordinator.life is Life.ACTIVE
    assert library.shelf is not before
    assert (library.coordinator.failure, library.coordinator.faults, library.coordinator.loads) == (None, 1, 2)
    expected = {"salt": 3} if what == "tick" else {"milk": 1, "salt": 3, "b": 2}
    assert library.shelf.plain == expected, "what the ledger says"
    assert (library.shelf.waiting, parked[1:]) == ({}, []), "nobody is told twice"
    assert library.submit(Put("c", 4)) == []
    library.commit()
    library.clock.advance(9000)
    library.commit()
    assert library.shelf.plain == {key: value for key, value in expected.items() if key != "milk"} | {"c": 4}
    assert library.again().shelf.plain == library.shelf.plain


def test_a_fact_that_cannot_be_applied_after_a_fault_either_is_counted_and_the_next_load_has_it() -> None:
    library, _ = prepared()
    library.fail_in("apply", times=2)  # at once, and for the first fact that is read again
    with capture_logs() as told:
        library.submit(Put("b", 2))
        library.commit()
    assert [event["event"] for event in told] == ["coordinator failed", "fact skipped"]
    assert (library.shelf.plain, library.coordinator.skipped_facts) == ({"salt": 3, "b": 2}, 1)
    library.coordinator.unload()
    library.coordinator.load()
    library.commit()
    assert (library.shelf.plain, library.coordinator.skipped_facts) == ({"milk": 1, "salt": 3, "b": 2}, 0)
    assert library.again().shelf.plain == library.shelf.plain


def test_faults_again_and_again_take_it_out_of_service_for_longer_and_longer() -> None:
    library = Faulty()
    library.fail_in("after_apply", times=5)
    downtimes: list[int] = []
    with capture_logs():
        for number in range(5):
            library.submit(Put("salt", number))
            library.commit()
            waited_ms = 0
            while library.coordinator.life is not Life.ACTIVE:
                assert library.coordinator.life is Life.FAILED
                assert isinstance(library.coordinator.failure, CoordinatorFailed)
                assert [type(reply) for reply in library.submit(Get("salt"))] == [CoordinatorFailed]
                library.clock.advance(1000)
                waited_ms += 1000
            downtimes.append(waited_ms)
    assert downtimes == [0, 0, BACKOFF_MS_MIN, 2 * BACKOFF_MS_MIN, 4 * BACKOFF_MS_MIN]
    library.clock.advance(SOUND_MS)
    assert library.submit(Get("salt")) == [4]
    library.fail_in("after_apply")
    with capture_logs():
        library.submit(Put("salt", 5))
    library.commit()
    assert library.coordinator.life is Life.ACTIVE, "it was sound for long enough"


def test_a_deadline_that_always_fails_costs_the_node_little() -> None:
    library, _ = prepared()
    library.fail_in("tick", times=1_000_000)
    with capture_logs():
        library.clock.advance(60 * 60_000)
    assert library.coordinator.life is Life.FAILED
    assert library.coordinator.loads < 25


def test_a_command_that_cannot_be_decided_is_refused_and_the_others_are_served() -> None:
    """One client's command must not cost everybody the coordinator: nothing was changed."""
    library, parked = prepared()
    shelf = library.shelf
    with capture_logs() as told:
        refused = library.submit("nonsense")
    assert [(type(reply), reply.retriable) for reply in refused] == [(CoordinatorFailed, True)]
    assert [(event["event"], event["command"]) for event in told] == [("command failed", "str")]
    assert (library.coordinator.failure, library.coordinator.faults) == (None, 1)
    assert library.shelf is shelf
    library.submit(Put("a", 1))
    library.commit()
    assert parked == [1]


def test_commands_that_cannot_be_decided_make_it_read_its_ledger_at_times_and_not_more_often() -> None:
    """The state may be wrong; but nobody may keep all others waiting by sending nonsense."""
    library, _ = prepared()
    with capture_logs():
        for _ in range(UNDECIDED_MAX - 1):
            library.submit("nonsense")
        assert library.coordinator.loads == 1
        assert [type(reply) for reply in library.submit("nonsense")] == [CoordinatorFailed]
        library.commit()
        assert library.coordinator.loads == 2
        for _ in range(1000):
            assert [type(reply) for reply in library.submit("nonsense")] == [CoordinatorFailed]
            assert library.submit(Get("salt")) == [3]
    assert library.coordinator.loads == 2


def test_what_was_decided_before_the_fault_is_answered_when_it_is_durable() -> None:
    library = Library()
    sound = library.submit(Put("a", 1))
    library.coordinator.after_apply = fail
    with capture_logs():
        library.submit(Put("b", 2))
    library.commit()
    assert sound == [1]


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
