"""The segments of one log, oldest first: finding, adding and dropping them."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

from goqueue.records.epochs import EpochHistory
from goqueue.records.walk import Damage, Expected
from goqueue.storage import index_files
from goqueue.storage.disk import Disk
from goqueue.storage.options import LogOptions
from goqueue.storage.segment import Segment
from goqueue.storage.segment_reads import locate

LOADED_INDEXES_MAX = 32
"""Of sealed segments, per log: a terabyte of log must not keep gigabytes of index in memory."""


class SegmentList:
    """Invariant: never empty; the last one is active, all others are sealed; each begins where the one before it
    ends."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        options: LogOptions,
        segments: list[Segment],
        on_damage: Callable[[Damage], None],
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._options = options
        self._segments = segments
        self._on_damage = on_damage
        self._loaded: OrderedDict[int, Segment] = OrderedDict()
        self.created = self.dropped = self.compactions = self.compacted_away_bytes = 0
        """Since it was opened."""
        for segment in segments:
            segment.on_damage = on_damage

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __reversed__(self) -> Iterator[Segment]:
        return reversed(self._segments)

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def sealed(self) -> list[Segment]:
        return self._segments[:-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def of(self, offset: int) -> Segment:
        segment = self._segments[-1]
        if offset >= segment.base_offset:
            return segment  # it always has its index
        segment = self._segments[max(0, bisect_right(self._segments, offset, key=_base_offset) - 1)]
        if not segment.has_index:
            self.touch(segment)
        return segment

    def touch(self, segment: Segment) -> None:
        """This segment's index is about to be loaded; the one that was loaded first is given back."""
        self._loaded[segment.base_offset] = segment
        if len(self._loaded) > LOADED_INDEXES_MAX:
            self._loaded.popitem(last=False)[1].unload_index()

    def add(self, epochs: EpochHistory, now_ms: int, *, has_gaps: bool = False) -> Segment:
        """Begin a new active segment behind the last one, which the caller seals."""
        segment = self._create(self.active.next_offset, epochs, now_ms)
        assert segment.base_offset > self.active.base_offset, (self._directory, segment.base_offset)
        if has_gaps:
            segment.expect(Expected(epochs, has_gaps=True))
        self._segments.append(segment)
        self.created += 1
        return segment

    def _create(self, base_offset: int, epochs: EpochHistory, now_ms: int) -> Segment:
        interval_bytes = self._options.index_interval_bytes
        segment = Segment.create(self._disk, self._directory, base_offset, Expected(epochs), interval_bytes, now_ms)
        segment.on_damage = self._on_damage
        return segment

    def restart(self, start_offset: int, epochs: EpochHistory) -> None:
        """Nothing is left: go on with an empty segment at `start_offset`."""
        self._forget_indexes(self._segments)
        for segment in reversed(self._segments):
            self._forget(segment)
        self.begin_at(start_offset, epochs)

    def begin_at(self, start_offset: int, epochs: EpochHistory) -> None:
        """The files of all segments are gone: go on with an empty one. Readers in flight keep theirs."""
        self._loaded.clear()
        self._segments[:] = [self._create(start_offset, epochs, self.active.created_ms)]
        self._disk.sync_directory(self._directory)
        self.active.name_is_durable = True

    def cut(self, end_offset: int) -> None:
        """Drop everything from `end_offset` on, newest first, so that a crash in between leaves a log all the same."""
        self._forget_indexes([one for one in self._segments if one.base_offset >= end_offset])
        while len(self._segments) > 1 and self.active.base_offset >= end_offset:
            self._forget(self._segments.pop())
            self._disk.sync_directory(self._directory)
        self._segments[-1] = self._shortened(self.active, end_offset)
        assert self.active.next_offset <= end_offset, (self._directory, self.active.next_offset, end_offset)

    def _forget_indexes(self, segments: Iterable[Segment]) -> None:
        """Durably, before the data: an index that is left alone says that its segment was lost."""
        for segment in segments:
            index_files.remove(self._disk, segment.stem)
        self._disk.sync_directory(self._directory)

    def _shortened(self, old: Segment, end_offset: int) -> Segment:
        """By a copy: the old file may still be on its way to a reader, who must never see it shrink."""
        old.check_blocks(0, len(old.indexes()[0]) - 1)
        kept_bytes, _ = locate(old, end_offset)
        for damage in sorted(old.damage.values(), reverse=True):
            if damage.end == kept_bytes:  # nothing sound stands behind it: it goes too
                kept_bytes = damage.position
        index_files.remove(self._disk, old.stem)
        self._disk.sync_directory(self._directory)
        copy = self._disk.open(old.path + ".tmp", create=True)
        copy.write(0, [old.view(0, kept_bytes)])
        copy.sync()
        copy.close()
        self._disk.rename(old.path + ".tmp", old.path)
        self._disk.sync_directory(self._directory)
        self._loaded.pop(old.base_offset, None)
        return self._reload(old.base_offset, old.expected, old.created_ms)

    def _reload(self, base_offset: int, expected: Expected, created_ms: int) -> Segment:
        interval_bytes = self._options.index_interval_bytes
        segment = Segment.load(self._disk, self._directory, base_offset, expected, interval_bytes, created_ms)
        segment.on_damage = self._on_damage
        if segment.saved_size != segment.allocated:
            segment.scan(lambda data, damage: True)
        return segment

    def reaching(self, start_offset: int) -> Segment:
        """The oldest segment that a log starting at `start_offset` needs."""
        return next((one for one in self._segments if one.next_offset > start_offset), self.active)

    def drop_before(self, first: Segment) -> None:
        while self._segments[0] is not first:
            self._forget(self._segments.pop(0))
            self.dropped += 1
        self._disk.sync_directory(self._directory)

    def replace(self, old: list[Segment], base_offset: int, expected: Expected) -> None:
        """One segment now stands on the disk where `old` stood; readers in flight keep the old files."""
        assert base_offset == old[0].base_offset, (self._directory, base_offset)
        assert old[-1] is not self.active, self._directory
        end_offset = old[-1].next_offset
        segment = self._reload(base_offset, expected, old[-1].created_ms)
        segment.sealed = True
        segment.next_offset = end_offset
        first = self._segments.index(old[0])
        assert self._segments[first : first + len(old)] == old, (self._directory, base_offset)
        self._segments[first : first + len(old)] = [segment]
        for one in old:
            self._loaded.pop(one.base_offset, None)

    def let_go(self) -> None:
        """Hold on to nobody: a deleted log's files are closed when the last reader is gone, and not when the collector
        of cycles comes by."""
        self._on_damage = _ignore
        for segment in self._segments:
            segment.on_damage = _ignore

    def _forget(self, segment: Segment) -> None:
        segment.remove_files()
        self._loaded.pop(segment.base_offset, None)


def _ignore(damage: Damage) -> None:
    """Of a log that is gone."""


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
