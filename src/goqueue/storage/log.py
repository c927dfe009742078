"""An append-only log on one disk that never loses what it acknowledged. It belongs to one thread, but for its syncs."""

import errno
from collections.abc import Callable, Sequence
from threading import Lock

from goqueue.model.errors import BatchTooLarge, GoQueueError, LogClosed, LogPoisoned, OffsetOutOfRange
from goqueue.records.batch import LENGTH_END, NO_EPOCH, Batch
from goqueue.records.slice import Slice
from goqueue.records.walk import Damage
from goqueue.storage import copying, segment_reads, shortening
from goqueue.storage.creation import Making, open_files
from goqueue.storage.disk import Disk
from goqueue.storage.options import Durability, LogOptions
from goqueue.storage.pending_sync import PendingSync
from goqueue.storage.recovery import Recovered, RecoveryReport, tell_damage
from goqueue.storage.room import DiskRoom
from goqueue.storage.segment import Segment
from goqueue.storage.segments import SegmentList
from goqueue.telemetry.logs import get_logger

OFFSETS_PER_SEGMENT_MAX = 1 << 31
"""The index keeps offsets as four bytes from the segment's base."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)

events = get_logger("storage")


class Log:
    """`open` is the way in. What is in [start_offset, end_offset) can be read, and survives below `synced_offset`."""

    def __init__(self, disk: Disk, directory: str, options: LogOptions, recovered: Recovered) -> None:
        self.disk = disk
        self.directory = directory
        self.state = recovered.state
        self.report: RecoveryReport = recovered.report
        self.segments = SegmentList(disk, directory, options, recovered.segments, self._report_damage)
        self.damaged_batches = len(recovered.report.damage)
        self.end_offset = self.synced_offset = self.segments.active.next_offset
        self.unsynced: tuple[Segment, ...] = (self.segments.active,)
        """Invariant: holds every segment with data at or behind `synced_offset`, replaced as a whole."""
        self.is_new = False
        """Made when it was opened."""
        self.is_unmade = False
        """Its state and the names on the way to it may not be durable: the first sync sees to that."""
        self.truncations = 0
        self.sync_lock = Lock()
        self.sync_error: Exception | None = None
        """Set by whichever thread met it, before anybody is told that anything is synced."""
        self.on_dirty: Callable[[Log], None] = lambda log: None
        """Called when the first unsynced append is made: somebody must see to a sync."""
        self.on_synced: Callable[[Log], None] = lambda log: None
        """Called when `acknowledged_offset` rose, or will never rise again because the log failed."""
        self.committed_offset: Callable[[], int] | None = None
        """What stands at or behind it is not deleted or compacted: a leader may take it back."""
        self.is_copy = False
        """Of a leader's: what goes and when is that one's to say."""
        self.on_failure: Callable[[str], None] = lambda doing: None
        """Called with what it was about to do when it was taken out of service."""
        self.room = DiskRoom()
        """Told when an append finds no room; one for all logs of a disk."""
        self._dirty = False
        self.failure: GoQueueError | None = None
        """Why this log serves nothing, if it does not. No property: it is asked for at every step."""
        self._epoch = self.state.epochs.latest
        self._active = self.segments.active  # for append alone: each step to it costs as much as half its work
        self.set_options(options)
        self._roll_at_offset = self.segments.active.base_offset + OFFSETS_PER_SEGMENT_MAX

    @classmethod
    def open(  # noqa: PLR0913  all that a log is made of
        cls,
        disk: Disk,
        directory: str,
        options: LogOptions,
        now_ms: int,
        *,
        first_epoch: int = NO_EPOCH,
        has_directory: bool = False,
        is_lazy: bool = False,
        topic_id: bytes = b"",
        is_doubtful: bool = False,
    ) -> "Log":
        """Open and recover, or create: then `first_epoch` has begun, so that no append need wait for the disk to know
        of it. `is_lazy`: what is created becomes durable with the first sync of the log. The others: see `Making`."""
        making = Making(first_epoch, has_directory, is_lazy, topic_id, is_doubtful)
        try:
            recovered, is_new = open_files(disk, directory, options, now_ms, making)
            log = cls(disk, directory, options, recovered)
            log.is_unmade = is_lazy  # also one that is there: the process that made it may have been killed
            log.is_new = is_new
            log.checkpoint(every_bytes=1)
        except OSError as error:
            raise LogPoisoned(f"{directory} cannot be opened: {error}") from error
        for damage in recovered.report.damage:
            tell_damage(directory, damage)
        return log

    # -- facts

    @property
    def start_offset(self) -> int:
        return self.state.start_offset

    @property
    def acknowledged_offset(self) -> int:
        """Appends below it may be acknowledged."""
        return self.synced_offset if self._waits_for_disk else self.end_offset

    def set_options(self, options: LogOptions) -> None:
        """For what is written from now on."""
        self.options = options
        self.compacts = options.compacts
        self._waits_for_disk = options.durability is Durability.DISK
        if self._dirty and self._waits_for_disk:
            self.on_dirty(self)  # it may have been in no hurry before
        self._batch_length_max = options.batch_bytes_max - LENGTH_END
        self._roll_at_ms = self.segments.active.created_ms + options.roll_ms

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The last epoch not above `epoch` and where it ended: what a follower truncates by."""
        return self.state.epochs.end_of(epoch, self.end_offset)

    # -- writing

    def append(self, batches: Sequence[Batch], leader_epoch: int, now_ms: int) -> int:
        """Append all batches or none, in one write. Returns the first offset. The batches' memory is written to: it
        gets offsets and epoch. Acknowledge when `acknowledged_offset` has passed."""
        self.reserve(batches, leader_epoch, now_ms)
        return self.write(batches, leader_epoch)

    def reserve(self, batches: Sequence[Batch], leader_epoch: int, now_ms: int) -> None:
        """Make sure that these batches, or some of them, can be written next: raises the reason why not while
        nothing is written yet."""
        if self.failure is not None:
            raise self.failure.kept()
        segment = self._active
        end = segment.size
        end_offset = self.end_offset
        for batch in batches:
            length = batch.length
            if length > self._batch_length_max:
                raise BatchTooLarge(f"{batch.size} bytes, at most {self.options.batch_bytes_max} are taken")
            end += length + LENGTH_END
            end_offset += batch.last_offset_delta + 1
        if leader_epoch != self._epoch:
            self._begin_epoch(leader_epoch)
        if end > segment.allocated or now_ms >= self._roll_at_ms or end_offset > self._roll_at_offset:
            self._make_room(segment, end - segment.size, end_offset, now_ms)

    def write(self, batches: Sequence[Batch], leader_epoch: int) -> int:
        """Write what was reserved for. Only a disk that fails can stop it, and then the log is poisoned."""
        first_offset = self.end_offset
        try:
            self.end_offset = self._active.append(batches, leader_epoch)
        except OSError as error:
            raise self.poison("write", error) from error
        if not self._dirty:
            self._dirty = True
            self.on_dirty(self)
        return first_offset

    def append_as_is(self, batches: Sequence[Batch], now_ms: int) -> int:
        """Append what the leader's log holds, with the offsets, epochs and gaps that it has there; all or none. Returns
        how many bytes that was. CorruptBatch or StaleEpoch: it does not follow from what is here."""
        self.check_open()
        if not batches:
            return 0
        more_bytes = copying.check_order(self, batches)
        copying.begin_epochs(self, batches)
        self._epoch = self.state.epochs.latest
        segment, end_offset = self._active, batches[-1].next_offset
        is_full = segment.size + more_bytes > segment.allocated or end_offset > self._roll_at_offset
        if is_full or now_ms >= self._roll_at_ms:
            self._make_room(segment, more_bytes, end_offset, now_ms)
        try:
            self._active.append_placed(batches)
        except OSError as error:
            raise self.poison("write", error) from error
        self.end_offset = end_offset
        if not self._dirty:
            self._dirty = True
            self.on_dirty(self)
        return more_bytes

    def allow_gaps(self, to_offset: int) -> None:
        """What is copied from below `to_offset` may have gaps. Durable when it returns."""
        copying.allow_gaps(self, to_offset)

    def _make_room(self, segment: Segment, more_bytes: int, end_offset: int, now_ms: int) -> None:
        """Roll if the segment is full or old, and allocate. Raises before anything is written."""
        if end_offset - self.end_offset > OFFSETS_PER_SEGMENT_MAX:
            raise BatchTooLarge(f"{end_offset - self.end_offset} offsets, at most {OFFSETS_PER_SEGMENT_MAX} at once")
        is_full = segment.size + more_bytes > self.options.segment_bytes or end_offset > self._roll_at_offset
        if segment.size and (is_full or now_ms >= self._roll_at_ms):
            segment = self._roll(now_ms)
        if not segment.size:
            segment.created_ms = now_ms
            self._roll_at_ms = now_ms + self.options.roll_ms
        try:
            segment.reserve(segment.size + more_bytes, self.options.segment_bytes, self._room_bytes)
        except OSError as error:
            raise self._no_room_or_poison("append", error) from error
        self.room.grant(self._room_bytes)

    def _room_bytes(self) -> int:
        return self.disk.free_bytes() - self.options.disk_reserve_bytes

    def _begin_epoch(self, epoch: int) -> None:
        before = self.state.epochs.entries()
        self.state.epochs.begin(epoch, self.end_offset)
        copying.keep_epochs(self, before, epoch)
        self._epoch = epoch

    def save_state(self) -> None:
        """A full disk leaves the old state in place."""
        try:
            self.state.save(self.disk, self.directory)
        except OSError as error:
            raise self._no_room_or_poison("save the state", error) from error

    def roll(self, now_ms: int) -> None:
        """Seal the active segment, if it holds anything, and begin another."""
        self.check_open()
        if self.segments.active.size:
            self._roll(now_ms)

    def _roll(self, now_ms: int) -> Segment:
        old, has_gaps = self.segments.active, self.state.has_gaps(self.end_offset)
        try:
            segment = self._active = self.segments.add(self.state.epochs, now_ms, has_gaps=has_gaps)
        except OSError as error:
            raise self._no_room_or_poison("create a segment", error) from error
        self._roll_at_offset = segment.base_offset + OFFSETS_PER_SEGMENT_MAX
        self.unsynced = (*self.unsynced, segment)
        try:
            old.seal()
        except OSError as error:
            raise self.poison("seal a segment", error) from error
        return segment

    def _no_room_or_poison(self, doing: str, error: OSError) -> GoQueueError:
        if error.errno in NO_ROOM:
            return self.room.refuse(f"{self.directory}: no room to {doing}: {error.strerror}", self._room_bytes)
        return self.poison(doing, error)

    # -- durability

    @property
    def needs_sync(self) -> bool:
        return self._dirty or self.state.is_unsaved

    def sync(self) -> None:
        """Make everything appended so far durable, here and now."""
        self.check_open()
        pending = PendingSync(self)
        try:
            pending.run()
        except OSError as error:
            raise self.poison("sync", error) from error
        self.finish_sync(pending)
        self.check_open()

    def finish_sync(self, pending: PendingSync, error: Exception | None = None) -> None:
        """Take note that `pending` has run. A failed sync poisons the log: the kernel may have dropped what it could
        not write, so no later sync proves anything."""
        if self.failure is not None:
            return
        if error is not None:
            self.poison("sync", error)
            return
        if pending.truncations == self.truncations:
            self._mark_synced(pending)
        if self._dirty:
            self.on_dirty(self)

    def _mark_synced(self, pending: PendingSync) -> None:
        self.synced_offset = max(self.synced_offset, pending.durable_to())
        if len(self.unsynced) > 1:
            self.unsynced = tuple(
                one for one in self.unsynced if one is self.segments.active or one.next_offset > self.synced_offset
            )
        self._dirty = self.end_offset > self.synced_offset
        try:
            self.checkpoint(self.options.checkpoint_bytes)
        except GoQueueError:
            return  # poisoned, and whoever waits has been told
        self.on_synced(self)

    def checkpoint(self, every_bytes: int) -> None:
        """Save the indexes of what is synced: recovery will start there. Only where there is enough news."""
        for segment in reversed(self.segments):
            unsaved = segment.size - segment.saved_size
            if unsaved and segment.next_offset <= self.synced_offset and (segment.sealed or unsaved >= every_bytes):
                self._save_index(segment)
            elif segment.sealed and not unsaved:
                break  # older segments were saved before this one

    def _save_index(self, segment: Segment) -> None:
        """A full disk costs only the shortcut: a torn index is rebuilt."""
        try:
            segment.save_index()
        except OSError as error:
            if error.errno not in NO_ROOM and error.errno not in NO_DESCRIPTORS:
                raise self.poison("save an index", error) from error

    def poison(self, doing: str, error: Exception) -> LogPoisoned:
        """Out of service until it is opened again. Returns what to raise."""
        failure = LogPoisoned(f"{self.directory} is out of service, it could not {doing}: {error}")
        self.failure = failure
        events.error("log poisoned", log=self.directory, doing=doing, error=str(error), end_offset=self.end_offset)
        self.on_failure(doing)
        self.on_synced(self)  # whoever waits for an acknowledgement must learn that none will come
        return failure

    def check_open(self) -> None:
        if self.failure is not None:
            raise self.failure.kept()

    # -- reading

    def read(self, offset: int, max_bytes: int, limit_offset: int | None = None) -> Slice | None:
        """Whole batches from the one that holds `offset` on, below `limit_offset`: one segment's worth at most. None:
        nothing there yet. The first batch may begin before `offset`; damaged and compacted offsets are passed over."""
        if self.failure is not None:
            raise self.failure.kept()
        end = self.end_offset
        limit = end if limit_offset is None or limit_offset > end else limit_offset
        if not self.state.start_offset <= offset <= end:
            raise OffsetOutOfRange(f"{offset} is not in [{self.start_offset}, {end}]")
        while offset < limit:
            segment = self.segments.of(offset)
            found = segment_reads.read(segment, offset, max_bytes, limit)
            if found is not None:
                return found
            offset = segment.next_offset
        return None

    def _report_damage(self, damage: Damage) -> None:
        self.damaged_batches += 1
        tell_damage(self.directory, damage)

    # -- shortening

    def truncate(self, end_offset: int) -> None:
        """Give up `end_offset` and all behind it, with the whole batch that holds it. Durable when it returns."""
        shortening.truncate(self, end_offset)

    def restart(self, start_offset: int) -> None:
        """Give up everything, snapshots too, and begin anew and empty at `start_offset`, doubtful. Durable when it
        returns."""
        shortening.restart(self, start_offset)

    def advance_start(self, start_offset: int) -> None:
        """Nothing below `start_offset` is served any more; segments wholly below it go away. Durable when it
        returns."""
        shortening.advance_start(self, start_offset)

    def stand_at_end(self) -> None:
        """The segments were cut: go on where they end now, which is durable."""
        self._epoch = self.state.epochs.latest
        self.end_offset = self.synced_offset = self.segments.active.next_offset
        self._active = self.segments.active
        self._roll_at_offset = self._active.base_offset + OFFSETS_PER_SEGMENT_MAX
        self.unsynced = (self._active,)
        self.truncations += 1
        self._dirty = False

    # -- ends

    def close(self) -> None:
        """Sync, save what makes the next start quick, and let go. Closing twice is fine; a poisoned log is let go as it
        is."""
        if self.failure is None:
            if self.needs_sync:
                self.sync()
            try:
                self._leave_clean()
            except OSError as error:
                raise self.poison("close", error) from error
            self.failure = LogClosed(f"{self.directory} is closed")
        for segment in self.segments:
            segment.file.close()

    def abandon(self) -> None:
        """Let go without another write: the log is deleted. Readers in flight keep its files open."""
        if self.failure is None:
            self.failure = LogClosed(f"{self.directory} is deleted")
        self.state.let_go()
        self.segments.let_go()

    def _leave_clean(self) -> None:
        self.segments.active.seal()
        self.segments.active.file.sync()
        for segment in self.segments:
            if segment.saved_size != segment.size:
                self._save_index(segment)
            segment.sync_index()
        self.disk.sync_directory(self.directory)
