"""Opening a log: what is known to be good is believed, the rest is scanned; only a torn tail is cut off.

Invariant: an index is saved and a compaction installed only after the data was synced. So everything up to the last of
those is known to have been on the disk: damage there is rot, it costs the damaged batch and nothing behind it. Behind
that point a crash may have lost any write that was never acknowledged: the log ends at the first hole. Rot behind that
point is told from a hole by its look (see walk.lost_a_sector); good batches behind a hole are put aside under another
name, never deleted.
"""

from dataclasses import dataclass, field
from itertools import pairwise

from goqueue.model.errors import DamagedFile
from goqueue.model.ranges import Range
from goqueue.records.log_files import NO_OFFSET, STATE_FORMAT, STATE_NAME, base_offset_of
from goqueue.records.walk import Damage, Expected, claimed_frame, ends_in_zeros, is_zero, lost_a_sector
from goqueue.storage import index_files, swap
from goqueue.storage.disk import Disk
from goqueue.storage.evidence import known_end
from goqueue.storage.options import LogOptions
from goqueue.storage.restarting import finish_restart
from goqueue.storage.segment import Segment
from goqueue.storage.state import LogState
from goqueue.telemetry.logs import get_logger

COPY_BYTES = 1024 * 1024

events = get_logger("storage")


@dataclass(slots=True)
class RecoveryReport:
    """What opening one log took. Nothing but zeros after a clean stop."""

    log: str
    scanned_bytes: int = 0
    truncated_bytes: int = 0
    damage: list[Damage] = field(default_factory=list)
    missing: list[Range] = field(default_factory=list)
    """First and last offset of what was here once and is not any more."""
    notes: list[str] = field(default_factory=list)

    @property
    def needed_work(self) -> bool:
        return bool(self.scanned_bytes or self.truncated_bytes or self.damage or self.missing or self.notes)

    @property
    def missing_offsets(self) -> int:
        return sum(last + 1 - first for first, last in self.missing)

    def miss(self, first: int, end: int) -> None:
        if first < end:
            self.missing.append((first, end - 1))


@dataclass(slots=True)
class Recovered:
    state: LogState
    state_changed: bool
    has_state: bool
    """False: it was lost, or the log is new."""
    segments: list[Segment]
    report: RecoveryReport


def tell_damage(log: str, damage: Damage) -> None:
    events.error(
        "damaged batch",
        log=log,
        offset=damage.first_offset,
        next_offset=damage.next_offset,
        position=damage.position,
        bytes=damage.end - damage.position,
        reason=damage.reason,
    )


def recover(disk: Disk, directory: str, options: LogOptions, now_ms: int) -> Recovered:
    report = RecoveryReport(directory)
    if swap.finish_interrupted(disk, directory):
        report.notes.append("finished an interrupted compaction")
    saved = _load_state(disk, directory, report)
    state = saved or LogState()
    if state.restart_at != NO_OFFSET:
        finish_restart(disk, directory, state)
        report.notes.append(f"finished to begin anew at {state.start_offset}")
    epochs_before = state.epochs.entries()
    segments = _load_segments(disk, directory, options, saved, report, now_ms)
    reached = known_end(disk, directory, disk.list(directory))
    good_to = max([state.compacted_to, reached, *(segment.next_offset for segment in segments if segment.saved_size)])
    if saved is not None and segments:
        report.miss(state.start_offset, segments[0].base_offset)
    for number, segment in enumerate(segments):
        if segment.saved_size != segment.allocated:
            _scan(segments, number, good_to, report)
        if not _joins_next(segments, number, good_to, report):
            _put_aside(segments, number + 1, report)
        _cut_off(segment, report)
        if number + 1 == len(segments):
            break
        segment.sealed = True
    if segments and segments[-1].next_offset < state.start_offset:
        report.notes.append(f"the log ended at {segments[-1].next_offset}, before its start {state.start_offset}")
        _remove(disk, directory, segments)
        segments = []
    if saved is None:
        _learn_state(state, segments)
    _go_on_behind(disk, directory, options, now_ms, (state, segments), reached, report)
    if segments:
        state.epochs.truncate(segments[-1].next_offset + 1)
    changed = state.epochs.entries() != epochs_before
    return Recovered(
        state, changed or saved is None or state.format != STATE_FORMAT, saved is not None, segments, report
    )


