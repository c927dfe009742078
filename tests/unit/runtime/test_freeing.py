"""A machine that goes is freed in slices, however large it is: nobody waits for it."""

import gc
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from goqueue.machines.groups.machine import Groups
from goqueue.machines.groups.offsets import OffsetCommitted
from goqueue.runtime.freeing import CHUNK, SLICE_STEPS, Freeing
from goqueue.runtime.ledger import SLICE_COST
from goqueue.runtime.standby import Standby
from tests.unit.runtime.shelf import Library, Put, Shelf

COUNT = 20 * SLICE_STEPS
MOST = SLICE_STEPS + 2 * CHUNK
"""A slice ends behind the step that makes it full, and the next begins with what that took out."""


class Freed:
    """Counts what was freed since anybody looked."""

    count = 0

    def __del__(self) -> None:
        Freed.count += 1


class FreedNumber(int):
    def __del__(self) -> None:
        Freed.count += 1


class FreedBytes(bytes):
    def __del__(self) -> None:
        Freed.count += 1


class Named(dict[int, Any]):
    """With more than its items."""

    def __init__(self) -> None:
        self.names = [Freed() for _ in range(COUNT)]


SHAPES: dict[str, Callable[[], Any]] = {
    "objects in a dict": lambda: {number: Freed() for number in range(COUNT)},
    "small ones in a dict": lambda: {number: FreedNumber(number) for number in range(COUNT)},
    "in a list": lambda: [Freed() for _ in range(COUNT)],
    "in a set": lambda: {Freed() for _ in range(COUNT)},
    "in a deque": lambda: deque(Freed() for _ in range(COUNT)),
    "in dicts of dicts": lambda: {
        first: {second: Freed() for second in range(SLICE_STEPS)} for first in range(COUNT // SLICE_STEPS)
    },
    "attributes of a dict": Named,
}


def assert_sliced(counts: list[int]) -> None:
    assert sum(counts) == COUNT
    assert max(counts) <= MOST


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """A node hardly ever runs it."""
    gc.disable()
    yield
    gc.enable()


def turns(soon: deque[Callable[[], None]]) -> list[int]:
    """How much was freed in each turn of the loop, until there is nothing more to do."""
    counts = []
    while soon:
        Freed.count = 0
        soon.popleft()()
        counts.append(Freed.count)
    return counts


@pytest.mark.parametrize("shape", SHAPES)
def test_no_turn_frees_more_than_a_slice(shape: str) -> None:
    soon: deque[Callable[[], None]] = deque()
    Freeing(soon.append).free(SHAPES[shape]())
    assert_sliced(turns(soon))


def test_things_that_go_at_once_are_freed_one_after_the_other() -> None:
    soon: deque[Callable[[], None]] = deque()
    freeing = Freeing(soon.append)
    for make in SHAPES.values():
        freeing.free(make())
    counts = turns(soon)
    assert sum(counts) == COUNT * len(SHAPES)
    assert max(counts) <= MOST


def test_what_somebody_else_holds_stays_as_it_is() -> None:
    soon: deque[Callable[[], None]] = deque()
    kept = {number: Freed() for number in range(10)}
    Freeing(soon.append).free({"kept": kept, "else": [Freed()]})
    assert sum(turns(soon)) == 1
    assert len(kept) == 10


def test_offsets_of_groups_go_in_slices_and_nothing_is_left() -> None:
    machine = Groups()
    for number in range(COUNT):
        machine.apply(OffsetCommitted(f"group-{number % 50}", f"topic-{number}", 0, number, -1, "", None, 0, number))
    going, soon = weakref.ref(machine), deque[Callable[[], None]]()
    freeing = Freeing(soon.append)
    freeing.free(machine)
    del machine
    steps = []
    while soon:
        before = freeing.steps
        soon.popleft()()
        steps.append(freeing.steps - before)
    assert going() is None
    assert sum(steps) > COUNT
    assert max(steps) <= MOST


def fill(shelf: Shelf | None) -> None:
    """With what counts when it is freed."""
    assert shelf is not None
    shelf.places.update((f"{number}", FreedNumber(number)) for number in range(COUNT))


def filled() -> Library:
    library = Library()
    library.submit(Put("first", 1))
    library.commit()
    fill(library.shelf)
    return library


def test_a_coordinator_that_is_unloaded_frees_its_machine_in_slices() -> None:
    library = filled()
    Freed.count = 0
    library.coordinator.unload()
    assert Freed.count == 0
    assert_sliced(turns(library.clock._soon))


def test_so_does_one_that_met_a_fault_and_has_somebody_who_waits_for_the_disk() -> None:
    library = filled()
    library.coordinator.submit(Put("second", 2), lambda reply: None)
    told: list[object] = []
    library.coordinator.confirm(told.append)
    Freed.count = 0
    library.coordinator._begin_anew(RuntimeError("a fault"), "a test")
    assert Freed.count == 0
    assert_sliced(turns(library.clock._soon))
    library.commit()
    assert len(told) == 1
    assert library.shelf.plain == {"first": 1, "second": 2}


def test_so_does_a_standby_that_is_built_anew_or_stopped() -> None:
    library = Library()
    library.submit(Put("first", 1))
    library.commit()
    standby = Standby("shelf", Shelf, library.ledger_replica, library.ledger, library.clock)
    library.clock.run()
    fill(standby.peek())
    standby._cut(0)
    assert_sliced(turns(library.clock._soon))
    fill(standby.peek())
    standby.stop()
    del standby
    assert_sliced(turns(library.clock._soon))


def test_a_load_frees_what_it_has_read_of_a_snapshot_as_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    for number in range(1000):
        library.submit(Put(f"{number}", number))
    library.commit()
    library.ledger.snapshot(library.shelf, library.clock.now_ms())
    found = library.ledger._latest(1 << 62)
    assert found is not None
    entries = [(FreedBytes(key), value) for key, value in found[1]]
    offset = found[0]
    monkeypatch.setattr(library.ledger, "_latest", lambda up_to, entries=[(offset, entries)]: entries.pop())
    del entries, found
    library.coordinator.unload()
    library.clock.run()
    library.coordinator.load()
    counts = turns(library.clock._soon)
    assert sum(counts) == 1000
    assert max(counts) <= SLICE_COST
