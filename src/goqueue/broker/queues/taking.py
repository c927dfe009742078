"""Taking records out of one place: what is leased, with the batches that hold it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from goqueue.broker.queues.leased_records import Leased, LeasedSlices, read_slices
from goqueue.broker.queues.queues import Queues
from goqueue.machines.deliveries.commands import How, LeasedRun, LeaseReply, Place, Settle, Settlement
from goqueue.model.errors import GoQueueError
from goqueue.model.starts import EARLIEST
from goqueue.replica.replica import Replica

BYTES_MAX = 50 * 1024 * 1024

_new_tuple = tuple.__new__


class ReceiveRequest(NamedTuple):
    group_id: str
    consumer: str
    places: Sequence[tuple[str, int]]
    """Topic and partition, in the order in which to look."""
    records_max: int
    bytes_max: int = BYTES_MAX
    wait_ms: int = 0
    lease_ms: int | None = None
    """None: as topic and group say."""
    start: str = EARLIEST
    """Where a group begins that is new in a place and has no option of its own for it."""
    is_member: bool = False
    """Of a consumer group: nobody else may read with the name of one."""
    is_opened: bool = True
    """Whoever asks will `read` what was leased. False: it is sent as it is stored, by the leader."""
    is_read: bool = True
    """False: which offsets were leased is enough."""


class LeasedPlace(NamedTuple):
    """What was leased in one partition, or why nothing can be."""

    topic: str
    partition: int
    error: GoQueueError | None = None
    slices: LeasedSlices | None = None
    lease: int = 0
    deadline_ms: int = 0
    replica: Replica | None = None
    order: Sequence[int] = ()
    """The first offsets of the runs, in the order in which the lanes were served."""
    records: Sequence[Leased] | None = None
    """Of another node: as it has read them."""
    end: int = 0
    """Of another node: the high watermark there."""
    epoch: int = 0
    """Of the leader that has leased it."""


class Parked(Protocol):
    """A request that waits."""

    @property
    def is_over(self) -> bool: ...

    def cancel(self) -> None: ...


class Taking:
    def __init__(self, queues: Queues, look_further: Callable[[Place], None]) -> None:
        self._queues = queues
        self._look_further = look_further
        """Much lies in the log that nobody has looked at."""

    def plain(
        self, place: Place, request: ReceiveRequest, records_max: int, bytes_max: int, *, is_first: bool
    ) -> LeasedPlace | None:
        """What comes next, if it is plain. None: `take` may find something."""
        taken = self._queues.take(place, request.consumer, records_max, request.lease_ms)
        if taken is None:
            return None
        replica, reply = taken
        return self._with_slices(place, replica, reply, bytes_max, is_first=is_first)

    def take(
        self, place: Place, request: ReceiveRequest, records_max: int, bytes_max: int, *, is_first: bool
    ) -> LeasedPlace | None:
        replica = self._queues.observe(place)
        reply = self._queues.lease(place, request.consumer, records_max, request.lease_ms)
        if isinstance(reply, GoQueueError):
            try:
                raise reply.kept()
            finally:
                del reply  # the error holds this frame
        if self._queues.is_behind(place, replica):
            self._look_further(place)
        return self._with_slices(place, replica, reply, bytes_max, is_first=is_first) if reply.runs else None

    def _with_slices(
        self, place: Place, replica: Replica, reply: LeaseReply, bytes_max: int, *, is_first: bool
    ) -> LeasedPlace:
        runs, lease = reply.runs, reply.lease
        try:
            slices = read_slices(replica, runs, bytes_max, is_first=is_first)
        except GoQueueError:
            self.settle_runs(place, runs, lease, How.UNDO)  # it reached nobody
            raise
        if slices.left_out:
            self.settle_runs(place, slices.left_out, lease, How.UNDO)
        order = [run.first for run in runs] if len(runs) > 1 else ()
        _, topic, partition = place
        fields = topic, partition, None, slices, lease, reply.deadline_ms, replica, order, None, 0, replica.leader_epoch
        return _new_tuple(LeasedPlace, fields)

    def settle_runs(self, place: Place, runs: Sequence[LeasedRun], lease: int, how: How, reason: str = "") -> None:
        settlements = tuple(Settlement(run.first, run.last, how, 0, reason, lease) for run in runs)
        self._queues.submit(Settle(place, settlements))