def _load_state(disk: Disk, directory: str, report: RecoveryReport) -> LogState | None:
    path = f"{directory}/{STATE_NAME}"
    try:
        return LogState.load(disk, directory)
    except FileNotFoundError:
        return None
    except DamagedFile as error:
        report.notes.append(f"state rebuilt from the batches: {error}")
        disk.rename(path, f"{path}.damaged")
        disk.sync_directory(directory)
        return None


def _load_segments(
    disk: Disk, directory: str, options: LogOptions, state: LogState | None, report: RecoveryReport, now_ms: int
) -> list[Segment]:
    bases = []
    for name in disk.list(directory):
        base = base_offset_of(name)
        if base is not None:
            bases.append(base)
        elif name.endswith(".tmp"):
            disk.remove(f"{directory}/{name}")
    segments = []
    for base in bases:
        # Without the history, whatever epochs and gaps the batches show is believed, once.
        expected = Expected(state.epochs, state.has_gaps(base)) if state else Expected(None, has_gaps=True)
        segment = Segment.load(disk, directory, base, expected, options.index_interval_bytes, now_ms)
        segment.on_damage = report.damage.append
        segments.append(segment)
    start_offset = state.start_offset if state else 0
    below_start = [one for one, later in pairwise(segments) if later.base_offset <= start_offset]
    _remove(disk, directory, below_start)
    return segments[len(below_start) :]


def _scan(segments: list[Segment], number: int, good_to: int, report: RecoveryReport) -> None:
    """Take in what no saved index vouches for. Everything below offset `good_to` is known to have been on the disk."""
    segment = segments[number]
    is_last = all(is_zero(later.view(0, later.allocated)) for later in segments[number + 1 :])
    is_known_good = number + 1 < len(segments) and segments[number + 1].base_offset <= good_to

    def is_rot(data: memoryview, damage: Damage) -> bool:
        at_end_of_file = damage.end == segment.allocated
        if at_end_of_file and (is_last or is_zero(data)):
            return False
        return is_known_good or not lost_a_sector(data, damage.position, at_end_of_file=at_end_of_file)

    start = segment.size
    if segment.saved_size == 0 and segment.allocated and not is_last:
        report.notes.append(f"index of {segment.path} rebuilt")
    report.scanned_bytes += segment.allocated - start
    segment.expected = segment.expected._replace(learns_from=good_to)
    stopped_at = segment.scan(is_rot)
    segment.expected = segment.expected._replace(learns_from=None)
    if is_last and stopped_at is not None:
        keep_rotten_end(segment, stopped_at)
    for position, damage in segment.damage.items():
        if damage.end == segment.allocated and not is_last:  # rot up to the end: nothing is left to cut off
            segment.size = segment.allocated
            segment.next_offset = segments[number + 1].base_offset
            segment.damage[position] = damage._replace(next_offset=segment.next_offset)
    if stopped_at is not None and stopped_at.end != segment.allocated:
        _put_tail_aside(segment, report)
    _write_back(segment, start)


def keep_rotten_end(segment: Segment, damage: Damage) -> None:
    """The last batch of the log is damaged. If all of it was written, it was not torn: it may have been acknowledged,
    so its offsets are not given to others."""
    data = segment.view(damage.position, segment.allocated - damage.position)
    claimed = claimed_frame(data, 0, damage.first_offset)
    if claimed is None or claimed.end > len(data) or not is_zero(data[claimed.end :]):
        return
    if lost_a_sector(data[: claimed.end], damage.position, at_end_of_file=True) or ends_in_zeros(
        data[: claimed.end], damage.position
    ):
        return
    segment.size = damage.position + claimed.end
    segment.next_offset = claimed.next_offset
    segment.note_damage(damage._replace(end=segment.size, next_offset=claimed.next_offset))


def _write_back(segment: Segment, start: int) -> None:
    """Make durable what was taken in. It may be in the page cache alone, and after a failed sync of the process before
    us even count as clean there; so it is written again before it is synced."""
    for position in range(start, segment.size, COPY_BYTES):
        segment.file.write(position, [segment.read(position, min(COPY_BYTES, segment.size - position))])
    segment.file.sync()


def _put_tail_aside(segment: Segment, report: RecoveryReport) -> None:
    """Sound batches stand behind what looks like a hole. They should never have been acknowledged; they are kept all
    the same."""
    target = _free_name(segment)
    file = segment.disk.open(target, create=True)
    for position in range(segment.size, segment.allocated, COPY_BYTES):
        length = min(COPY_BYTES, segment.allocated - position)
        file.write(position - segment.size, [segment.read(position, length)])
    file.sync()
    file.close()
    segment.disk.sync_directory(segment.directory)
    report.notes.append(f"the end of {segment.path} was put aside as {target}: it stands behind a hole")


