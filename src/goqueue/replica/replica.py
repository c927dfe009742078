"""One node's copy of a partition. With one copy the high watermark is what its log acknowledges; with more it will be
what all in-sync copies hold. Whoever waits for it, waits here.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from goqueue.machines.partitions.producer_state import ACCEPT, Before, Duplicate, ProducerStates
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, OffsetOutOfRange
from goqueue.model.refusal import Refused
from goqueue.model.topics import TopicOptions
from goqueue.records.batch import LENGTH_END, NO_EPOCH, NO_PRODUCER, Batch, split
from goqueue.records.rewrite import stamp_append_time
from goqueue.storage.log import Log
from goqueue.storage.segment_reads import Slice
from goqueue.storage.snapshots import SnapshotFiles
from goqueue.storage.time_reads import Moment, first_at_or_after
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.logs import get_logger

events = get_logger("replica")

__all__ = ["Appended", "Defer", "Replica", "Slice"]

READ_BYTES = 1024 * 1024
SNAPSHOT_BYTES = 64 * 1024 * 1024
"""How much log may come behind the last saved producer state: what a start must walk over."""
NO_TIMESTAMP = -1

_new_tuple = tuple.__new__

Defer = Callable[[Callable[[], None]], object]
"""Run a call soon, once, in this thread: many appends of one moment wake a reader once."""
OnPersisted = Callable[[int, int, int | None], None]
"""First and last offset, and when: None means now."""


class Appended(NamedTuple):
    base_offset: int
    next_offset: int
    """Acknowledge when the high watermark has reached it."""
    append_time: int
    """When the topic stamps records itself, else NO_TIMESTAMP."""


class Replica:
    """Belongs to one thread, like its log."""

    def __init__(self, log: Log, name: str, *, leader_epoch: int, options: TopicOptions, defer: Defer) -> None:
        self.log = log
        self.name = name
        self.leader_epoch = leader_epoch
        self.options = options
        """Of its topic."""
        self.place = ("", -1)
        """Topic and partition."""
        self.on_persisted: OnPersisted | None = None
        """Told what the high watermark has passed, once; markers are left out."""
        self.producers = ProducerStates()
        self.defer = defer
        self._reached: deque[tuple[int, Callable[[], None]]] = deque()
        """Invariant: offsets never fall, since each is the end of the log when it was asked."""
        self._watchers: dict[object, Callable[[], None]] = {}
        self._wake_is_due = False
        self._snapshots = self.snapshots("producers")
        self._snapshot_offset = log.start_offset
        self._snapshot_due_at = SNAPSHOT_BYTES
        self.appended_batches = 0
        self.appended_bytes = 0
        self.read_bytes = 0
        """By readers, since it was opened."""
        self._told_offset = self.high_watermark
        self._markers: deque[int] = deque()
        """Offsets of markers that are not persisted yet."""
        log.on_synced = lambda log: self._synced()
        self._recover()

    def _recover(self) -> None:
        snapshot = self._snapshots.latest(up_to=self.end_offset)
        offset = self.start_offset
        if snapshot is not None and snapshot.offset >= offset:
            self.producers = ProducerStates.decode(snapshot.entries[0][1])
            offset = self._snapshot_offset = snapshot.offset
        self.producers.replay(self.batches_from(offset))

    # -- facts

    @property
    def stamps_time(self) -> bool:
        return self.options.message_timestamp_type == "LogAppendTime"

    @property
    def lacks_copies(self) -> bool:
        """Fewer copies are in sync than its topic asks for: this is the only one."""
        return self.options.min_insync_replicas > 1

    @property
    def start_offset(self) -> int:
        return self.log.start_offset

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    @property
    def high_watermark(self) -> int:
        """Everything below it is on every in-sync copy and may be read and acknowledged."""
        return self.log.acknowledged_offset

    @property
    def last_stable_offset(self) -> int:
        return self.producers.open_transactions.last_stable_offset(self.high_watermark)

    @property
    def size_bytes(self) -> int:
        return self.log.segments.size_bytes

    @property
    def failure(self) -> GoQueueError | None:
        return self.log.failure

    def snapshots(self, kind: str) -> SnapshotFiles:
        return SnapshotFiles(self.log.disk, self.log.directory, kind)

    # -- writing

    def append(self, batch: Batch, now_ms: int) -> Appended:
        """Refused: what its producer may not do. A repeated batch is answered with where it already stands; but not by
        a log that failed, since what it remembers may not be on its disk.
        """
        self.log.check_open()
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
        verdict = self.producers.check_marker(batch.producer_id, batch.producer_epoch, coordinator_epoch)
        if verdict is Code.INVALID_TXN_STATE:
            return None
        if verdict is not ACCEPT:
            raise Refused(verdict)
        base_offset = self.log.append((batch,), self.leader_epoch, now_ms)
        self.producers.record(batch, base_offset)
        self._markers.append(base_offset)
        self._stored(1, batch.size)
        return Appended(base_offset, self.log.end_offset, NO_TIMESTAMP)

    def _stored(self, batches: int, size: int) -> None:
        self.appended_batches += batches
        self.appended_bytes += size
        if self.appended_bytes > self._snapshot_due_at:
            self._snapshot_due_at = self.appended_bytes + SNAPSHOT_BYTES
            self.defer(self.save_producers)
        if self.log.acknowledged_offset == self.log.end_offset:
            self._wake_soon()

    def save_producers(self) -> None:
        """Synced first: a snapshot must not know what the log could still lose."""
        if self.failure is not None or self._snapshot_offset == self.end_offset:
            return
        try:
            self.log.sync()
            self._snapshots.save(self.end_offset, 0, [(b"producers", self.producers.encode())])
        except (OSError, GoQueueError) as error:  # costs only the shortcut: the next start walks over the log
            events.error("producers not saved", copy=self.name, reason=str(error))
            return
        self._snapshot_offset = self.end_offset

    def sync(self) -> None:
        self.log.sync()

    # -- reading

    def read(self, offset: int, max_bytes: int, limit_offset: int) -> Slice | None:
        piece = self.log.read(offset, max_bytes, limit_offset)
        if piece is not None:
            self.read_bytes += piece.length
        return piece

    def batches_from(self, offset: int) -> Iterator[Batch]:
        while (piece := self.log.read(offset, READ_BYTES)) is not None:
            yield from split(piece.view())
            offset = piece.next_offset

    def first_at_or_after(self, timestamp: int) -> Moment | None:
        return first_at_or_after(self.log, timestamp)

    def newest(self) -> Moment | None:
        """The record with the highest timestamp."""
        return first_at_or_after(self.log, self.newest_ms) if self.end_offset > self.start_offset else None

    @property
    def newest_ms(self) -> int:
        """The highest timestamp of a record, or NO_TIMESTAMP."""
        return max((segment.max_timestamp for segment in self.log.segments), default=NO_TIMESTAMP)

    def epoch_at(self, offset: int) -> int:
        return self.log.state.epochs.at(min(offset, self.end_offset))

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The last epoch not above `epoch`, and where it ended.

        An epoch counts from its leader's start, though the log hears of it with its first batch: a client that was told
        of the leader and finds no such epoch would take the log for truncated and begin elsewhere.
        """
        latest = self.log.state.epochs.latest
        if latest < epoch <= self.leader_epoch:
            return epoch if latest == NO_EPOCH or epoch == self.leader_epoch else latest, self.end_offset
        return self.log.epoch_end(epoch)

    def end_of_epoch(self, epoch: int) -> int:
        """Where what was written up to this epoch ends: at the next one, or at the end of the log."""
        if epoch < 0 or epoch >= self.log.state.epochs.latest:
            return self.end_offset
        return self.log.epoch_end(epoch)[1]

    def delete_before(self, offset: int) -> None:
        """Nothing below `offset` is served any more."""
        if not 0 <= offset <= self.high_watermark:
            raise OffsetOutOfRange(f"{offset} is not from 0 to the high watermark {self.high_watermark}")
        if offset > self.start_offset:
            self.log.advance_start(offset)

    # -- waiting

    def when_reached(self, offset: int, call: Callable[[], None]) -> None:
        """Call when the high watermark has reached `offset`, at once if it has; also when it never will (`failure`)."""
        reached = self._reached
        is_first = not reached or offset < reached[0][0]  # else one that was asked for before has still to be called
        if self.failure is not None or (is_first and offset <= self.high_watermark):
            call()
        else:
            reached.append((max(offset, reached[-1][0]) if reached else offset, call))

    def watch(self, who: object, call: Callable[[], None]) -> None:
        """Call whenever there is more to read, or the log failed, until `unwatch`."""
        self._watchers[who] = call

    def unwatch(self, who: object) -> None:
        self._watchers.pop(who, None)

    def _synced(self) -> None:
        self._wake_soon()
        try:
            self.tell_persisted()
        except Exception as fault:  # noqa: BLE001  it was only to be noted, and what was synced is none the worse for it
            events.error("persisted records not noted", copy=self.name, exc_info=fault)

    def tell_persisted(self, at_ms: int | None = None) -> None:
        """To be called after an append that need not wait for a sync, soon; else it is told with the next."""
        high_watermark, tell, first = self.log.acknowledged_offset, self.on_persisted, self._told_offset
        if high_watermark <= first:
            return
        self._told_offset = high_watermark
        while self._markers and self._markers[0] < high_watermark:
            marker = self._markers.popleft()
            if tell is not None and first < marker:
                tell(first, marker - 1, at_ms)
            first = marker + 1
        if tell is not None and first < high_watermark:
            tell(first, high_watermark - 1, at_ms)

    def _wake_soon(self) -> None:
        if not self._wake_is_due and (self._reached or self._watchers):
            self._wake_is_due = True
            self.defer(self._wake)

    def _wake(self) -> None:
        self._wake_is_due = False
        call_each(self._woken())

    def _woken(self) -> Iterator[Callable[[], None]]:
        high_watermark, has_failed = self.high_watermark, self.failure is not None
        while self._reached and (has_failed or self._reached[0][0] <= high_watermark):
            yield self._reached.popleft()[1]
        yield from list(self._watchers.values())

    def abandoned(self) -> None:
        """The log was deleted: nobody need wait any longer."""
        self.log.on_synced = lambda log: None
        self._wake()

    def close(self) -> None:
        """What is known about producers is saved, the log is left clean."""
        self.save_producers()
        self.log.close()
        self._wake()
