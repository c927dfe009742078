"""One node's copy of a partition: what is appended to it, by producers while it leads, from its leader while it
follows.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from goqueue.machines.partitions.producer_state import ACCEPT, Before, Duplicate
from goqueue.model.codes import Code
from goqueue.model.errors import DiskFull, GoQueueError, OffsetOutOfRange
from goqueue.model.refusal import NotLeader, Refused
from goqueue.model.topics import TopicOptions
from goqueue.records.batch import LENGTH_END, NO_PRODUCER, Batch
from goqueue.records.rewrite import stamp_append_time
from goqueue.replica.persisted import Persisted
from goqueue.replica.reads import NO_TIMESTAMP
from goqueue.replica.roles import Following, Reign
from goqueue.replica.standing import NOBODY, Defer, Standing
from goqueue.storage.log import Log
from goqueue.telemetry.calls import call_each

SNAPSHOT_BYTES = 64 * 1024 * 1024
"""How much log may come behind the last saved producer state: what a start must walk over."""

_new_tuple = tuple.__new__


class Appended(NamedTuple):
    base_offset: int
    next_offset: int
    """Acknowledge when the high watermark has reached it."""
    append_time: int
    """When the topic stamps records itself, else NO_TIMESTAMP."""


class Replica(Standing):
    def __init__(
        self,
        log: Log,
        name: str,
        *,
        reign: Reign | None,
        options: TopicOptions,
        defer: Defer,
        high_watermark: int = 0,
    ) -> None:
        """`reign`: None, if it does not lead; it is told whom to follow. `high_watermark`: as it was saved."""
        super().__init__(log, name, options, defer, high_watermark)
        self._snapshot_due_at = SNAPSHOT_BYTES
        self.appended_batches = 0
        self.appended_bytes = 0
        self._due_snapshot: tuple[int, bytes] | None = None
        """Of a follower's producers: to be saved when the high watermark has passed the offset."""
        if reign is not None:
            self.lead(reign)
        self.persisted = Persisted(self.high_watermark)
        log.on_synced = lambda log: self._synced()
        log.committed_offset = lambda: self.high_watermark

    def lead(self, reign: Reign) -> None:
        """Take writes from now on, in this epoch. StaleEpoch: it is over. In a cluster a copy that was doubtful, and
        leads because an operator or its topic prefers that to nobody, is not any more: what it holds is what there
        is."""
        super().lead(reign)
        if reign.is_given:
            with suppress(GoQueueError):  # it is told of, and the next start finds the mark again
                self.learn_whole()

    def stand_still(self) -> bool:
        """Nobody knows who leads or led: take nothing, from nobody, until the next epoch says who does. False: it was
        so already."""
        role = self.role
        if isinstance(role, Following) and role.leader == NOBODY:
            return False
        self._change_role(Following(self.leader_epoch, NOBODY))
        self._not_leader = self._no_appends = NotLeader(f"all is halted: nobody leads {self.name}")
        return True

    # -- writing

    def append(self, batch: Batch, now_ms: int, epoch: int | None = None) -> Appended:
        """Refused: what its producer may not do. A repeated batch is answered with where it already stands; but not by
        a log that failed, since what it remembers may not be on its disk. NotLeader: another copy leads; or it was
        decided in another `epoch`, by somebody who does not know what has happened since.
        """
        log = self.log
        if log.failure is not None:
            raise log.failure.kept()
        if self._no_appends is not None or (epoch is not None and epoch != self.leader_epoch):
            raise self._refuse_epoch(epoch)
        if self.needs_session:
            self.check_fresh()
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
        batches = (batch,)
        log.reserve(batches, self.leader_epoch, now_ms)
        base_offset = log.write(batches, self.leader_epoch)
        if batch.producer_id != NO_PRODUCER:
            self.producers.record(batch, base_offset)
        self._stored(1, batch.length + LENGTH_END)
        return _new_tuple(Appended, (base_offset, log.end_offset, append_time))

    def hold_appends(self, why: DiskFull) -> None:
        """Take none until `let_appends`, and say why."""
        if self._no_appends is None:
            self._no_appends = why

    def let_appends(self) -> None:
        if isinstance(self._no_appends, DiskFull):
            self._no_appends = self._not_leader

    def _refuse_epoch(self, epoch: int | None) -> GoQueueError:
        if self._no_appends is not None:
            return self._no_appends.kept()
        return NotLeader(f"{self.name}: this was decided in epoch {epoch}, and {self.leader_epoch} has begun")

    def append_all(self, batches: Sequence[Batch], now_ms: int) -> list[Appended | GoQueueError]:
        """Many, one after the other, but in one write: for each what `append` returns or raises."""
        if (refusal := self.log.failure or self._no_appends) is not None:
            return [refusal] * len(batches)
        if self.needs_session and not self.is_fresh:
            return [self._try(batch, now_ms) for batch in batches]
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
        if self._no_appends is not None:
            raise self._no_appends.kept()
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
        if self._end_watchers:
            self._tell_end()
        acknowledged_offset = self.log.acknowledged_offset
        if acknowledged_offset > self.high_watermark:  # no sync need be waited for
            self._advance(acknowledged_offset)

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
        size = self.log.append_as_is(batches, now_ms)
        self.producers.replay(batches)
        self.appended_batches += len(batches)
        self.appended_bytes += size
        if self.appended_bytes > self._snapshot_due_at:
            self._snapshot_due_at = self.appended_bytes + SNAPSHOT_BYTES
            self._due_snapshot = self.end_offset, self.producers.encode()
        self.learn_watermark(leader_watermark)

    def learn_watermark(self, leader_watermark: int) -> None:
        """As the leader of this epoch has told it."""
        self._rise(min(leader_watermark, self.end_offset))
        if self._due_snapshot is not None and self._due_snapshot[0] <= self.high_watermark:
            due, self._due_snapshot = self._due_snapshot, None
            self._snapshots.save(*due)

    def learn_start(self, leader_start: int) -> None:
        """Retention is the leader's: what it has given up is given up here."""
        start_offset = min(leader_start, self.end_offset)
        if start_offset > self.start_offset:
            self.log.advance_start(start_offset)

    def learn_gaps(self, to_offset: int) -> None:
        """What is copied next from below `to_offset` may have gaps. Durable when it returns."""
        if self.end_offset < to_offset:
            self.log.allow_gaps(to_offset)

    def learn_whole(self) -> None:
        """Its leader has said that it lacks nothing that an in-sync replica must hold. Durable when it returns."""
        state = self.log.state
        if state.is_doubtful:
            state.is_doubtful = False
            self.log.save_state()

    def truncate(self, end_offset: int) -> None:
        """Give up what the leader does not have, durably, and what was known from it."""
        assert not self.role.is_leader, self.name
        self.log.truncate(end_offset)
        self._follow_log(self.end_offset)

    def restart(self, start_offset: int, tombstones_to: int = 0) -> None:
        """Begin anew and empty, durably: nothing that is here is of use to the leader, which has no tombstones below
        `tombstones_to`."""
        assert not self.role.is_leader, self.name
        self.log.restart(start_offset)
        if tombstones_to:
            self.log.state.tombstones_to = tombstones_to
            self.log.save_state()
        self.high_watermark = start_offset
        self._follow_log(0)

    def _follow_log(self, cut_offset: int) -> None:
        self.high_watermark = min(self.high_watermark, self.end_offset)
        self.persisted.cut(self.end_offset)
        self._due_snapshot = None
        self.producers = self._snapshots.load()
        call_each([partial(call, cut_offset) for call in self.on_cut.values()])

    def sync(self) -> None:
        self.log.sync()

    # -- the start

    def delete_before(self, offset: int) -> None:
        """Nothing below `offset` is served any more."""
        if not 0 <= offset <= self.high_watermark:
            raise OffsetOutOfRange(f"{offset} is not from 0 to the high watermark {self.high_watermark}")
        if offset > self.start_offset:
            self.log.advance_start(offset)
            self.tell_start()

    def abandoned(self) -> None:
        """The log was deleted: nobody need wait any longer."""
        log = self.log
        log.on_synced = lambda log: None
        log.committed_offset = None
        self._end_rest()
        self._wake()
        self._tell_end()
        if isinstance(self.role, Following) and self.role.on_synced is not None:
            self.role.on_synced()

    def close_log(self) -> None:
        """What is known about producers is saved, the log is left clean. In any thread, when nothing is appended any
        more; who waits is told by `close`."""
        log = self.log
        log.on_synced = lambda log: None
        if log.failure is None:
            if log.needs_sync:
                log.sync()
            if self.high_watermark >= self.end_offset:  # else the next start had better walk a little further
                self._snapshots.save(self.end_offset, self.producers.encode())
        log.close()

    def close(self) -> None:
        """Closing twice is fine."""
        try:
            self.close_log()
        finally:
            self._wake()
