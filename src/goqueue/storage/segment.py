"""One file of a log: batches one behind the other, from its base offset on. Active while it grows, sealed after.

The file is allocated ahead of the data, so a full disk is met before a write and never in the middle of one. Bytes that
this process did not write or check itself are checked when they are first read, one index block at a time.
"""

import errno
from collections.abc import Callable, Iterator, Sequence

from goqueue.model.errors import DamagedFile, ReadFailed
from goqueue.records.batch import LENGTH_END, PREFIX, Batch
from goqueue.records.log_files import LOG_SUFFIX, Summary
from goqueue.records.walk import Damage, Expected, walk
from goqueue.storage import index_files
from goqueue.storage.disk import Disk, File
from goqueue.storage.index import EARLIEST_MS, OffsetIndex, TimeIndex
from goqueue.storage.options import KIB, MIB

ALLOCATION_BYTES_MIN = 64 * KIB
ALLOCATION_BYTES_MAX = 8 * MIB

BOUNDARIES_MAX = 64

_pack_prefix = PREFIX.pack_into


def segment_path(directory: str, base_offset: int, suffix: str = "") -> str:
    return f"{directory}/{base_offset:020d}{suffix}"


class Segment:
    def __init__(
        self, disk: Disk, directory: str, base_offset: int, file: File, expected: Expected, interval_bytes: int
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.file = file
        self.expected = expected
        self.next_offset = base_offset
        self.size = 0
        self.allocated = 0
        self.max_timestamp = EARLIEST_MS
        self.created_ms = 0
        self.sealed = False
        self.name_is_durable = True
        self.saved_size = 0
        """Up to where the index on disk describes the data."""
        self.index_is_durable = True
        self.damage: dict[int, Damage] = {}
        self.on_damage: Callable[[Damage], None] = lambda damage: None
        self.interval_bytes = interval_bytes
        self._next_block_at = 0
        self._index: OffsetIndex | None = OffsetIndex(base_offset)
        self._time_index: TimeIndex | None = TimeIndex()
        self._checked = bytearray()
        """One flag per block. Invariant: blocks this process wrote or walked over are flagged."""
        self.boundaries: dict[int, int] = {}
        """Offset to position, where the last writes and reads ended: just there readers begin, and those that must not
        go beyond what is acknowledged end."""
        self.found: tuple[int, int, int, int] | None = None
        """Where the batch lies that was looked for last (first and next offset, position and end): whoever takes one
        record at a time comes for it as often as it has records. Invariant: its block was checked, and nothing that is
        damaged was found since."""
        self.ahead: dict[int, tuple[int, int, int, int]] = {}
        """Likewise of the small ones behind it, by their first offsets: whoever takes one at a time wants them next."""

    # -- making and loading

    @classmethod
    def create(
        cls, disk: Disk, directory: str, base_offset: int, expected: Expected, interval_bytes: int, now_ms: int
    ) -> "Segment":
        file = disk.open(segment_path(directory, base_offset, LOG_SUFFIX), create=True)
        segment = cls(disk, directory, base_offset, file, expected, interval_bytes)
        segment.created_ms = now_ms
        segment.name_is_durable = False
        return segment

    @classmethod
    def load(
        cls, disk: Disk, directory: str, base_offset: int, expected: Expected, interval_bytes: int, now_ms: int
    ) -> "Segment":
        """Open what is on disk as far as its summary vouches for it; the rest is for recovery to scan."""
        file = disk.open(segment_path(directory, base_offset, LOG_SUFFIX))
        segment = cls(disk, directory, base_offset, file, expected, interval_bytes)
        segment.allocated = file.size()
        summary = index_files.load_summary(disk, segment.stem)
        if summary is None or summary.base_offset != base_offset or not 0 < summary.end_position <= segment.allocated:
            segment.created_ms = now_ms
        else:
            segment.size = segment.saved_size = summary.end_position
            segment.next_offset = summary.end_offset
            segment.max_timestamp = summary.max_timestamp
            segment.created_ms = summary.created_ms
            segment.unload_index()
        return segment

    @property
    def stem(self) -> str:
        return segment_path(self.directory, self.base_offset)

    @property
    def path(self) -> str:
        return self.stem + LOG_SUFFIX

    # -- writing

    def reserve(self, end: int, limit: int, room_bytes: Callable[[], int]) -> None:
        """Allocate up to `end` and some way ahead, not beyond `limit` without need; OSError if there is no room. In
        growing steps, so that a thousand idle logs cost nothing."""
        if end <= self.allocated:
            return
        step = min(max(self.allocated, ALLOCATION_BYTES_MIN), ALLOCATION_BYTES_MAX)
        target = max(end, min(self.allocated + step, limit))
        room = room_bytes()
        if target - self.allocated > room:
            target = end  # what is left is for messages, not for what may come
        if target - self.allocated > room:
            raise OSError(errno.ENOSPC, "less free space is left than is held in reserve")
        self.file.allocate(target)
        self.allocated = target

    def append(self, batches: Sequence[Batch], leader_epoch: int) -> int:
        """Give the batches their offsets and write them in one call. Room must have been reserved. Returns the next
        offset."""
        offset = self.next_offset
        position = start = self.size
        highest = self.max_timestamp
        buffers = []
        for batch in batches:
            if position >= self._next_block_at:
                self._begin_block(offset, position, highest)
            data = batch.data
            length = batch.length
            _pack_prefix(data, 0, offset, length, leader_epoch)
            buffers.append(data)
            offset += batch.last_offset_delta + 1
            position += length + LENGTH_END
            if batch.max_timestamp > highest:
                highest = batch.max_timestamp
        self.file.write(start, buffers)
        self.max_timestamp = highest
        self.size = position
        self.next_offset = offset
        self.note_boundary(offset, position)
        return offset

    def note_boundary(self, offset: int, position: int) -> None:
        if len(self.boundaries) >= BOUNDARIES_MAX:
            self.boundaries.clear()
        self.boundaries[offset] = position

    def append_placed(self, batches: Sequence[Batch]) -> None:
        """Write batches that already carry their offsets and epochs."""
        position, highest, offset = self.size, self.max_timestamp, self.next_offset
        self.file.write(position, [batch.data for batch in batches])
        for batch in batches:
            offset = batch.base_offset
            if position >= self._next_block_at:
                self._begin_block(offset, position, highest)
            offset += batch.last_offset_delta + 1
            position += batch.length + LENGTH_END
            if batch.max_timestamp > highest:
                highest = batch.max_timestamp
        self.max_timestamp = highest
        self.size = position
        self.next_offset = offset
        self.allocated = max(self.allocated, position)

    def _begin_block(self, offset: int, position: int, highest: int) -> None:
        index, time_index = self._index, self._time_index
        if index is None or time_index is None:
            index, time_index = self.indexes()
        index.add(offset, position)
        time_index.add(highest, offset)
        self._checked.append(1)
        self._next_block_at = position + self.interval_bytes

    def scan(self, judge: Callable[[memoryview, Damage], bool]) -> Damage | None:
        """Take in what stands behind `size` in the file. Damage that `judge` accepts is skipped, other damage ends the
        scan and is returned. Leaves `size` behind the last thing taken in."""
        start = self.size
        data = self.view(start, self.allocated - start)
        for item in walk(data, self.next_offset, self.expected):
            if isinstance(item, Damage):
                damage = item._replace(position=start + item.position, end=start + item.end)
                if not judge(data[item.position : item.end], damage):
                    return damage
                self.note_damage(damage)
            else:
                self._take_in(start + item.position, item.batch)
        return None

    def _take_in(self, position: int, batch: Batch) -> None:
        if position >= self._next_block_at:
            self._begin_block(batch.base_offset, position, self.max_timestamp)
        self.size = position + batch.size
        self.next_offset = batch.next_offset
        self.max_timestamp = max(self.max_timestamp, batch.max_timestamp)

    def note_damage(self, damage: Damage) -> None:
        if damage.position not in self.damage:
            self.damage[damage.position] = damage
            self.forget_found()
            self.on_damage(damage)

    # -- indexes on disk

    def save_index(self) -> None:
        """Only to be called when the log is synced up to `size`: see Summary. Itself not synced; a lost or torn index
        is rebuilt."""
        if self.saved_size == self.size:
            return
        summary = Summary(self.base_offset, self.size, self.next_offset, self.max_timestamp, self.created_ms)
        index_files.save(self.disk, self.stem, summary, *self.indexes())
        self.saved_size = self.size
        self.index_is_durable = False

    def sync_index(self) -> None:
        if not self.index_is_durable:
            index_files.sync(self.disk, self.stem)
            self.index_is_durable = True

    @property
    def has_index(self) -> bool:
        """In memory: an active segment always has."""
        return self._index is not None

    def unload_index(self) -> None:
        """Give the memory back; the next lookup loads the index again."""
        if self.saved_size == self.size:
            self._index = self._time_index = None
            self._next_block_at = 0

    def indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        if self._index is None or self._time_index is None:
            try:
                index, self._time_index = index_files.load(self.disk, self.stem, self.base_offset, self.size)
            except (OSError, DamagedFile):
                return self._rebuild_indexes()
            self._index = index
            self._next_block_at = index.positions[-1] + self.interval_bytes
            if len(self._checked) != len(index):
                self._checked = bytearray(len(index))
        return self._index, self._time_index

    def _rebuild_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """From the data alone. What the segment holds is known (`size`, `next_offset`); only the way there was lost."""
        index, time_index = self._index, self._time_index = OffsetIndex(self.base_offset), TimeIndex()
        self._checked = bytearray()
        self._next_block_at = 0
        highest = EARLIEST_MS
        for item in walk(self.view(0, self.size), self.base_offset, self.expected, self.next_offset):
            if isinstance(item, Damage):
                self.note_damage(item)
                continue
            position, batch = item
            if position >= self._next_block_at:
                self._begin_block(batch.base_offset, position, highest)
            highest = max(highest, batch.max_timestamp)
        if not len(index):  # nothing but damage
            index.add(self.base_offset, 0)
            time_index.add(EARLIEST_MS, self.base_offset)
            self._checked.append(1)
        self.saved_size = 0
        return index, time_index

    # -- reading

    def view(self, position: int, length: int) -> memoryview:
        try:
            return self.file.view(position, length)
        except OSError as error:
            raise ReadFailed(f"{self.path}: {error.strerror} at byte {position}") from error

    def read(self, position: int, length: int) -> bytes:
        try:
            return self.file.read(position, length)
        except OSError as error:
            raise ReadFailed(f"{self.path}: {error.strerror} at byte {position}") from error

    def check_blocks(self, first: int, last: int) -> None:
        """See to it that all batches of these blocks are sound or known as damage. In one read: a reader comes this way
        once after each start."""
        unchecked = self._checked.find(0, first, last + 1)
        if unchecked < 0:
            return
        index, _ = self.indexes()
        start, end = self.block_range(index, unchecked)[0], self.block_range(index, last)[1]
        due = index.base_offset + index.deltas[unchecked] if unchecked else self.base_offset
        is_last = last + 1 == len(index)
        next_offset = self.next_offset if is_last else index.base_offset + index.deltas[last + 1]
        for item in walk(memoryview(self.read(start, end - start)), due, self.expected, next_offset):
            if isinstance(item, Damage):
                self.note_damage(item._replace(position=start + item.position, end=start + item.end))
        self._checked[unchecked : last + 1] = bytes([1]) * (last + 1 - unchecked)

    def expect(self, expected: Expected) -> None:
        """From now on; what was read before is checked again."""
        self.expected = expected
        self._checked = bytearray(len(self._checked))
        self.forget_found()

    def forget_found(self) -> None:
        self.found = None
        self.ahead = {}

    def check_again(self) -> None:
        """A reader met a batch that is not what was written. What is found is told, and passed over from then on."""
        self.expect(self.expected)
        self.boundaries.clear()

    def is_sound(self) -> bool:
        """True: every batch was checked, and none is damaged."""
        return not self.damage and len(self._checked) > 0 and self._checked.find(0) < 0

    def block_range(self, index: OffsetIndex, block: int) -> tuple[int, int]:
        """Invariant: the first block begins at 0 even where the first batch is damaged, so no byte is in no block."""
        start = index.positions[block] if block else 0
        return start, index.positions[block + 1] if block + 1 < len(index) else self.size

    def batches(self) -> Iterator[Batch]:
        """All sound batches, whole."""
        for item in walk(self.view(0, self.size), self.base_offset, self.expected, self.next_offset):
            if isinstance(item, Damage):
                self.note_damage(item)
            else:
                yield item.batch

    # -- ends

    def seal(self) -> None:
        """No more appends: give back the room that was allocated ahead."""
        self.sealed = True
        if self.allocated > self.size:
            self.file.truncate(self.size)
            self.allocated = self.size

    def remove_files(self) -> None:
        """Indexes first, so that none is left to describe a log that is gone. Slices in flight keep their file."""
        index_files.remove(self.disk, self.stem)
        self.disk.remove(self.path)
