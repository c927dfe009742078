"""A machine for tests: a shelf of values, people who wait for one, and values that spoil."""

from collections.abc import Iterator
from typing import Any

from goqueue.machines.machine import Command, Fact, Outcome, Tick
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.ledger import Ledger
from goqueue.testing import MemoryDisk, VirtualClock
from tests.brokers import Parts


class Put(Command[Any], frozen=True):
    name: str
    value: int
    spoils_ms: int = -1


class Drop(Command[Any], frozen=True):
    name: str


class Get(Command[Any], frozen=True):
    name: str


class Peek(Command[Any], frozen=True):
    """As `Get`, but what is not durable yet is good enough."""

    name: str


class WaitFor(Command[Any], frozen=True):
    name: str


class Stored(Fact, frozen=True, tag="Stored"):
    wants_place = True
    name: str
    value: int
    spoils_ms: int = -1

    def key(self) -> bytes:
        return self.name.encode()


class Dropped(Fact, frozen=True):
    is_tombstone = True
    name: str

    def key(self) -> bytes:
        return self.name.encode()


class Waits(Fact, frozen=True):
    durable = False
    name: str
    ticket: int


class Shelf:
    def __init__(self) -> None:
        self.values: dict[str, Stored] = {}
        self.waiting: dict[int, str] = {}
        self.places: dict[str, int] = {}

    @property
    def plain(self) -> dict[str, int]:
        return {name: stored.value for name, stored in self.values.items()}

    def decide(self, command: Any, ticket: int, now_ms: int) -> Outcome:
        match command:
            case Put():
                waiters = [(other, command.value) for other, name in self.waiting.items() if name == command.name]
                stored = Stored(command.name, command.value, command.spoils_ms)
                return Outcome([stored], [*waiters, (ticket, command.value)])
            case Drop():
                return Outcome([Dropped(command.name)], [(ticket, None)])
            case Get():
                return Outcome([], [(ticket, self.plain.get(command.name))])
            case Peek():
                return Outcome([], [(ticket, self.plain.get(command.name))], is_immediate=True)
            case WaitFor():
                return Outcome([Waits(command.name, ticket)], [])
            case Tick():
                spoilt = [one.name for one in self.values.values() if 0 <= one.spoils_ms <= now_ms]
                return Outcome([Dropped(name) for name in spoilt], [])
        raise TypeError(command)

    def apply(self, fact: Any) -> None:
        match fact:
            case Stored():
                self.values[fact.name] = fact
                self.waiting = {ticket: name for ticket, name in self.waiting.items() if name != fact.name}
            case Dropped():
                self.values.pop(fact.name, None)
            case Waits():
                self.waiting[fact.ticket] = fact.name

    def placed(self, fact: Any, ledger_offset: int) -> None:
        assert self.values[fact.name] is fact, "the last one applied"
        self.places[fact.name] = ledger_offset

    def forget(self, key: bytes) -> None:
        self.values.pop(key.decode(), None)

    def facts(self) -> Iterator[Fact]:
        yield from self.values.values()

    def next_deadline_ms(self) -> int | None:
        return min((one.spoils_ms for one in self.values.values() if one.spoils_ms >= 0), default=None)


class Library(Parts):
    """One shelf with its ledger."""

    def __init__(self, disk: MemoryDisk | None = None, clock: VirtualClock | None = None) -> None:
        super().__init__(disk, clock)
        self.ledger_replica = self.replica("@shelf", cleanup_policy="compact", segment_bytes="16384")
        self.ledger = Ledger(self.ledger_replica, "shelf", (Stored,))
        self.coordinator = Coordinator("shelf", self.make_shelf, self.ledger, self.clock)
        self.coordinator.load_now()

    def make_shelf(self) -> Shelf:
        return Shelf()

    @property
    def shelf(self) -> Shelf:
        return self.coordinator.peek()

    def submit(self, command: Any) -> list[Any]:
        """Where its reply will be."""
        replies: list[Any] = []
        self.coordinator.submit(command, replies.append)
        return replies

    def again(self) -> "Library":
        """As a restart finds it, with nothing lost."""
        return Library(self.disk.crashed(), VirtualClock(self.clock.now_ms()))

    def snapshots(self) -> list[str]:
        return [name for name in self.disk.list("logs/@shelf/0") if name.startswith("snapshot-shelf")]
