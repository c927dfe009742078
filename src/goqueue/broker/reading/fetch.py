"""Stream reads: whole batches as bytes, from many partitions at once, parked without a task until enough is there."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from goqueue.broker.topics.topics import Topics
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.records.slice import Slice
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.journeys import Journeys, Step
from goqueue.telemetry.meters import Meters

NO_EPOCH = -1
_NONE: Final = Code.NONE  # looking up enum members costs
_FETCHED: Final = Step.FETCHED


class Want(msgspec.Struct, frozen=True, gc=False):
    """One partition of a read."""

    topic: str
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int = NO_EPOCH


class Got(msgspec.Struct, frozen=True, gc=False):
    code: Code
    high_watermark: int = -1
    last_stable_offset: int = -1
    start_offset: int = -1
    piece: Slice | None = None
    size: int = 0
    """In bytes, of the piece."""
    aborted: Sequence[tuple[int, int]] = ()
    """(producer id, first offset) of transactions whose records in `piece` must not be shown."""


class Limits(NamedTuple):
    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    is_read_committed: bool = False
    consumer: str = ""
    """Who reads, as far as it says."""


OnGot = Callable[[list[Got]], None]


class Fetcher:
    def __init__(self, topics: Topics, clock: Clock, journeys: Journeys, meters: Meters) -> None:
        self._topics = topics
        self._clock = clock
        self._journeys = journeys
        self._meters = meters

    def fetch(self, wants: Sequence[Want], limits: Limits, on_got: OnGot) -> "ParkedFetch | None":
        """Answer at once, or later: then what is returned can be cancelled."""
        started_s = self._clock.monotonic_s()
        got = self.gather(wants, limits)
        if limits.max_wait_ms <= 0 or is_enough(got, limits):
            self.note(wants, got, limits)
            on_got(got)
            self.measure(wants, got, started_s)
            return None
        return ParkedFetch(self, self._topics, self._clock, wants, limits, got, on_got)

    def note(self, wants: Sequence[Want], got: Sequence[Got], limits: Limits) -> None:
        """That this is sent."""
        now_ms = 0
        for want, one in zip(wants, got, strict=True):
            piece = one.piece
            if piece is not None and piece.next_offset > want.offset:
                now_ms = now_ms or self._clock.now_ms()
                first, last = max(want.offset, piece.first_offset), piece.next_offset - 1
                self._journeys.note(now_ms, _FETCHED, want.topic, want.partition, first, last, "", limits.consumer)

    def measure(self, wants: Sequence[Want], got: Sequence[Got], started_s: float) -> None:
        """That it was sent: once for each topic of which there was something."""
        if len(got) == 1:
            if got[0].size:
                self._meters.fetched(wants[0].topic, self._clock.monotonic_s() - started_s, got[0].size)
            return
        sizes: dict[str, int] = {}
        for want, one in zip(wants, got):
            if one.size:
                sizes[want.topic] = sizes.get(want.topic, 0) + one.size
        if sizes:
            seconds = self._clock.monotonic_s() - started_s
            for topic, size in sizes.items():
                self._meters.fetched(topic, seconds, size)

    def gather(self, wants: Sequence[Want], limits: Limits, known: Sequence[Got | None] = ()) -> list[Got]:
        """`known`: what was got before, where it would be the same again."""
        room = limits.max_bytes
        has_some = False
        found = []
        for number, want in enumerate(wants):
            got = known[number] if known else None
            if got is None:
                got = self._read(want, limits, room)
            if got.size:
                if has_some and (got.size > room or got.size > want.max_bytes):
                    # Only the first batch of all may be larger than asked for.
                    got = msgspec.structs.replace(got, piece=None, size=0, aborted=())
                has_some = True
                room = max(0, room - got.size)
            found.append(got)
        return found

    def _read(self, want: Want, limits: Limits, room: int) -> Got:
        """At least one batch: a reader must get past a batch larger than its limits."""
        try:
            replica = self._topics.replica(want.topic, want.partition)
            replica.check_fresh()
            if want.leader_epoch != NO_EPOCH:
                check_epoch(replica, want.leader_epoch)
            offset, start, high = want.offset, replica.start_offset, replica.high_watermark
            if not start <= offset <= replica.end_offset:
                raise Refused(Code.OFFSET_OUT_OF_RANGE)
            transactions = replica.producers.open_transactions
            stable = transactions.last_stable_offset(high)
            limit = stable if limits.is_read_committed else high
            piece = replica.read(offset, min(want.max_bytes, room), limit) if room > 0 and offset < limit else None
        except GoQueueError as error:
            return Got(code_of(error))
        if piece is None:
            return Got(_NONE, high, stable, start)
        aborted: Sequence[tuple[int, int]] = ()
        if limits.is_read_committed:
            aborted = transactions.aborted_in(piece.first_offset, piece.next_offset - 1)
        return Got(_NONE, high, stable, start, piece, piece.length, aborted)


def check_epoch(replica: Replica, leader_epoch: int) -> None:
    if leader_epoch == NO_EPOCH:
        return
    if leader_epoch < replica.leader_epoch:
        raise Refused(Code.FENCED_LEADER_EPOCH)
    if leader_epoch > replica.leader_epoch:
        raise Refused(Code.UNKNOWN_LEADER_EPOCH)


def is_enough(got: Sequence[Got], limits: Limits) -> bool:
    missing = limits.min_bytes
    for one in got:
        if one.code is not _NONE:
            return True
        missing -= one.size
    return missing <= 0


class ParkedFetch:
    """A read that waits: an entry in the partitions it watches and one timer, no task."""

    __slots__ = ("_clock", "_fetcher", "_got", "_limits", "_on_got", "_replicas", "_timer", "_wants")

    def __init__(
        self,
        fetcher: Fetcher,
        topics: Topics,
        clock: Clock,
        wants: Sequence[Want],
        limits: Limits,
        got: Sequence[Got],
        on_got: OnGot,
    ) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._wants = wants
        self._limits = limits
        self._got = got
        self._on_got = on_got
        self._replicas = [topics.replica(want.topic, want.partition) for want in wants]
        self._timer: Timer | None = clock.call_after(limits.max_wait_ms, self._finish)
        for replica in self._replicas:
            replica.watch(self, self._look_again)

    def _gather(self) -> list[Got]:
        """Of many partitions mostly one has changed."""
        known = [
            got
            if replica.high_watermark == got.high_watermark
            and replica.start_offset == got.start_offset
            and replica.failure is None
            else None
            for replica, got in zip(self._replicas, self._got)
        ]
        return self._fetcher.gather(self._wants, self._limits, known)

    def _look_again(self) -> None:
        got = self._gather()
        if is_enough(got, self._limits):
            self._finish(got)

    def _finish(self, got: list[Got] | None = None) -> None:
        if self._timer is None:
            return
        started_s = self._clock.monotonic_s()
        self.cancel()
        if got is None:
            got = self._gather()
        self._fetcher.note(self._wants, got, self._limits)
        self._on_got(got)
        self._fetcher.measure(self._wants, got, started_s)

    def cancel(self) -> None:
        """Its connection is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for replica in self._replicas:
            replica.unwatch(self)
