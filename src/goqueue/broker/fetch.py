"""Stream reads: whole batches as bytes, from many partitions at once, parked without a task until enough is there."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from goqueue.broker.topics import Topics, code_of
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.replica.replica import Replica, Slice
from goqueue.runtime.clock import Clock, Timer

NO_EPOCH = -1


class Want(NamedTuple):
    """One partition of a read."""

    topic: str
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int = NO_EPOCH


class Got(NamedTuple):
    code: Code
    high_watermark: int = -1
    last_stable_offset: int = -1
    start_offset: int = -1
    piece: Slice | None = None
    aborted: Sequence[tuple[int, int]] = ()
    """(producer id, first offset) of transactions whose records in `piece` must not be shown."""

    @property
    def size(self) -> int:
        return 0 if self.piece is None else self.piece.length


class Limits(NamedTuple):
    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    is_read_committed: bool = False


OnGot = Callable[[list[Got]], None]


class Fetcher:
    def __init__(self, topics: Topics, clock: Clock) -> None:
        self._topics = topics
        self._clock = clock

    def fetch(self, wants: Sequence[Want], limits: Limits, on_got: OnGot) -> "ParkedFetch | None":
        """Answer at once, or later: then what is returned can be cancelled."""
        got = self.gather(wants, limits)
        if is_enough(got, limits) or limits.max_wait_ms <= 0:
            on_got(got)
            return None
        return ParkedFetch(self, self._topics, self._clock, wants, limits, on_got)

    def gather(self, wants: Sequence[Want], limits: Limits) -> list[Got]:
        room = limits.max_bytes
        found = []
        for want in wants:
            got = self._read(want, limits, room)
            if got.size > room < limits.max_bytes:  # only the first batch of all may be larger than asked for
                got, room = got._replace(piece=None, aborted=()), 0
            room = max(0, room - got.size)
            found.append(got)
        return found

    def _read(self, want: Want, limits: Limits, room: int) -> Got:
        """At least one batch: a reader must get past a batch larger than its limits."""
        try:
            replica = self._topics.replica(want.topic, want.partition)
            check_epoch(replica, want.leader_epoch)
            limit = replica.last_stable_offset if limits.is_read_committed else replica.high_watermark
            piece = None
            if not replica.start_offset <= want.offset <= replica.high_watermark:
                raise Refused(Code.OFFSET_OUT_OF_RANGE)
            if room > 0 and want.offset < limit:
                piece = replica.read(want.offset, min(want.max_bytes, room), limit)
        except GoQueueError as error:
            return Got(code_of(error))
        aborted: Sequence[tuple[int, int]] = ()
        if limits.is_read_committed and piece is not None:
            aborted = replica.producers.open_transactions.aborted_in(piece.first_offset, piece.next_offset - 1)
        return Got(Code.NONE, replica.high_watermark, replica.last_stable_offset, replica.start_offset, piece, aborted)


def check_epoch(replica: Replica, leader_epoch: int) -> None:
    if leader_epoch == NO_EPOCH:
        return
    if leader_epoch < replica.leader_epoch:
        raise Refused(Code.FENCED_LEADER_EPOCH)
    if leader_epoch > replica.leader_epoch:
        raise Refused(Code.UNKNOWN_LEADER_EPOCH)


def is_enough(got: Sequence[Got], limits: Limits) -> bool:
    return sum(one.size for one in got) >= limits.min_bytes or any(one.code is not Code.NONE for one in got)


class ParkedFetch:
    """A read that waits: an entry in the partitions it watches and one timer, no task."""

    def __init__(
        self,
        fetcher: Fetcher,
        topics: Topics,
        clock: Clock,
        wants: Sequence[Want],
        limits: Limits,
        on_got: OnGot,
    ) -> None:
        self._fetcher = fetcher
        self._wants = wants
        self._limits = limits
        self._on_got = on_got
        self._replicas = [topics.replica(want.topic, want.partition) for want in wants]
        self._timer: Timer | None = clock.call_after(limits.max_wait_ms, self._finish)
        for replica in self._replicas:
            replica.watch(self, self._look_again)

    def _look_again(self) -> None:
        got = self._fetcher.gather(self._wants, self._limits)
        if is_enough(got, self._limits):
            self._finish(got)

    def _finish(self, got: list[Got] | None = None) -> None:
        if self._timer is None:
            return
        self.cancel()
        self._on_got(self._fetcher.gather(self._wants, self._limits) if got is None else got)

    def cancel(self) -> None:
        """Its connection is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for replica in self._replicas:
            replica.unwatch(self)
