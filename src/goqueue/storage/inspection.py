"""Is a log whole? Told by its files alone, and without changing one: a node asks before it opens its metadata, and a
person asks about a directory on which no node runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from goqueue.model.errors import DamagedFile
from goqueue.model.ranges import Range
from goqueue.records.batch import Batch
from goqueue.records.log_files import base_offset_of
from goqueue.records.walk import Damage, Expected
from goqueue.storage.disk import Disk
from goqueue.storage.evidence import known_end
from goqueue.storage.options import LogOptions
from goqueue.storage.recovery import keep_rotten_end
from goqueue.storage.segment import Segment
from goqueue.storage.state import LogState
from goqueue.storage.swap import Manifest

INTERVAL_BYTES = LogOptions().index_interval_bytes


@dataclass(slots=True)
class Inspection:
    log: str
    end_offset: int = 0
    reached: int = 0
    """How far it is known to have reached once."""
    has_segments: bool = False
    missing: list[Range] = field(default_factory=list)
    """First and last offset of each hole."""
    damaged_batches: int = 0
    """Among those that no index vouches for: the others are checked when they are read."""

    @property
    def is_short(self) -> bool:
        """Its end is lost, or all of it."""
        return self.end_offset < self.reached

    @property
    def is_whole(self) -> bool:
        return not self.is_short and not self.missing and not self.damaged_batches

    def words(self) -> str:
        """What is wrong, for a person."""
        found = [f"offsets {first} to {last} are missing" for first, last in self.missing]
        if self.is_short:
            what = f"it ends at offset {self.end_offset}" if self.has_segments else "it has no segment"
            found.append(f"{what}, though it once reached {self.reached}")
        if self.damaged_batches:
            found.append(f"{self.damaged_batches} batches are damaged")
        return "; ".join(found)


def inspect(disk: Disk, directory: str) -> Inspection:
    """OSError or ReadFailed if it cannot be read."""
    names = disk.list(directory)
    found = Inspection(directory, reached=known_end(disk, directory, names))
    state = _state(disk, directory)
    found.end_offset = start_offset = state.start_offset if state is not None else 0
    is_being_compacted = Manifest.load(disk, directory) is not None  # what it replaces may be gone, and is not missing
    due: int | None = start_offset if state is not None else None
    for segment in _segments(disk, directory, names, state, found.reached):
        if segment.next_offset <= start_offset and segment.size:
            continue  # deleted by retention; a start sweeps it away
        found.has_segments = True
        if due is not None and segment.base_offset > due and not is_being_compacted:
            found.missing.append((due, segment.base_offset - 1))
        # Compaction leaves gaps: where no index tells the end of a segment, the next one's name has to do.
        is_vague = segment.expected.has_gaps and not segment.saved_size
        due = None if is_vague else segment.next_offset
        found.end_offset = segment.next_offset
        found.damaged_batches += len(segment.damage)
    return found


def batches(disk: Disk, directory: str, offset: int, damage: list[Damage] | None = None) -> Iterator[Batch]:
    """All that can be read from `offset` on. `damage`: gets what cannot, when all was read."""
    names = disk.list(directory)
    for segment in _segments(disk, directory, names, _state(disk, directory), known_end(disk, directory, names)):
        yield from (batch for batch in segment.batches() if batch.base_offset >= offset)
        if damage is not None and segment.next_offset > offset:
            damage += segment.damage.values()


def _segments(disk: Disk, directory: str, names: list[str], state: LogState | None, reached: int) -> Iterator[Segment]:
    bases = sorted(base for base in map(base_offset_of, names) if base is not None)
    for base in bases:
        expected = Expected(None, has_gaps=True)
        if state is not None:
            expected = Expected(state.epochs, state.has_gaps(base), max(reached, state.compacted_to))
        segment = Segment.load(disk, directory, base, expected, INTERVAL_BYTES, 0)
        try:
            if segment.saved_size != segment.allocated:
                _take_in(segment, is_last=base == bases[-1])
            yield segment
        finally:
            segment.file.close()


def _take_in(segment: Segment, *, is_last: bool) -> None:
    """What no index vouches for, as recovery would, but for all that it writes."""

    def is_rot(_data: memoryview, damage: Damage) -> bool:
        return damage.end != segment.allocated

    stopped_at = segment.scan(is_rot)
    if is_last and stopped_at is not None:
        keep_rotten_end(segment, stopped_at)


def _state(disk: Disk, directory: str) -> LogState | None:
    try:
        return LogState.load(disk, directory)
    except (FileNotFoundError, DamagedFile):
        return None
