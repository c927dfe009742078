"""The markers of transactions: what was decided is written into every partition and told to every group that took part,
on this node or another, until all of them have it.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from goqueue.broker.shards import shard_of_transaction
from goqueue.broker.topics.topics import Topics
from goqueue.broker.transactions.shards import TransactionShards
from goqueue.broker.transactions.verified import Verified
from goqueue.machines.delays.commands import ScheduleReply
from goqueue.machines.groups.commands import CodeReply as GroupReply
from goqueue.machines.groups.commands import EndTransactionOffsets
from goqueue.machines.transactions.commands import AddGroup, AddPartitions, MarkerJob, MarkersWritten, Partition
from goqueue.machines.transactions.commands import CodeReply as TransactionReply
from goqueue.machines.transactions.machine import TransactionMachine
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, NotCoordinator
from goqueue.model.refusal import NotLeader, Refused
from goqueue.model.transactions import Hanging
from goqueue.records.batch import check_batch
from goqueue.records.control import ControlKind, build_control
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator
from goqueue.telemetry.logs import get_logger

RETRY_MS = 1000
MOVED_MS = 50
"""After which one is tried again whose partition changes its leader: its producer waits for it."""

events = get_logger("broker")


OnEnded: TypeAlias = Callable[[GoQueueError | None], None]
"""None: the transaction is over there."""


class Ends(NamedTuple):
    """Who else must hear that a transaction is over."""

    offsets: Callable[[str, EndTransactionOffsets, OnReply[GroupReply]], None]
    """of a group"""
    schedules: Callable[[Partition, tuple[int, int], bool, OnReply[ScheduleReply | None]], None]
    """partition, producer id and epoch, whether it was committed"""


class Elsewhere(Protocol):
    """Coordinators and leaders on other nodes."""

    def enlist(self, command: AddPartitions | AddGroup, joins: bool, on_reply: OnReply[TransactionReply]) -> None:
        """Let it join, or ask whether it has: a CodeReply, or an error."""

    def end_in_partition(self, job: MarkerJob, place: Partition, done: OnEnded) -> None:
        """`done` gets None, or why the transaction is not over there."""


class Markers:
    def __init__(
        self,
        shards: TransactionShards,
        topics: Topics,
        clock: Clock,
        ends: Ends,
        submit: Callable[[MarkersWritten, OnReply[TransactionReply]], None],
    ) -> None:
        self._shards = shards
        self._topics = topics
        self._clock = clock
        self._ends = ends
        self._submit = submit
        self._under_way: set[tuple[str, int, Partition | str]] = set()
        self.elsewhere: Elsewhere | None = None
        """In a cluster."""
        self.verified = Verified()

    def write(self, coordinator: Coordinator[TransactionMachine], names: Iterable[str]) -> None:
        if not coordinator.is_active:
            return  # it asks what is due when it is loaded
        for job in coordinator.peek().markers_due(names):
            places: list[Partition | str] = [*job.partitions, *job.groups]
            for place in places:
                key = (job.transactional_id, job.serial, place)
                if key not in self._under_way:
                    self._under_way.add(key)
                    try:
                        self._write_one(job, place, key)
                    except Exception as fault:  # noqa: BLE001  else its producer would wait for this marker for ever
                        self._under_way.discard(key)
                        events.error(
                            "marker failed", transaction=job.transactional_id, place=str(place), exc_info=fault
                        )
                        self._later(job.transactional_id)

    def _later(self, name: str, delay_ms: int = RETRY_MS) -> None:
        """They are still due."""
        coordinator = self._shards.find(name)
        if coordinator is not None:
            self._clock.call_after(delay_ms, partial(self.write, coordinator, [name]))

    def _write_one(self, job: MarkerJob, place: Partition | str, key: tuple[str, int, Partition | str]) -> None:
        def noted(reply: TransactionReply | GoQueueError) -> None:
            if isinstance(reply, GoQueueError):
                self._later(job.transactional_id)

        def done(reply: object = None) -> None:
            self._under_way.discard(key)
            if isinstance(reply, NotLeader | NotCoordinator):
                self._later(job.transactional_id, MOVED_MS)
                return
            if isinstance(reply, GoQueueError) and not _is_over(reply):
                events.error(
                    "marker not written", transaction=job.transactional_id, place=str(place), reason=str(reply)
                )
                self._later(job.transactional_id)
                return
            is_group = isinstance(place, str)
            self._submit(
                MarkersWritten(
                    job.transactional_id,
                    job.producer_id,
                    job.serial,
                    () if is_group else (place,),  # type: ignore[arg-type]
                    (place,) if is_group else (),  # type: ignore[arg-type]
                ),
                noted,
            )

        if isinstance(place, str):
            self._ends.offsets(place, _end_of_offsets(job), lambda reply: done(_fenced(reply)))
        elif self.elsewhere is not None and not self._topics.leads(*place):
            self.elsewhere.end_in_partition(job, place, done)
        else:
            self.end_here(job, place, done)

    def end_here(self, job: MarkerJob | Hanging, place: Partition, done: OnEnded) -> None:
        """`done` gets None, or why it is not over. First what was delayed: once the marker stands in the log, nobody
        asks for this partition again. A coordinator that was deposed is refused before: what it says is about a
        transaction that may be over."""
        resting = self._topics.find_replica(*place)
        if resting is not None and resting.is_resting:
            resting.when_awake(lambda: self.end_here(job, place, done))
            return
        refused = self._refused(job, place)
        if refused is not None:
            done(refused)
            return
        self._ends.schedules(
            place,
            (job.producer_id, job.epoch),
            job.commit,
            lambda reply: done(reply) if isinstance(reply, GoQueueError) else self._append_marker(job, place, done),
        )

    def _refused(self, job: MarkerJob | Hanging, place: Partition) -> GoQueueError | None:
        try:
            producers = self._topics.replica(*place).producers
        except GoQueueError as error:
            return error
        verdict = producers.check_marker(job.producer_id, job.epoch, job.coordinator_epoch)
        return Refused(verdict) if verdict is Code.TRANSACTION_COORDINATOR_FENCED else None

    def _append_marker(self, job: MarkerJob | Hanging, place: Partition, done: OnEnded) -> None:
        """`done` gets None, or why there is no marker."""
        self.verified.ended(job.producer_id, place)
        try:
            replica = self._topics.replica(*place)
            kind = ControlKind.COMMIT if job.commit else ControlKind.ABORT
            now_ms = self._clock.now_ms()
            marker = build_control(
                kind,
                producer_id=job.producer_id,
                producer_epoch=job.epoch,
                coordinator_epoch=job.coordinator_epoch,
                timestamp=now_ms,
            )
            replica.append_marker(check_batch(memoryview(marker)), job.coordinator_epoch, now_ms)
        except GoQueueError as error:
            done(error)
            return
        replica.when_reached(replica.end_offset, lambda: done(replica.failure))


def _is_over(error: GoQueueError) -> bool:
    """The topic is gone, or a newer producer has been there: there is nothing left to end."""
    return isinstance(error, Refused) and error.code in (Code.UNKNOWN_TOPIC_OR_PARTITION, Code.INVALID_PRODUCER_EPOCH)


def _end_of_offsets(job: MarkerJob) -> EndTransactionOffsets:
    shard = shard_of_transaction(job.transactional_id)
    return EndTransactionOffsets(
        job.producer_id, job.epoch, job.commit, job.written_epoch, shard, job.coordinator_epoch
    )


def _fenced(reply: GroupReply | GoQueueError) -> GroupReply | GoQueueError:
    """A group's refusal, as a partition says it."""
    is_fenced = isinstance(reply, GroupReply) and reply.code is Code.TRANSACTION_COORDINATOR_FENCED
    return Refused(Code.TRANSACTION_COORDINATOR_FENCED) if is_fenced else reply
