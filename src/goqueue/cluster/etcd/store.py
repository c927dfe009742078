"""Metadata in etcd, behind the calls of any store. What was listed and what is watched belong together: a watch goes on
behind the last listing, and when etcd has dropped what lies between, everything is listed anew.
"""

from collections.abc import Callable, Sequence

from goqueue.cluster.etcd.codec import decode_entry, encode_compares, encode_puts
from goqueue.cluster.etcd.keys import MetadataUnreadable, key_path
from goqueue.cluster.etcd.port import (
    Etcd,
    EtcdCompacted,
    EtcdFault,
    KeyValue,
    OnLease,
    Range,
    Txn,
)
from goqueue.cluster.store import OnDone, OnEvents, OnListed
from goqueue.model.metadata import ABSENT, Committed, Conflict, Event, Key, Listing, Step
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.logs import get_logger

events = get_logger("cluster")

OPERATIONS_MAX = 128
"""Compares of a transaction, and likewise its puts: more are refused by etcd."""
RETRY_MS_MIN, RETRY_MS_MAX = 50, 1000
UNREADABLE_RETRY_MS = 5000
SHOWN_WITHIN_MS = 1000
CONFLICT_SHOWN_WITHIN_MS = 100

OnRead = Callable[[Event | EtcdFault | MetadataUnreadable], None]


