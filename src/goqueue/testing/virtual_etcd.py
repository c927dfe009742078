"""An etcd for simulations: revisions, compares, leases and watches as the real one has them, on virtual time. There is
one server for all; each host has a handle of its own, so that it can be cut off, slowed down, or lose the answer to
what was done. All dice come from outside: the same seed gives the same run.

    etcd = VirtualEtcd(clock, Random(7))       # or VirtualEtcd(LoopTime(loop), dice)
    port = etcd.client("node-1")               # goqueue.cluster.etcd.port.Etcd
    etcd.weather_of("node-1").unanswered = 0.1
    etcd.cut("node-1"); etcd.heal()
    etcd.pause(); etcd.go_on(); etcd.kill(); etcd.go_on()
    backup = etcd.backup(); etcd.restore(backup); etcd.compact()
"""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, Protocol

from goqueue.cluster.etcd.port import EtcdCompacted, EtcdFault, KeyCompare, KeyPut, KeyValue, Range, Txn
from goqueue.testing.virtual_etcd_client import Asked, VirtualEtcdClient, Watch

DEADLINE_MS = 2000
"""After which a client gives up. What it sent may still arrive."""
HELD_MS_MAX = 12_000
"""How much later a request may arrive that a cut held up, as in the buffers of a kernel."""
LOOK_MS = 5000
"""A watch that heard nothing for so long asks whether it is still one."""
EXPIRY_MS_MAX = 500
"""etcd ends a lease so much after its time, at most."""
FIRST_LEASE = 7_000_000_001


class Time(Protocol):
    """`VirtualClock`, or `LoopTime` of a virtual loop."""

    def monotonic_s(self) -> float: ...

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> object: ...