def _free_name(segment: Segment) -> str:
    number = 1
    while segment.disk.exists(f"{segment.path}.quarantine-{number}"):
        number += 1
    return f"{segment.path}.quarantine-{number}"


def _joins_next(segments: list[Segment], number: int, good_to: int, report: RecoveryReport) -> bool:
    """Does the next segment go on where this one ends? If it is known to, but for a gap, the gap is bridged."""
    segment = segments[number]
    if number + 1 == len(segments) or segments[number + 1].base_offset == segment.next_offset:
        return True
    next_base = segments[number + 1].base_offset
    if next_base < segment.next_offset or next_base > good_to:
        return False
    if not segment.expected.has_gaps or segment.saved_size:  # where there are gaps, only an index knows the end
        report.miss(segment.next_offset, next_base)
    if not segment.expected.has_gaps:
        segment.note_damage(Damage(segment.size, segment.size, segment.next_offset, next_base, "the end is missing"))
    segment.next_offset = next_base
    return True


def _go_on_behind(
    disk: Disk,
    directory: str,
    options: LogOptions,
    now_ms: int,
    found: tuple[LogState, list[Segment]],
    reached: int,
    report: RecoveryReport,
) -> None:
    """The log once reached further than its segments do: their files are gone or were cut. What comes next begins
    behind that, since offsets must not be given twice: readers and snapshots would take the new for the old."""
    state, segments = found
    end = segments[-1].next_offset if segments else state.start_offset
    if end >= reached:
        return
    report.miss(end, reached)
    if segments:
        last = segments[-1]
        last.note_damage(Damage(last.size, last.size, last.next_offset, reached, "the end is missing"))
        last.next_offset = reached
        last.sealed = True
    else:
        disk.make_directory(directory)
    expected = Expected(state.epochs)
    segments.append(Segment.create(disk, directory, reached, expected, options.index_interval_bytes, now_ms))


def _put_aside(segments: list[Segment], first: int, report: RecoveryReport) -> None:
    """From the newest back, so that a crash in between leaves a log that recovers the same way."""
    for segment in reversed(segments[first:]):
        if not is_zero(segment.view(0, segment.allocated)):
            index_files.remove(segment.disk, segment.stem)
            target = _free_name(segment)
            segment.disk.rename(segment.path, target)
            report.notes.append(f"put aside as {target}: it stands behind a hole that a crash left")
        else:
            segment.remove_files()
        segment.disk.sync_directory(segment.directory)
        segment.file.close()
    del segments[first:]


def _cut_off(segment: Segment, report: RecoveryReport) -> None:
    """Cut what stands behind the last batch: room allocated ahead, or a torn write."""
    if segment.allocated == segment.size:
        return
    tail = segment.view(segment.size, segment.allocated - segment.size)
    report.truncated_bytes += len(bytes(tail).rstrip(b"\0"))
    tail.release()
    segment.file.truncate(segment.size)
    segment.file.sync()
    segment.allocated = segment.size


def _remove(disk: Disk, directory: str, segments: list[Segment]) -> None:
    for segment in segments:
        segment.remove_files()
        segment.file.close()
    if segments:
        disk.sync_directory(directory)


def _learn_state(state: LogState, segments: list[Segment]) -> None:
    """From the batches alone. An epoch that a later batch falls below was never one: it rotted."""
    places: list[tuple[int, int]] = []
    due = segments[0].base_offset if segments else 0
    state.start_offset = due
    for segment in segments:
        for batch in segment.batches():
            places.append((batch.leader_epoch, batch.base_offset))
            if batch.base_offset != due:
                state.compacted_to = segments[-1].base_offset
            due = batch.next_offset
    lowest_behind = 1 << 31
    believed = []
    for epoch, base_offset in reversed(places):
        if epoch <= lowest_behind:
            lowest_behind = epoch
            believed.append((epoch, base_offset))
    for epoch, base_offset in reversed(believed):
        if epoch > state.epochs.latest:
            state.epochs.begin(epoch, base_offset)
    for segment in segments:
        segment.expect(Expected(state.epochs, segment.base_offset < state.compacted_to))
