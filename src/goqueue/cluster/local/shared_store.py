"""The store that members of one machine share, where it is kept: behind the same port as etcd, on a ledger of the
supervisor's own. Nobody is told of a change before it is durable.

Leases are not stored. They belong to processes that end with the supervisor, so at a start all of them are over.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, takewhile

from goqueue.cluster.etcd.port import (
    EtcdCompacted,
    EtcdFault,
    KeyCompare,
    KeyPut,
    KeyValue,
    OnFault,
    OnKeys,
    OnLease,
    OnRange,
    OnTxn,
    Range,
    Txn,
)
from goqueue.machines.entries import (
    Change,
    Changed,
    ChangeEntries,
    EndLease,
    EndLeases,
    Entries,
    EntryForgotten,
    EntryStored,
    Expected,
    RevisionReached,
)
from goqueue.model.errors import GoQueueError
from goqueue.runtime.clock import Clock, Timer
from goqueue.runtime.coordinator import Coordinator
from goqueue.telemetry.logs import get_logger

OPERATIONS_MAX = 128
"""Compares of a transaction, and likewise its puts, as in etcd."""
EVENTS_KEPT = 20_000
"""For watches that go on behind what they know."""
LOOK_MS = 200
"""How often leases are looked at."""
STALL_MS = 1000
"""Looks that are further apart: this process stood still, and with it all that would have been renewed meanwhile."""

events = get_logger("store")


class SharedStore:
    """`goqueue.cluster.etcd.port.Etcd`. Invariant: every change of one revision is told to a watch in one call."""

    def __init__(self, coordinator: Coordinator[Entries], clock: Clock) -> None:
        """The coordinator is loaded, and nobody else's."""
        self._coordinator = coordinator
        self._clock = clock
        self._leases: dict[int, _Lease] = {}
        self._numbers = count(1)
        self._history: deque[tuple[int, tuple[KeyValue, ...]]] = deque()
        self._events_kept = 0
        self._revision = self._kept_from = coordinator.peek().revision
        """Up to which all is durable; and behind which all changes are in the history."""
        self._watches: dict[_Watch, None] = {}
        self._looked_s = clock.monotonic_s()
        self._timer: Timer | None = None
        self._is_closed = False
        coordinator.after_apply = self._applied
        coordinator.on_loaded = self._loaded_anew

    def start(self, on_ready: Callable[[EtcdFault | None], None]) -> None:
        """What was leased by processes of an earlier life goes first: they have ended."""
        self._look()
        self._submit(EndLeases(), lambda reply: on_ready(reply if isinstance(reply, EtcdFault) else None))

    # -- the port

    def txn(self, compares: Sequence[KeyCompare], puts: Sequence[KeyPut], on_done: OnTxn) -> None:
        fault = self._refusal(compares, puts)
        if fault is not None:
            self._soon(partial(on_done, fault))
            return

        def replied(reply: Changed | EtcdFault) -> None:
            on_done(reply if isinstance(reply, EtcdFault) else Txn(*reply))

        command = ChangeEntries([Expected(*each) for each in compares], [Change(*each) for each in puts])
        self._submit(command, replied)

    def list(self, prefix: bytes, on_done: OnRange) -> None:
        try:
            entries = self._coordinator.peek()
        except GoQueueError as error:
            self._soon(partial(on_done, EtcdFault(str(error))))
            return
        found = Range(entries.revision, [_standing(each) for each in entries.below(prefix)])
        self._coordinator.when_durable(lambda: self._soon(partial(on_done, found)))

    def watch(self, prefix: bytes, revision: int, on_keys: OnKeys, on_lost: OnFault) -> Callable[[], None]:
        watch = _Watch(prefix, revision, on_keys, on_lost)
        self._watches[watch] = None
        self._wake(watch)
        return lambda: self._end_watch(watch)

    def grant(self, ttl_s: int, on_done: OnLease) -> None:
        number = next(self._numbers)
        self._leases[number] = _Lease(ttl_s, self._clock.monotonic_s() + ttl_s)
        self._soon(partial(on_done, number))

    def revoke(self, lease: int, on_done: Callable[[EtcdFault | None], None]) -> None:
        known = self._leases.get(lease)
        if known is None:
            self._soon(partial(on_done, None))
            return
        known.is_over = True
        self._end_lease(lease, known, on_done)

    def renew(self, lease: int, on_done: OnLease) -> None:
        known = self._leases.get(lease)
        ttl_s = 0
        if known is not None and not known.is_over:
            ttl_s, known.until_s = known.ttl_s, self._clock.monotonic_s() + known.ttl_s
        self._soon(partial(on_done, ttl_s))

    def close(self) -> None:
        self._is_closed = True
        self._watches.clear()
        if self._timer is not None:
            self._timer.cancel()

    # -- changes

    def _refusal(self, compares: Sequence[KeyCompare], puts: Sequence[KeyPut]) -> EtcdFault | None:
        if max(len(compares), len(puts)) > OPERATIONS_MAX:
            return EtcdFault("too many operations in one transaction")
        if len({put.key for put in puts}) < len(puts):
            return EtcdFault("duplicate key given in one transaction")
        for put in puts:
            if not put.key or put.key.startswith(b"\0"):
                return EtcdFault(f"no key that could be stored: {put.key!r}")
            lease = self._leases.get(put.lease) if put.lease else None
            if put.lease and (lease is None or lease.is_over):
                return EtcdFault("requested lease not found")
        return None

    def _submit(
        self, command: ChangeEntries | EndLease | EndLeases, on_done: Callable[[Changed | EtcdFault], None]
    ) -> None:
        def replied(reply: Changed | GoQueueError) -> None:
            answer = EtcdFault(str(reply)) if isinstance(reply, GoQueueError) else reply
            self._soon(partial(on_done, answer))

        self._coordinator.submit(command, replied)

    def _applied(self, facts: Sequence[object]) -> None:
        revision, changed = 0, list[KeyValue]()
        for fact in facts:
            match fact:
                case RevisionReached():
                    revision = fact.revision
                case EntryStored():
                    changed.append(_standing(fact))
                case EntryForgotten():
                    changed.append(KeyValue(fact.name, None, revision, 0))
        self._coordinator.when_durable(partial(self._committed, revision, tuple(changed)))

    def _committed(self, revision: int, changed: tuple[KeyValue, ...]) -> None:
        self._revision = revision
        self._history.append((revision, changed))
        self._events_kept += len(changed)
        while self._events_kept > EVENTS_KEPT:
            self._kept_from, gone = self._history.popleft()
            self._events_kept -= len(gone)
        for watch in self._watches:
            self._wake(watch)

    def _loaded_anew(self) -> None:
        """After a fault: some changes may have been told to nobody."""
        self._revision = self._kept_from = self._coordinator.peek().revision
        self._history.clear()
        self._events_kept = 0
        for watch in list(self._watches):
            self._lose(watch)

    def _soon(self, call: Callable[[], None]) -> None:
        self._clock.call_soon(lambda: None if self._is_closed else call())

    # -- watches

    def _wake(self, watch: "_Watch") -> None:
        if not watch.is_due:
            watch.is_due = True
            self._soon(partial(self._tell, watch))

    def _tell(self, watch: "_Watch") -> None:
        watch.is_due = False
        if watch not in self._watches:
            return
        if watch.revision <= self._kept_from and watch.revision <= self._revision:
            self._lose(watch)
            return
        found = [each for each in self._since(watch.revision) if each.key.startswith(watch.prefix)]
        watch.revision = max(watch.revision, self._revision + 1)
        if found or not watch.is_told:
            watch.is_told = True
            watch.on_keys(self._revision, found)

    def _since(self, revision: int) -> Iterator[KeyValue]:
        """From the newest backwards: nearly all watches know all but the last change."""
        missed = takewhile(lambda kept: kept[0] >= revision, reversed(self._history))
        for _, changed in reversed(list(missed)):
            yield from changed

    def _lose(self, watch: "_Watch") -> None:
        self._end_watch(watch)
        self._soon(partial(watch.on_lost, EtcdCompacted(self._kept_from + 1)))

    def _end_watch(self, watch: "_Watch") -> None:
        self._watches.pop(watch, None)

    # -- leases

    def _look(self) -> None:
        self._timer = self._clock.call_after(LOOK_MS, self._look)
        now_s = self._clock.monotonic_s()
        stalled_s, self._looked_s = now_s - self._looked_s, now_s
        if stalled_s * 1000 > STALL_MS:
            events.warning("the store stood still; all sessions get their time anew", seconds=round(stalled_s, 1))
            for lease in self._leases.values():
                lease.until_s = now_s + lease.ttl_s
        for number, lease in list(self._leases.items()):
            if (lease.is_over or now_s >= lease.until_s) and not lease.is_ending:
                lease.is_over = True
                self._end_lease(number, lease, lambda fault: None)

    def _end_lease(self, number: int, lease: "_Lease", on_done: Callable[[EtcdFault | None], None]) -> None:
        """What could not be stored is tried again at the next look."""
        lease.is_ending = True

        def ended(reply: Changed | EtcdFault) -> None:
            lease.is_ending = False
            if isinstance(reply, EtcdFault):
                on_done(reply)
                return
            self._leases.pop(number, None)
            on_done(None)

        self._submit(EndLease(number), ended)


def _standing(entry: EntryStored) -> KeyValue:
    return KeyValue(entry.name, entry.value, entry.revision, entry.created, entry.lease)


class _Lease:
    __slots__ = ("is_ending", "is_over", "ttl_s", "until_s")

    def __init__(self, ttl_s: int, until_s: float) -> None:
        self.ttl_s = ttl_s
        self.until_s = until_s
        self.is_over = False
        """Nobody can renew it."""
        self.is_ending = False
        """Its entries are being removed."""


class _Watch:
    __slots__ = ("is_due", "is_told", "on_keys", "on_lost", "prefix", "revision")

    def __init__(self, prefix: bytes, revision: int, on_keys: OnKeys, on_lost: OnFault) -> None:
        self.prefix = prefix
        self.revision = revision
        """The next one that it is told of."""
        self.on_keys = on_keys
        self.on_lost = on_lost
        self.is_due = self.is_told = False
