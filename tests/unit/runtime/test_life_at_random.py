"""A machine that is thrown away at any moment and read from its ledger again is the same as one that never was, and no
reply rests on what a loss of power could take back. A fact that cannot be applied while the ledger is read is left out:
that is counted, and a later load has it.
"""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from goqueue.model.errors import GoQueueError
from goqueue.runtime.life import Life
from goqueue.testing import VirtualClock
from tests.unit.runtime.shelf import Drop, Get, Library, Put
from tests.unit.runtime.test_coordinator_faults import Faulty

NAMES = st.sampled_from("abcdef")
COMMANDS = st.one_of(
    st.builds(Put, NAMES, st.integers(0, 9), st.sampled_from([-1, -1, 3000, 60_000])),
    st.builds(Drop, NAMES),
    st.builds(Get, NAMES),
)
TROUBLE = st.sampled_from(["apply", "after_apply", "next_deadline_ms", "tick", "decide", "unload", "commit", "turn"])


class Troubled:
    """A library with trouble."""

    def __init__(self) -> None:
        self.library = Faulty()
        self.told: list[Any] = []

    def submit(self, command: Any) -> None:
        if isinstance(command, Put) and command.spoils_ms >= 0:
            command = Put(command.name, command.value, self.library.clock.now_ms() + command.spoils_ms)
        self.library.coordinator.submit(command, self.told.append)

    def settle(self) -> None:
        """Until it is active and nothing is due."""
        for _ in range(200):
            self.library.commit()
            if self.library.coordinator.life is Life.ACTIVE:
                return
            self.library.clock.advance(10_000)
        raise AssertionError(self.library.coordinator.life)

    def load_again(self) -> None:
        self.library.coordinator.unload()
        self.library.coordinator.load()
        self.settle()


def make_trouble(troubled: Troubled, what: str) -> None:
    library = troubled.library
    match what:
        case "commit":
            library.commit()
        case "turn":
            library.committer.run_once()
        case "unload":
            library.coordinator.unload()
            library.coordinator.load()
        case _:
            library.fail_in(what)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.one_of(COMMANDS, TROUBLE), max_size=40))
@example(["apply", Put("a", 0), "apply", "commit"])
@example(["apply", Put("a", 0), Drop("a"), "apply", "commit"])
def test_a_machine_that_was_thrown_away_at_any_moment_is_what_its_ledger_says(steps: list[Any]) -> None:
    troubled = Troubled()
    with capture_logs():
        for step in steps:
            if isinstance(step, str):
                make_trouble(troubled, step)
            else:
                troubled.submit(step)
        troubled.library.make.times = 0
        troubled.library.coordinator.after_apply = lambda facts: None
        troubled.settle()
        if troubled.library.coordinator.skipped_facts:  # whoever left nothing out has to be right as it is
            troubled.load_again()
    assert troubled.library.coordinator.skipped_facts == 0
    found = troubled.library.again()
    assert troubled.library.shelf.plain == found.shelf.plain, "as a restart finds it"
    assert troubled.library.shelf.places == found.shelf.places
    assert len(troubled.told) == sum(not isinstance(step, str) for step in steps), "everybody is told once"


LASTING = st.one_of(st.builds(Put, NAMES, st.integers(0, 9)), st.builds(Drop, NAMES))


@settings(max_examples=120, deadline=None)
@given(st.lists(st.one_of(LASTING, TROUBLE), max_size=40))
def test_nobody_is_told_what_a_loss_of_power_takes_back(steps: list[Any]) -> None:
    troubled, confirmed = Troubled(), dict[str, int]()
    with capture_logs():
        for number, step in enumerate(steps):
            if isinstance(step, str):
                make_trouble(troubled, step)
                continue

            def told(reply: Any, number: int = number, name: str = step.name) -> None:
                if not isinstance(reply, GoQueueError):
                    confirmed[name] = max(number, confirmed.get(name, 0))

            troubled.library.coordinator.submit(step, told)
    disk = troubled.library.disk
    found = Library(disk.crashed(lost=disk.unsynced()), VirtualClock(troubled.library.clock.now_ms())).shelf.plain
    for name, first in confirmed.items():
        later = [step for step in steps[first:] if not isinstance(step, str) and step.name == name]
        allowed = [step.value if isinstance(step, Put) else None for step in later]
        assert found.get(name) in allowed, "what was confirmed last, or what came after it"
