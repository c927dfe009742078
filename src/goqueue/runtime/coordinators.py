"""The coordinators of a node, by what they keep and by key: found, loaded and unloaded here, and told to health and
metrics from here.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from goqueue.machines.machine import Command, Machine
from goqueue.model.errors import GoQueueError, NotCoordinator
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.life import Life

K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound=Machine)
R = TypeVar("R")


class Submitting(Protocol):
    """A coordinator as one who only gives it commands sees it, wherever it is."""

    def submit(self, command: Command[R], on_reply: Callable[[R | GoQueueError], None] | None = None) -> None: ...


class Coordinators(Generic[K, M]):
    """All of one kind: of groups and transactions by the number of their shard, of deliveries and delays by partition.

    Invariant: who is here has an open ledger.
    """

    def __init__(self, kind: str, make: Callable[[K], Coordinator[M]] | None = None) -> None:
        self.kind = kind
        self._make = make
        self._by_key: dict[K, Coordinator[M]] = {}
        self.find = self._by_key.get
        """By key. None: it is not on this node."""
        self.unopened: dict[K, str] = {}
        """Names of those whose ledgers cannot be opened."""
        self.on_added: list[Callable[[K, Coordinator[M]], None]] = []
        """Called before a new one is loaded: whoever wants to hear of its facts says so."""
        self.on_removed: list[Callable[[K], None]] = []
        self.elsewhere: Callable[[K], Submitting] | None = None
        """Of a cluster: the coordinator that another node has."""

    def add(self, key: K, coordinator: Coordinator[M]) -> Coordinator[M]:
        """It is not loaded by this."""
        assert key not in self._by_key, f"there is a coordinator of {self.kind} for {key} already"
        self._by_key[key] = coordinator
        for call in self.on_added:
            call(key, coordinator)
        return coordinator

    def of(self, key: K) -> Submitting:
        """That of this node, or in a cluster of another one. NotCoordinator: there is none."""
        found = self._by_key.get(key)
        if found is not None:
            return found
        if self.elsewhere is None:
            raise NotCoordinator(f"{self.kind} of {key} are not kept by this node")
        return self.elsewhere(key)

    def here(self, key: K) -> Coordinator[M]:
        """NotCoordinator: it is not on this node."""
        found = self._by_key.get(key)
        if found is None:
            raise NotCoordinator(f"{self.kind} of {key} are not kept by this node")
        return found

    def is_here(self, key: K) -> bool:
        """On this node, or not yet made, and then on this node."""
        return key in self._by_key or self.elsewhere is None

    def of_or_made(self, key: K) -> Coordinator[M]:
        """One that is made when it is first needed. Commands to it wait while it is loaded."""
        found = self._by_key.get(key)
        if found is None:
            assert self._make is not None, f"coordinators of {self.kind} are all made at the start"
            found = self.add(key, self._make(key))
            found.load()
        return found

    def of_or_new(self, key: K) -> Coordinator[M]:
        """One of those that a start has found, or a new one: its ledger is empty, so that it is loaded at once. A
        GoQueueError: it cannot be made. NotCoordinator: a cluster has it on another node."""
        found = self._by_key.get(key)
        if found is None:
            if self._make is None:
                raise NotCoordinator(f"{self.kind} of {key} are kept by another node")
            found = self.add(key, self._make(key))
            found.load_now()
        return found

    def watch(self, call: Callable[[K, Coordinator[M]], None]) -> None:
        """Tell of all that are here, and of every new one before it is loaded."""
        for key, coordinator in self._by_key.items():
            call(key, coordinator)
        self.on_added.append(call)

    def load(self, key: K) -> None:
        self.here(key).load()

    def unload(self, key: K) -> None:
        """Whoever waits is told; the coordinator is forgotten."""
        self.unopened.pop(key, None)
        found = self._by_key.pop(key, None)
        if found is not None:
            found.unload()
            found.let_go()
            for call in self.on_removed:
                call(key)

    def active(self) -> Iterator[tuple[K, Coordinator[M]]]:
        """Those that may be asked now."""
        return ((key, each) for key, each in list(self._by_key.items()) if each.life is Life.ACTIVE)

    def items(self) -> list[tuple[K, Coordinator[M]]]:
        return list(self._by_key.items())

    def unsure(self) -> list[Coordinator[M]]:
        """Those whose state a restart might not find as it is."""
        return [each for each in self._by_key.values() if not each.is_durable]

    def __iter__(self) -> Iterator[Coordinator[M]]:
        return iter(list(self._by_key.values()))

    def __len__(self) -> int:
        return len(self._by_key)


class AllCoordinators:
    """Of every kind: the one place that health, metrics and the stop of a node look at."""

    def __init__(self) -> None:
        self._kinds: dict[str, Coordinators[Any, Any]] = {}

    def add(self, coordinators: Coordinators[K, M]) -> Coordinators[K, M]:
        assert coordinators.kind not in self._kinds
        self._kinds[coordinators.kind] = coordinators
        return coordinators

    def of_kind(self, kind: str) -> Coordinators[Any, Any]:
        return self._kinds[kind]

    def __iter__(self) -> Iterator[Coordinator[Any]]:
        for kind in self._kinds.values():
            yield from kind

    def counted(self, of: Callable[[Coordinator[Any]], int]) -> dict[str, int]:
        """By shard; those of partitions, of which there may be thousands, together."""
        found: dict[str, int] = {}
        for kind in self._kinds.values():
            for key, each in kind.items():
                label = f"{kind.kind}-{key}" if isinstance(key, int) else kind.kind
                found[label] = found.get(label, 0) + of(each)
        return found

    def unopened(self) -> list[str]:
        """Names of those whose ledgers cannot be opened."""
        return [name for kind in self._kinds.values() for name in kind.unopened.values()]

    def lives(self) -> dict[Life, int]:
        """How many stand where."""
        counted = dict.fromkeys(Life, 0)
        for each in self:
            counted[each.life] += 1
        return counted