class LoopTime:
    """The time of a virtual loop. What the server does belongs to no process: it goes on whoever is killed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def monotonic_s(self) -> float:
        return self._loop.time()

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> object:
        return self._loop.call_later(delay_ms / 1000, call, context=Context())


@dataclass
class EtcdWeather:
    """Of one host, or of all. Shares are from 0 to 1."""

    delay_ms: tuple[float, float] = (0.3, 3.0)
    """Each way."""
    slow: float = 0.0
    """Share of messages, either way and to watchers too, that take `slow_ms` instead."""
    slow_ms: tuple[float, float] = (50.0, 1500.0)
    late: float = 0.0
    """Share of requests that arrive after `late_ms`, when nobody waits for the answer any more."""
    late_ms: tuple[float, float] = (2000.0, 12_000.0)
    lost: float = 0.0
    """Share of requests that never arrive."""
    unanswered: float = 0.0
    """Share of requests that are done and whose answer is lost."""
    broken: float = 0.0
    """Share of messages to watchers in whose place the stream breaks."""
    watch_ms: tuple[float, float] = (0.0, 0.0)
    """What a change takes to a watcher beyond `delay_ms`."""


@dataclass
class Lease:
    ttl_s: int
    until_s: float
    keys: dict[bytes, None] = field(default_factory=dict)
    is_armed: bool = False


class Backup(NamedTuple):
    revision: int
    keys: dict[bytes, KeyValue]
    leases: dict[int, tuple[int, tuple[bytes, ...]]]


class VirtualEtcd:
    """Invariant: every change of one revision is told to a watcher in one call, and revisions only rise (but for a
    restored backup)."""

    def __init__(self, time: Time, dice: Random, weather: EtcdWeather | None = None) -> None:
        self.time = time
        self.dice = dice
        self.weather = weather if weather is not None else EtcdWeather()
        self.revision = 1
        self.compacted = 0
        self.keys: dict[bytes, KeyValue] = {}
        """What there is now."""
        self.leases: dict[int, Lease] = {}
        self.on_change: list[Callable[[int, Sequence[KeyValue]], None]] = []
        """Called at once with every change, before anybody else can know of it: for those who look for faults."""
        self._weathers: dict[str, EtcdWeather] = {}
        self._history: list[tuple[int, tuple[KeyValue, ...]]] = []
        self._watches: dict[Watch, None] = {}
        self._cuts: dict[str, tuple[bool, bool]] = {}
        self._held: list[tuple[float, Asked]] = []
        self._is_paused = self._is_killed = False
        self._leases_made = 0

    def client(self, host: str) -> VirtualEtcdClient:
        """The port of one process; a process that was started again gets another."""
        return VirtualEtcdClient(self, host)

    # -- what a test does to it

    def weather_of(self, host: str) -> EtcdWeather:
        """Of this host alone, from now on."""
        return self._weathers.setdefault(host, EtcdWeather(**vars(self.weather)))

    def forget_weathers(self) -> None:
        """All hosts have the weather of all again."""
        self._weathers.clear()

    def cut(self, host: str, *, requests: bool = True, answers: bool = True) -> None:
        """Nothing gets there, or nothing back, or both. Half of the requests are held up and arrive when it heals, if
        that is soon."""
        self._cuts[host] = (requests, answers)

    def heal(self, host: str | None = None) -> None:
        if host is None:
            self._cuts.clear()
        else:
            self._cuts.pop(host, None)
        self._go_on()

    def pause(self) -> None:
        """All members stop for a while: requests wait, leases do not end."""
        self._is_paused = True

    def kill(self) -> None:
        """All members are gone, and what they have saved is kept: requests are refused, watches end."""
        self._is_killed = True
        for watch in list(self._watches):
            self._lose(watch, EtcdFault("the connection to etcd was reset"))

    def go_on(self) -> None:
        """After `pause` or `kill`. Every lease gets its full time anew, as under a new leader of etcd."""
        self._is_paused = self._is_killed = False
        self._renew_all()
        self._go_on()

    def compact(self, revision: int | None = None) -> None:
        """Forget the history before `revision`; None: all that can be forgotten."""
        self.compacted = max(self.compacted, self.revision if revision is None else revision)
        self._history = [one for one in self._history if one[0] >= self.compacted]

    def backup(self) -> Backup:
        leases = {number: (lease.ttl_s, tuple(lease.keys)) for number, lease in self.leases.items()}
        return Backup(self.revision, dict(self.keys), leases)

    def restore(self, backup: Backup) -> None:
        """All is as it was then, revisions too. Watches end."""
        self.revision = self.compacted = backup.revision
        self.keys, self._history = dict(backup.keys), []
        self.leases = {
            number: Lease(ttl_s, 0.0, dict.fromkeys(keys)) for number, (ttl_s, keys) in backup.leases.items()
        }
        self._renew_all()
        for watch in list(self._watches):
            self._lose(watch, EtcdFault("etcd was restored from a backup"))

    # -- what clients ask, as the server does it

    def do_txn(self, compares: Sequence[KeyCompare], puts: Sequence[KeyPut]) -> Txn:
        for compare in compares:
            known = self.keys.get(compare.key)
            if ((known.mod_revision if known is not None else 0) == compare.revision) is not compare.is_equal:
                return Txn(False, self.revision)
        if len({put.key for put in puts}) < len(puts):
            raise EtcdFault("etcdserver: duplicate key given in txn request")
        if any(put.lease and put.lease not in self.leases for put in puts):
            raise EtcdFault("etcdserver: requested lease not found")
        self._change(puts)
        return Txn(True, self.revision)

    def do_list(self, prefix: bytes) -> Range:
        return Range(self.revision, [self.keys[key] for key in sorted(self.keys) if key.startswith(prefix)])

    def do_grant(self, ttl_s: int) -> int:
        self._leases_made += 1
        number = FIRST_LEASE + self._leases_made
        self.leases[number] = Lease(ttl_s, self.time.monotonic_s() + ttl_s)
        self._arm(number)
        return number

    def do_revoke(self, number: int) -> None:
        lease = self.leases.pop(number, None)
        if lease is not None:
            self._change([KeyPut(key, None) for key in sorted(lease.keys)])

    def do_renew(self, number: int) -> int:
        lease = self.leases.get(number)
        if lease is None:
            return 0
        lease.until_s = self.time.monotonic_s() + lease.ttl_s
        return lease.ttl_s

    # -- the way of a request

    def send(self, asked: Asked) -> None:
        weather, dice = self._weather(asked.host), self.dice
        self.time.call_after(DEADLINE_MS, asked.give_up)
        if dice.random() < weather.lost:
            return
        delay_ms = dice.uniform(*weather.late_ms) if dice.random() < weather.late else self._delay_ms(weather)
        self.time.call_after(delay_ms, lambda: self._arrive(asked))

    def _arrive(self, asked: Asked) -> None:
        if self._is_killed:
            self._answer(asked, EtcdFault("etcd refuses connections"))
        elif self._is_paused:
            self._held.append((self.time.monotonic_s(), asked))
        elif self._cuts.get(asked.host, (False, False))[0]:
            if self.dice.random() < 0.5:
                self._held.append((self.time.monotonic_s(), asked))
        else:
            try:
                answer = asked.do()
            except EtcdFault as fault:
                answer = fault
            if self.dice.random() >= self._weather(asked.host).unanswered:
                self._answer(asked, answer)

    def _answer(self, asked: Asked, answer: object) -> None:
        def come() -> None:
            if not self._cuts.get(asked.host, (False, False))[1]:
                asked.finish(answer)

        self.time.call_after(self._delay_ms(self._weather(asked.host)), come)

    def _go_on(self) -> None:
        held, self._held = self._held, []
        for at_s, asked in held:
            if (self.time.monotonic_s() - at_s) * 1000 <= HELD_MS_MAX:
                self.time.call_after(self._delay_ms(self._weather(asked.host)), lambda asked=asked: self._arrive(asked))  # type: ignore[misc]
        for watch in list(self._watches):
            self._wake(watch)

    def _weather(self, host: str) -> EtcdWeather:
        return self._weathers.get(host, self.weather)

    def _delay_ms(self, weather: EtcdWeather) -> float:
        return self.dice.uniform(*(weather.slow_ms if self.dice.random() < weather.slow else weather.delay_ms))

    # -- changes and leases

    def _change(self, puts: Sequence[KeyPut]) -> None:
        revision = self.revision + 1
        events: list[KeyValue] = []
        for put in puts:
            before = self.keys.get(put.key)
            if before is None and put.value is None:
                continue
            if before is not None and before.lease in self.leases:
                self.leases[before.lease].keys.pop(put.key, None)
            if put.value is None:
                del self.keys[put.key]
                events.append(KeyValue(put.key, None, revision, 0))
                continue
            created = before.create_revision if before is not None else revision
            self.keys[put.key] = KeyValue(put.key, put.value, revision, created, put.lease)
            events.append(self.keys[put.key])
            if put.lease:
                self.leases[put.lease].keys[put.key] = None
        if not events:
            return
        self.revision = revision
        self._history.append((revision, tuple(events)))
        for look in self.on_change:
            look(revision, events)
        for watch in list(self._watches):
            self._wake(watch)

    def _renew_all(self) -> None:
        for number, lease in self.leases.items():
            lease.until_s = self.time.monotonic_s() + lease.ttl_s
            self._arm(number)

    def _arm(self, number: int) -> None:
        lease = self.leases[number]
        if not lease.is_armed:
            lease.is_armed = True
            left_ms = max(0.0, lease.until_s - self.time.monotonic_s()) * 1000
            late_ms = self.dice.uniform(1, EXPIRY_MS_MAX)
            self.time.call_after(left_ms + late_ms, lambda: self._look_at_lease(number, lease))

    def _look_at_lease(self, number: int, lease: Lease) -> None:
        lease.is_armed = False
        if self.leases.get(number) is not lease or self._is_paused or self._is_killed:
            return
        if self.time.monotonic_s() < lease.until_s:
            self._arm(number)
        else:
            self.do_revoke(number)

    # -- watches

    def add_watch(self, watch: Watch) -> None:
        self._watches[watch] = None
        self._wake(watch, tells_progress=True)
        self._look_later(watch)

    def end_watch(self, watch: Watch) -> None:
        self._watches.pop(watch, None)

    def _wake(self, watch: Watch, *, tells_progress: bool = False) -> None:
        watch.tells_progress |= tells_progress
        if not watch.is_due and (watch.tells_progress or watch.revision <= self.revision):
            watch.is_due = True
            weather = self._weather(watch.host)
            delay_ms = self._delay_ms(weather) + self.dice.uniform(*weather.watch_ms)
            self.time.call_after(delay_ms, lambda: self._tell(watch))

    def _is_silent(self, watch: Watch) -> bool:
        return self._is_paused or self._is_killed or any(self._cuts.get(watch.host, (False, False)))

    def _tell(self, watch: Watch) -> None:
        watch.is_due = False
        if watch not in self._watches or watch.is_over:
            return
        if self._is_killed:
            self._lose(watch, EtcdFault("etcd refuses connections"))
        elif self._is_silent(watch):
            return  # it is told when that is over, or found silent
        elif watch.revision < self.compacted:
            self._lose(watch, EtcdCompacted(self.compacted))
        elif self.dice.random() < self._weather(watch.host).broken:
            self._lose(watch, EtcdFault("the stream broke"))
        else:
            changes = [one for one in self._history if one[0] >= watch.revision]
            events = [event for _, some in changes for event in some if event.key.startswith(watch.prefix)]
            told, watch.tells_progress = watch.tells_progress, False
            watch.revision = max(watch.revision, self.revision + 1)
            if events or told:
                watch.tell(watch.revision - 1 if events else self.revision, events)

    def _look_later(self, watch: Watch) -> None:
        def look() -> None:
            if watch not in self._watches:
                return
            if watch.is_over:
                self.end_watch(watch)
            elif self._is_silent(watch):
                self._lose(watch, EtcdFault("etcd does not answer on the stream"))
            else:
                self._wake(watch, tells_progress=True)
                self._look_later(watch)

        self.time.call_after(LOOK_MS, look)

    def _lose(self, watch: Watch, fault: EtcdFault) -> None:
        self.end_watch(watch)
        watch.lose(fault)
