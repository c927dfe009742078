"""Coordinators of one kind in a cluster: each comes and goes with the role of its ledger. Who leads the ledger decides;
who follows keeps a standby, to go on from it when its time comes.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from goqueue.machines.machine import Fact, Machine
from goqueue.replica.replica import Replica
from goqueue.runtime.aside import Aside
from goqueue.runtime.clock import Clock, SteadyClock
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.freeing import Freeing
from goqueue.runtime.ledger import Ledger
from goqueue.runtime.slices import Slices
from goqueue.runtime.standby import Standby
from goqueue.telemetry.logs import get_logger

events = get_logger("runtime")

K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound=Machine)


@runtime_checkable
class Reigning(Protocol):
    """What a machine has on top that tells others in which epoch its ledger is led."""

    def begin_reign(self, epoch: int) -> None: ...


class Kept(NamedTuple, Generic[K, M]):
    """What a kind of coordinators is made of."""

    kind: str
    make_machine: Callable[[K, Replica], M]
    facts: tuple[type[Fact], ...]
    is_steady: bool
    """Its deadlines are the ends of durations, which a step of the wall clock must not change."""


class Keeping(Generic[K, M]):
    """Invariant: for each ledger here there is a coordinator, or a standby, or neither yet; never both."""

    def __init__(
        self,
        kept: Kept[K, M],
        clock: Clock,
        aside: Aside,
        freeing: Freeing | None = None,
        slices: Slices | None = None,
    ) -> None:
        self.kept = kept
        self._clock = clock
        self._aside = aside
        self._freeing = freeing or Freeing(clock.call_soon)
        self._slices = slices or Slices(clock.call_soon)
        self.standbys: dict[K, Standby[M]] = {}
        self._followed: dict[K, Replica] = {}
        """Of each standby its log: another one, if the copy was placed here anew."""
        self._ready: dict[Coordinator[M], tuple[Standby[M] | None, Replica]] = {}
        """Coordinators that were made and are not loaded yet."""
        self.on_led: Callable[[K], None] = lambda key: None
        """This node leads it now: whoever keeps the coordinators asks for one (`open`) and has it loaded (`load`)."""
        self.on_lost: Callable[[K], None] = lambda key: None
        """It does not any more, or in another epoch: the coordinator is to be unloaded, which tells those who wait."""

    def role_changed(self, key: K, replica: Replica) -> None:
        """First whoever waits is failed: what the last reign decided says nothing in the next."""
        self.on_lost(key)
        if replica.role.is_leader:
            self.on_led(key)
        elif self._followed.get(key) is not replica:
            self.forget(key)
            self._followed[key] = replica
            make = partial(self.kept.make_machine, key, replica)
            ledger = self._ledger(replica)
            about = self._name(key), make, replica, ledger, self._clock
            self.standbys[key] = Standby(*about, self._freeing, self._slices)

    def open(self, key: K, replica: Replica, name: str = "") -> Coordinator[M]:
        """It is not loaded by this."""
        standby = self.standbys.pop(key, None)
        if standby is not None and self._followed.pop(key, None) is not replica:
            standby.stop()
            standby = None
        ledger = self._ledger(replica) if standby is None else standby.ledger
        clock: Clock = SteadyClock(self._clock, ledger.newest_ms) if self.kept.is_steady else self._clock
        make = partial(self.kept.make_machine, key, replica)
        made = Coordinator(name or self._name(key), make, ledger, clock, self._freeing)
        assert key not in self.standbys, made.name
        self._ready[made] = standby, replica
        return made

    def load(self, coordinator: Coordinator[M]) -> None:
        """From the standby, if there was one. One whose ledger is new is loaded here and now: it is empty."""
        standby, replica = self._ready.pop(coordinator)
        warm = None if standby is None else standby.take()
        if warm is not None:
            begin_reign(warm[0], replica.leader_epoch)
            coordinator.load(warm)
        elif replica.end_offset == replica.start_offset == 0:
            coordinator.load_now()
        else:
            coordinator.load()

    def forget(self, key: K) -> None:
        """Its log is not here any more."""
        self._followed.pop(key, None)
        standby = self.standbys.pop(key, None)
        if standby is not None:
            standby.stop()

    def stop(self) -> None:
        for key in list(self.standbys):
            self.forget(key)

    def _ledger(self, replica: Replica) -> Ledger:
        return Ledger(replica, self.kept.kind, self.kept.facts, self._aside)

    def _name(self, key: Any) -> str:
        if isinstance(key, tuple):
            topic_id, number = key
            return f"{self.kept.kind}-{topic_id.hex()}-{number}"
        return f"{self.kept.kind}-{key}"


def begin_reign(machine: Machine, epoch: int) -> None:
    if isinstance(machine, Reigning):
        machine.begin_reign(epoch)
