"""One node's copy of a partition, as leader or as follower of an epoch. The high watermark moves by the rule of the
role alone: with one copy it is what its log acknowledges, with more what all in-sync copies hold. Whoever waits for it,
waits here.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from goqueue.machines.partitions.producer_state import ACCEPT, Before, Duplicate
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, OffsetOutOfRange, StaleEpoch
from goqueue.model.refusal import NotLeader, Refused
from goqueue.model.topics import TopicOptions
from goqueue.records.batch import LENGTH_END, NO_EPOCH, NO_PRODUCER, Batch
from goqueue.records.rewrite import stamp_append_time
from goqueue.replica.persisted import Persisted
from goqueue.replica.producer_snapshots import ProducerSnapshots
from goqueue.replica.reads import NO_TIMESTAMP, LogReads
from goqueue.replica.roles import Following, Leading, Reign, Role
from goqueue.storage.log import Log
from goqueue.storage.options import LogOptions
from goqueue.storage.segment_reads import Slice
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.logs import get_logger

events = get_logger("replica")

__all__ = ["NO_TIMESTAMP", "Appended", "Defer", "Replica", "Slice"]

SNAPSHOT_BYTES = 64 * 1024 * 1024
"""How much log may come behind the last saved producer state: what a start must walk over."""
NOBODY = -1

_new_tuple = tuple.__new__

Defer = Callable[[Callable[[], None]], object]
"""Run a call soon, once, in this thread: many appends of one moment wake a reader once."""


class Appended(NamedTuple):
    base_offset: int
    next_offset: int
    """Acknowledge when the high watermark has reached it."""
    append_time: int
    """When the topic stamps records itself, else NO_TIMESTAMP."""


class Replica(LogReads):
    """Belongs to one thread, like its log.

    Invariant: the high watermark is not above the end of the log, and falls only with a truncation.
    """

    def __init__(self, log: Log, name: str, *, reign: Reign, options: TopicOptions, defer: Defer) -> None:
        super().__init__(log, name, options)
        self.role: Role = Following(NO_EPOCH, NOBODY)
        self.leader_epoch = NO_EPOCH
        self.high_watermark = log.start_offset
        """Everything below it is on every in-sync copy and may be read and acknowledged."""
        self._not_leader: NotLeader | None = None
        self._snapshots = ProducerSnapshots(log, name)
        self.producers = self._snapshots.load()
        self.defer = defer
        self._watchers: dict[object, Callable[[], None]] = {}
        self._wake_is_due = False
        self._snapshot_due_at = SNAPSHOT_BYTES
        self.appended_batches = 0
        self.appended_bytes = 0
        self.lead(reign)
        self.persisted = Persisted(self.high_watermark)
        log.on_synced = lambda log: self._synced()
        log.committed_offset = lambda: self.high_watermark

    # -- facts

    @property
    def lacks_copies(self) -> bool:
        """Fewer copies are in sync than its topic asks for: what needs an acknowledgement of all is not taken."""
        return self.options.min_insync_replicas > self.copies_in_sync

    @property
    def copies_in_sync(self) -> int:
        return len(self.role.view.isr) if isinstance(self.role, Leading) else 0

    @property
    def last_stable_offset(self) -> int:
        return self.producers.open_transactions.last_stable_offset(self.high_watermark)

    @property
    def failure(self) -> GoQueueError | None:
        """Why it serves nothing, if it does not: its log failed, or it does not lead."""
        return self.log.failure or self._not_leader

    @property
    def knows_end(self) -> bool:
        """All that earlier leaders wrote is known to be committed: before that, the end of the log could seem to go
        back."""
        return isinstance(self.role, Leading) and self.high_watermark >= self.role.start_offset

    # -- roles

    def lead(self, reign: Reign) -> None:
        """Take writes from now on, in this epoch. StaleEpoch: it is over."""
        self._check_next(reign.epoch)
        minimum, high_watermark = self.options.min_insync_replicas, self.high_watermark
        self._change_role(Leading(reign, minimum, high_watermark, self.end_offset))
        self._not_leader = None
        self._advance()

    def follow(self, epoch: int, leader: int) -> None:
        """Take no writes from now on, but what is copied from the leader. StaleEpoch: the epoch is over."""
        self._check_next(epoch)
        self._change_role(Following(epoch, leader))
        self._not_leader = NotLeader(f"{self.name} is led by node {leader} in epoch {epoch}")

    def _check_next(self, epoch: int) -> None:
        if epoch <= self.leader_epoch:
            raise StaleEpoch(f"epoch {epoch} of {self.name} is over: {self.leader_epoch} has begun")

    def _change_role(self, role: Role) -> None:
        """Whoever waits is failed first: the next reign's watermark says nothing about what they wait for."""
        waiters = self.role.waiters
        self._not_leader = NotLeader(f"the leader of {self.name} changes: it may have been done or not")
        self.role, self.leader_epoch = role, role.epoch
        call_each(waiters.all())
        self._wake_soon()

    def set_options(self, options: TopicOptions, log_options: LogOptions) -> None:
        """What was changed holds from now on, for the segments to come."""
        self.options = options
        self.log.set_options(log_options)
        if isinstance(self.role, Leading):
            self.role.view.set_minimum(min(options.min_insync_replicas, self.role.replicas))
            self._advance()

    def _advance(self) -> None:
        """Let the high watermark rise as far as the rule of the role allows."""
        role = self.role
        if isinstance(role, Leading):
            high_watermark = role.view.advance(self.log.acknowledged_offset)
            if high_watermark > self.high_watermark:
                self.high_watermark = high_watermark
                self._wake_soon()

    # -- writing

    def append(self, batch: Batch, now_ms: int, epoch: int | None = None) -> Appended:
        """Refused: what its producer may not do. A repeated batch is answered with where it already stands; but not by
        a log that failed, since what it remembers may not be on its disk. NotLeader: another copy leads; or it was
        decided in another `epoch`, by somebody who does not know what has happened since.
        """
        self.log.check_open()
        if self._not_leader is not None or (epoch is not None and epoch != self.leader_epoch):
            raise self._refuse_epoch(epoch)
        append_time = NO_TIMESTAMP
        if self.stamps_time:
            append_time = now_ms
            batch = stamp_append_time(batch, now_ms)
        if batch.producer_id != NO_PRODUCER:
            known = self._recognize(batch)
            if isinstance(known, Refused):
                raise known
            if known is not None:
                return known
        base_offset = self.log.append((batch,), self.leader_epoch, now_ms)
        if batch.producer_id != NO_PRODUCER:
            self.producers.record(batch, base_offset)
        self._stored(1, batch.length + LENGTH_END)
        return _new_tuple(Appended, (base_offset, self.log.end_offset, append_time))

    def _refuse_epoch(self, epoch: int | None) -> NotLeader:
        if self._not_leader is not None:
            return self._not_leader.kept()
        return NotLeader(f"{self.name}: this was decided in epoch {epoch}, and {self.leader_epoch} has begun")

    def append_all(self, batches: Sequence[Batch], now_ms: int) -> list[Appended | GoQueueError]:
        """Many, one after the other, but in one write: for each what `append` returns or raises."""
        if self.failure is not None:
            return [self.failure] * len(batches)
        try:
            self.log.reserve(batches, self.leader_epoch, now_ms)
        except GoQueueError:
            return [self._try(batch, now_ms) for batch in batches]  # some may be refused, and some are here already
        append_time = NO_TIMESTAMP
        if self.stamps_time:
            append_time = now_ms
            batches = [stamp_append_time(batch, now_ms) for batch in batches]
        results: list[Appended | GoQueueError] = []
        accepted = []
        before: dict[int, Before] = {}
        offset, size = self.log.end_offset, 0
        for batch in batches:
            if batch.producer_id != NO_PRODUCER:
                known = self._recognize(batch)
                if known is not None:
                    results.append(known)
                    continue
                # Before the write, since the next may be of the same producer. A write that fails takes it back.
                if batch.producer_id not in before:
                    before[batch.producer_id] = self.producers.before(batch.producer_id)
                self.producers.record(batch, offset)
            next_offset = offset + batch.last_offset_delta + 1
            accepted.append(batch)
            results.append(_new_tuple(Appended, (offset, next_offset, append_time)))
            offset = next_offset
            size += batch.length
        if accepted:
            try:
                self.log.write(accepted, self.leader_epoch)
            except GoQueueError as error:
                for producer_id, state in before.items():
                    self.producers.restore(producer_id, state)
                return [error] * len(batches)
            self._stored(len(accepted), size + len(accepted) * LENGTH_END)
        return results

    def _try(self, batch: Batch, now_ms: int) -> Appended | GoQueueError:
        try:
            return self.append(batch, now_ms)
        except GoQueueError as error:
            return error

    def find_sent(self, batch: Batch) -> Appended | None:
        """Where this very batch stands, if its producer sent it before. It may not be durable yet."""
        known = self._recognize(batch) if batch.producer_id != NO_PRODUCER else None
        return known if isinstance(known, Appended) else None

    def _recognize(self, batch: Batch) -> Appended | Refused | None:
        """None: a batch that its producer may send and that was not here before."""
        verdict = self.producers.check(batch)
        if verdict is ACCEPT:
            return None
        if isinstance(verdict, Duplicate):  # where records are stamped, its highest timestamp is when it was appended
            append_time = verdict.timestamp if self.stamps_time else NO_TIMESTAMP
            return Appended(verdict.base_offset, verdict.last_offset + 1, append_time)
        return Refused(verdict)

    def append_marker(self, batch: Batch, coordinator_epoch: int, now_ms: int) -> Appended | None:
        """End a transaction. None: it was over already, its marker stands in the log, perhaps not durable yet."""
        self.log.check_open()
        if self._not_leader is not None:
            raise self._not_leader.kept()
        verdict = self.producers.check_marker(batch.producer_id, batch.producer_epoch, coordinator_epoch)
        if verdict is Code.INVALID_TXN_STATE:
            return None
        if verdict is not ACCEPT:
            raise Refused(verdict)
        base_offset = self.log.append((batch,), self.leader_epoch, now_ms)
        self.producers.record(batch, base_offset)
        self.persisted.note_marker(base_offset)
        self._stored(1, batch.size)
        return Appended(base_offset, self.log.end_offset, NO_TIMESTAMP)

    def _stored(self, batches: int, size: int) -> None:
        self.appended_batches += batches
        self.appended_bytes += size
        if self.appended_bytes > self._snapshot_due_at:
            self._snapshot_due_at = self.appended_bytes + SNAPSHOT_BYTES
            self.defer(self.save_producers)
        if self.log.acknowledged_offset > self.high_watermark:  # no sync need be waited for
            self._advance()

    def save_producers(self) -> None:
        """As they are now, once the high watermark has passed all that they rest on: a snapshot must not know what the
        log could still lose."""
        if self.failure is not None or self._snapshots.offset == self.end_offset:
            return
        offset, state = self.end_offset, self.producers.encode()
        self.when_reached(offset, lambda: self._snapshots.save(offset, state) if self.failure is None else None)

    # -- following

    def append_copied(self, batches: Sequence[Batch], leader_watermark: int, now_ms: int) -> None:
        """What the leader of this epoch sent, as it stands there; and how far its own high watermark was."""
        assert not self.role.is_leader, self.name
        self.log.append_as_is(batches, now_ms)
        self.producers.replay(batches)
        self.appended_batches += len(batches)
        self.appended_bytes += sum(batch.size for batch in batches)
        self._learn_watermark(leader_watermark)

    def _learn_watermark(self, leader_watermark: int) -> None:
        high_watermark = min(leader_watermark, self.end_offset)
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            self._wake_soon()

    def truncate(self, end_offset: int) -> None:
        """Give up what the leader does not have, durably, and what was known from it."""
        assert not self.role.is_leader, self.name
        self.log.truncate(end_offset)
        self._follow_log()

    def restart(self, start_offset: int) -> None:
        """Begin anew and empty, durably: nothing that is here is of use to the leader."""
        assert not self.role.is_leader, self.name
        self.log.restart(start_offset)
        self.high_watermark = start_offset
        self._follow_log()

    def _follow_log(self) -> None:
        self.high_watermark = min(self.high_watermark, self.end_offset)
        self.persisted.cut(self.end_offset)
        self.producers = self._snapshots.load()

    def sync(self) -> None:
        self.log.sync()

    # -- the start and the epochs

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The last epoch not above `epoch`, and where it ended.

        An epoch counts from its leader's start, though the log hears of it with its first batch: a client that was told
        of the leader and finds no such epoch would take the log for truncated and begin elsewhere.
        """
        latest = self.log.state.epochs.latest
        if latest < epoch <= self.leader_epoch:
            return epoch if latest == NO_EPOCH or epoch == self.leader_epoch else latest, self.end_offset
        return self.log.epoch_end(epoch)

    def delete_before(self, offset: int) -> None:
        """Nothing below `offset` is served any more."""
        if not 0 <= offset <= self.high_watermark:
            raise OffsetOutOfRange(f"{offset} is not from 0 to the high watermark {self.high_watermark}")
        if offset > self.start_offset:
            self.log.advance_start(offset)

    # -- waiting

    def when_reached(self, offset: int, call: Callable[[], None]) -> None:
        """Call when the high watermark has reached `offset`, at once if it has; also when it never will (`failure`)."""
        waiters = self.role.waiters
        # Else one that was asked for before has still to be called.
        if self.failure is not None or (offset <= self.high_watermark and waiters.is_first(offset)):
            call()
        else:
            waiters.add(offset, call)

    def watch(self, who: object, call: Callable[[], None]) -> None:
        """Call whenever there is more to read, or the log failed, until `unwatch`."""
        self._watchers[who] = call

    def unwatch(self, who: object) -> None:
        self._watchers.pop(who, None)

    def _synced(self) -> None:
        self._advance()
        if self.log.failure is not None:
            self._wake_soon()
        try:
            self.tell_persisted()
        except Exception as fault:  # noqa: BLE001  it was only to be noted, and what was synced is none the worse for it
            events.error("persisted records not noted", copy=self.name, exc_info=fault)

    def tell_persisted(self, at_ms: int | None = None) -> None:
        """To be called after an append that need not wait for a sync, soon; else it is told with the next."""
        self.persisted.tell(self.high_watermark, at_ms)

    def _wake_soon(self) -> None:
        if not self._wake_is_due and (self.role.waiters or self._watchers):
            self._wake_is_due = True
            self.defer(self._wake)

    def _wake(self) -> None:
        self._wake_is_due = False
        call_each(self._woken())

    def _woken(self) -> Iterator[Callable[[], None]]:
        waiters = self.role.waiters
        yield from waiters.all() if self.failure is not None else waiters.reached(self.high_watermark)
        yield from list(self._watchers.values())

    def abandoned(self) -> None:
        """The log was deleted: nobody need wait any longer."""
        log = self.log
        log.on_synced = lambda log: None
        log.committed_offset = None
        self._wake()

    def close(self) -> None:
        """What is known about producers is saved, the log is left clean."""
        if self.log.failure is None:
            self.log.sync()
            if self.high_watermark >= self.end_offset:  # else the next start had better walk a little further
                self._snapshots.save(self.end_offset, self.producers.encode())
        self.log.close()
        self._wake()