class EtcdStore:
    """Invariant: whoever is told that a change was made has been told of the change itself, unless the watch is more
    than a second behind."""

    def __init__(self, etcd: Etcd, prefix: str, clock: Clock) -> None:
        self._etcd = etcd
        self._prefix = prefix
        self._clock = clock
        self._on_events: OnEvents = lambda events: None
        self._on_lost: Callable[[], None] = lambda: None
        self._end_watch: Callable[[], None] = lambda: None
        self._round = 0
        """Of listing and watching: whatever belongs to an earlier one comes too late."""
        self._is_listing_due = False
        """Whoever lists now is the one who watches."""
        self._retry_ms = RETRY_MS_MIN
        self._timers: dict[object, Timer] = {}
        self._unseen: list[_Unseen] = []
        self._is_stopped = False
        self.revision = 0
        """Up to here, everything was told."""
        self.unreadable: MetadataUnreadable | None = None
        """Why nothing is decided at the moment."""
        self._lost_s: float | None = None
        """Since when changes are not heard of; None: they are."""

    def start(self) -> None:
        """Whoever watches is told to list."""
        self._list_anew()

    def stop(self) -> None:
        """Nobody is told anything any more."""
        self._is_stopped = True
        self._begin_round()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._unseen.clear()

    def age_s(self) -> float:
        """For how long changes have not been heard of. That the watch is lost is noticed within some seconds."""
        return 0.0 if self._lost_s is None else self._clock.monotonic_s() - self._lost_s

    # -- the calls of a store

    def list(self, on_listed: OnListed) -> None:
        """Tried until it succeeds: reading twice does no harm. The watch goes on behind what was listed when that was
        asked for by `on_lost`; whoever lists otherwise disturbs nobody."""
        is_watched, self._is_listing_due = self._is_listing_due, False
        self._list(self._round if is_watched else None, on_listed)

    def watch(self, on_events: OnEvents, on_lost: Callable[[], None]) -> None:
        self._on_events, self._on_lost = on_events, on_lost

    def txn(self, step: Step, on_done: OnDone) -> None:
        assert max(len(step.compares), len(step.puts)) <= OPERATIONS_MAX, "etcd takes no more"
        if self.unreadable is not None:
            refusal = self.unreadable
            self._clock.call_soon(lambda: on_done(refusal))
            return
        asked_at = self.revision

        def done(outcome: Txn | EtcdFault) -> None:
            if self._is_stopped:
                return
            if isinstance(outcome, EtcdFault):
                on_done(outcome)
            elif not self._is_ahead(asked_at, outcome.revision):
                assert self.unreadable is not None
                on_done(self.unreadable)
            elif outcome.is_done:
                self._when_seen(outcome.revision, SHOWN_WITHIN_MS, lambda: on_done(Committed(outcome.revision)))
            else:
                # Whoever decides anew should decide from what was in the way.
                self._when_seen(outcome.revision, CONFLICT_SHOWN_WITHIN_MS, lambda: on_done(Conflict(outcome.revision)))

        self._etcd.txn(encode_compares(self._prefix, step.compares), encode_puts(self._prefix, step.puts), done)

    # -- beside those of a store

    def read(self, key: Key, on_read: OnRead) -> None:
        """One key as it stands now, whatever the watch has told: a write whose answer was lost is looked up by this. A
        key that there is not has the revision ABSENT."""
        whole = (self._prefix + key_path(key)).encode()

        def found(entries: Range | EtcdFault) -> None:
            if self._is_stopped:
                return
            if isinstance(entries, EtcdFault):
                on_read(entries)
                return
            try:
                standing = self._decode([each for each in entries.entries if each.key == whole])
            except MetadataUnreadable as error:
                on_read(error)
                return
            on_read(standing[0] if standing else Event(key, None, ABSENT))

        self._etcd.list(whole, found)

    def grant(self, ttl_s: int, on_done: OnLease) -> None:
        self._etcd.grant(ttl_s, on_done)

    def revoke(self, lease: int, on_done: Callable[[EtcdFault | None], None]) -> None:
        self._etcd.revoke(lease, on_done)

    def renew(self, lease: int, on_done: OnLease) -> None:
        self._etcd.renew(lease, on_done)

    # -- listing and watching

    def _begin_round(self) -> int:
        self._end_watch()
        self._end_watch = lambda: None
        self._lose_sight()
        self._round += 1
        return self._round

    def _lose_sight(self) -> None:
        if self._lost_s is None:
            self._lost_s = self._clock.monotonic_s()

    def _list_anew(self) -> None:
        self._begin_round()
        self._is_listing_due = True
        self._on_lost()

    def _list(self, number: int | None, on_listed: OnListed) -> None:
        """`number`: the round whose watch follows."""
        asked_at = self.revision

        def listed(found: Range | EtcdFault) -> None:
            if self._is_too_late(number):
                return
            if isinstance(found, EtcdFault):
                self._later(self._next_retry_ms(), again)
                return
            if not self._is_ahead(asked_at, found.revision):
                return
            try:
                entries = self._decode(found.entries)
            except MetadataUnreadable as error:
                self._say_unreadable(error)
                self._later(UNREADABLE_RETRY_MS, again)
                return
            self._say_readable()
            self._retry_ms = RETRY_MS_MIN
            on_listed(Listing(found.revision, entries))
            if number is not None and not self._is_too_late(number):
                self._lost_s = None
                self._seen(found.revision)
                self._watch(number)

        def again() -> None:
            if not self._is_too_late(number):
                self._list(number, on_listed)

        self._etcd.list(self._prefix.encode(), listed)

    def _is_too_late(self, number: int | None) -> bool:
        return self._is_stopped or (number is not None and number != self._round)

    def _watch(self, number: int) -> None:
        if self._is_too_late(number):
            return

        def told(revision: int, entries: Sequence[KeyValue]) -> None:
            if number != self._round:
                return
            self._retry_ms = RETRY_MS_MIN
            try:
                changed = self._decode(entries)
            except MetadataUnreadable as error:
                self._say_unreadable(error)
                self._begin_round()
                self._later(UNREADABLE_RETRY_MS, self._list_anew)
                return
            self._lost_s = None
            if changed:
                self._on_events(changed)
            self._seen(revision)

        def lost(fault: EtcdFault) -> None:
            if number != self._round:
                return
            self._end_watch = lambda: None
            self._lose_sight()
            if isinstance(fault, EtcdCompacted):
                events.info("etcd_history_compacted", revision=self.revision, kept_from=fault.revision)
                self._list_anew()
            else:
                self._later(self._next_retry_ms(), lambda: self._watch(number))

        self._end_watch = self._etcd.watch(self._prefix.encode(), self.revision + 1, told, lost)

    def _decode(self, entries: Sequence[KeyValue]) -> Sequence[Event]:
        return [event for each in entries if (event := decode_entry(self._prefix, each)) is not None]

    # -- who waits for the watch

    def _when_seen(self, revision: int, within_ms: int, call: Callable[[], None]) -> None:
        if revision <= self.revision:
            call()
            return
        waiting = _Unseen(revision, call)
        self._unseen.append(waiting)
        self._later(within_ms, lambda: self._give_up(waiting))

    def _seen(self, revision: int) -> None:
        self.revision = max(self.revision, revision)
        ready = [each for each in self._unseen if each.revision <= self.revision]
        if ready:
            self._unseen = [each for each in self._unseen if each.revision > self.revision]
            for each in ready:
                each.call()

    def _give_up(self, waiting: "_Unseen") -> None:
        if waiting in self._unseen:
            self._unseen.remove(waiting)
            waiting.call()

    def _later(self, delay_ms: int, call: Callable[[], None]) -> None:
        token = object()

        def due() -> None:
            del self._timers[token]
            call()

        self._timers[token] = self._clock.call_after(delay_ms, due)

    def _next_retry_ms(self) -> int:
        retry_ms, self._retry_ms = self._retry_ms, min(self._retry_ms * 2, RETRY_MS_MAX)
        return retry_ms

    # -- what must not be acted on

    def _is_ahead(self, asked_at: int, revision: int) -> bool:
        """Revisions only rise, and these answers come from the whole of etcd. One that has gone back was restored from
        a backup: what it says of replicas may be wrong, and only a start of this node checks that."""
        if revision >= asked_at:
            return True
        self._begin_round()
        self._say_unreadable(
            MetadataUnreadable(
                f"etcd has gone back from revision {asked_at} to {revision}: it was restored from a backup, or is"
                " another one. Nothing is decided from it; start this node again once it is the right one"
            )
        )
        return False

    def _say_unreadable(self, error: MetadataUnreadable) -> None:
        if self.unreadable is None or str(self.unreadable) != str(error):
            events.error("metadata_unreadable", error=str(error))
        self.unreadable = error

    def _say_readable(self) -> None:
        if self.unreadable is not None:
            events.info("metadata_readable_again")
        self.unreadable = None


class _Unseen:
    __slots__ = ("call", "revision")

    def __init__(self, revision: int, call: Callable[[], None]) -> None:
        self.revision = revision
        self.call = call
