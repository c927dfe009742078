"""Compaction: the last value of each key, at its old offset. It only writes new files; `install` swaps them in.

`plan` and `install` belong to the log's thread, `compact` to a subprocess: it would hold the interpreter for seconds.
Only sealed, synced segments are touched, and only up to the first transaction whose end is not among them.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.records.batch import Batch
from goqueue.records.decode import DecodedRecord, decode
from goqueue.records.epochs import EpochHistory
from goqueue.records.log_files import CLEANED_NAME
from goqueue.records.walk import Expected
from goqueue.storage import swap
from goqueue.storage.compaction_rules import Keep, Survey
from goqueue.storage.disk import Disk
from goqueue.storage.log import NO_ROOM, Log
from goqueue.storage.retention import deletable_to, newest_ms
from goqueue.storage.segment import Segment
from goqueue.storage.snapshots import oldest_offset
from goqueue.storage.swap import Manifest, Replacement

KEYS_MAX = 4_000_000
"""Latest offsets held in memory at once, about 500 bytes each with a 100-byte key; what is left waits for the next
round."""
WRITE_BYTES = 1024 * 1024
LOCK_NAME = "compacting"


@dataclass(frozen=True, slots=True)
class Source:
    base_offset: int
    next_offset: int
    has_gaps: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a compaction needs to know, as plain data for another process."""

    directory: str
    sources: list[Source]
    first_dirty: int
    """Below it each key stands once already."""
    epochs: list[tuple[int, int]]
    segment_bytes: int
    index_interval_bytes: int
    tombstone_ms: int
    remembered_from: int | None
    """Deletions and markers at or behind it stay, whatever their age: the oldest snapshot beside the log does not know
    of them, and a restart that has to begin with it must hear of them. None: there is no snapshot."""
    now_ms: int
    truncations: int
    """Of the log when this was planned: another number means another history."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        fields = json.loads(text)
        fields["sources"] = [Source(**source) for source in fields["sources"]]
        return cls(**fields)


@dataclass(slots=True)
class Counted:
    """Records, without markers."""

    before: int = 0
    after: int = 0


def plan(log: Log, now_ms: int, limit_offset: int | None = None, *, is_asked_for: bool = False) -> Plan | None:
    """What to compact, or None while it is not worth it. `limit_offset`: nothing at or behind it may be touched.
    `is_asked_for`: little is worth it too.
    """
    sources = _sources(log, limit_offset, now_ms)
    ratio = _dirty_ratio(log, sources)
    is_due = is_asked_for or ratio >= log.options.dirty_ratio_min or _is_overdue(log, sources, now_ms)
    if not ratio or not is_due:
        return None
    return Plan(
        directory=log.directory,
        sources=[Source(one.base_offset, one.next_offset, one.expected.has_gaps) for one in sources],
        first_dirty=log.state.compacted_to,
        epochs=log.state.epochs.entries(),
        segment_bytes=log.options.segment_bytes,
        index_interval_bytes=log.options.index_interval_bytes,
        tombstone_ms=log.options.tombstone_ms,
        remembered_from=oldest_offset(log.disk, log.directory),
        now_ms=now_ms,
        truncations=log.truncations,
    )


def dirty_ratio(log: Log, now_ms: int) -> float:
    """Share of the bytes that may be compacted and were not yet."""
    return _dirty_ratio(log, _sources(log, None, now_ms))


def seal_overdue(log: Log, now_ms: int) -> None:
    """Seal the active segment if it has what should have been compacted by now: one that nobody writes to any more
    would keep its records for ever."""
    if now_ms - log.segments.active.created_ms >= log.options.compaction_lag_ms_max:
        log.roll(now_ms)


def _sources(log: Log, limit_offset: int | None, now_ms: int) -> list[Segment]:
    limit = deletable_to(log, limit_offset)
    oldest_kept_ms = now_ms - log.options.compaction_lag_ms_min
    sources = []
    for segment in log.segments.sealed:
        is_young = log.options.compaction_lag_ms_min > 0 and newest_ms(segment) > oldest_kept_ms
        if segment.next_offset > limit or is_young:
            break  # what comes behind it stays too: a key must not lose its last value but one first
        sources.append(segment)
    return sources


def _is_overdue(log: Log, sources: list[Segment], now_ms: int) -> bool:
    latest_ms = now_ms - log.options.compaction_lag_ms_max
    return any(one.created_ms <= latest_ms for one in sources if one.base_offset >= log.state.compacted_to)


def _dirty_ratio(log: Log, sources: list[Segment]) -> float:
    dirty_bytes = sum(segment.size for segment in sources if segment.base_offset >= log.state.compacted_to)
    return dirty_bytes / sum(segment.size for segment in sources) if dirty_bytes else 0.0


def compact(disk: Disk, plan: Plan) -> Manifest | None:
    """Write the compacted segments, durably, beside the log. None: nothing may be compacted yet."""
    lock = disk.lock(f"{plan.directory}/{LOCK_NAME}")  # an orphan of a killed broker may still be at work
    try:
        return _compact(disk, plan)
    finally:
        lock.release()


def _compact(disk: Disk, plan: Plan) -> Manifest | None:
    swap.sweep(disk, plan.directory)
    segments = [_open(disk, plan, source) for source in plan.sources]
    survey = Survey()
    for segment in segments:
        for batch in segment.batches():
            survey.add(batch)
    segments = [one for one in segments if one.next_offset <= survey.end_of_decided()]
    latest, segments = _latest_offsets(segments, plan.first_dirty, survey)
    if not segments or segments[-1].base_offset < plan.first_dirty:
        return None
    keep = Keep(survey, latest, plan.now_ms, plan.tombstone_ms, plan.remembered_from)
    if not disk.exists(plan.directory):
        return None  # deleted meanwhile; making a folder in it would bring it back
    disk.make_directory(f"{plan.directory}/{CLEANED_NAME}")
    replacements = []
    counted = Counted()
    for group in _groups(segments, plan.segment_bytes):
        if group[0].damage:
            keep.pass_over(group[0].batches())
        else:
            replacements.append(_rewrite(disk, plan, group, keep, counted))
    disk.sync_directory(f"{plan.directory}/{CLEANED_NAME}")
    return Manifest(
        replacements,
        segments[-1].next_offset,
        plan.truncations,
        counted.before,
        counted.after,
        keep.tombstones_to,
    )


def install(log: Log, manifest: Manifest) -> bool:
    """Swap the outputs in. False: the log has changed meanwhile (retention, truncation), they are thrown away."""
    log.check_open()
    sealed = {segment.base_offset: segment for segment in log.segments.sealed}
    needed = [base for replacement in manifest.replacements for base in replacement.sources]
    try:
        if manifest.truncations != log.truncations or any(base not in sealed for base in needed):
            swap.sweep(log.disk, log.directory)
            return False
        try:
            manifest.save(log.disk, log.directory)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            swap.sweep(log.disk, log.directory)  # nothing is decided without a manifest
            return False
        swap.install(log.disk, log.directory, manifest, log.state)
        before_bytes = log.segments.size_bytes
        expected = Expected(log.state.epochs, has_gaps=True)
        for replacement in manifest.replacements:
            log.segments.replace([sealed[base] for base in replacement.sources], replacement.base_offset, expected)
    except OSError as error:
        raise log.poison("swap compacted segments in", error) from error
    log.segments.compactions += 1
    log.segments.compacted_away_bytes += before_bytes - log.segments.size_bytes
    return True


def _open(disk: Disk, plan: Plan, source: Source) -> Segment:
    """As the log knows it: what its own index says is not asked, damage is found by reading."""
    expected = Expected(EpochHistory(plan.epochs), source.has_gaps)
    segment = Segment.load(disk, plan.directory, source.base_offset, expected, plan.index_interval_bytes, plan.now_ms)
    segment.size = segment.allocated
    segment.next_offset = source.next_offset
    return segment


def _records(batch: Batch) -> list[DecodedRecord] | None:
    """None: the checksum is right, but the inside is not: the producer's fault, and not ours to throw away."""
    try:
        return list(decode(batch))
    except (CorruptBatch, BatchTooLarge):
        return None


def _latest_offsets(
    segments: list[Segment], first_dirty: int, survey: Survey
) -> tuple[dict[bytes, int], list[Segment]]:
    """The last offset of each key in the dirty part, and the segments that this covers."""
    latest: dict[bytes, int] = {}
    for number, segment in enumerate(segments):
        if segment.base_offset < first_dirty:
            continue
        if len(latest) >= KEYS_MAX:
            return latest, segments[:number]
        for batch in segment.batches():
            if not batch.is_control and not survey.is_aborted(batch):
                for record in _records(batch) or ():
                    if record.key is not None:
                        latest[record.key] = record.offset
    return latest, segments


def _groups(segments: list[Segment], segment_bytes: int) -> Iterator[list[Segment]]:
    """Neighbours that fit into one segment, so that compacted segments do not become ever more and smaller. A damaged
    one stands alone: it is left as it is, since what cannot be read is not ours to throw away."""
    group: list[Segment] = []
    for segment in segments:
        fits = sum(one.size for one in group) + segment.size <= segment_bytes
        if group and (segment.damage or group[0].damage or not fits):
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def _rewrite(disk: Disk, plan: Plan, group: list[Segment], keep: Keep, counted: Counted) -> Replacement:
    base_offset = group[0].base_offset
    directory = f"{plan.directory}/{CLEANED_NAME}"
    expected = Expected(EpochHistory(plan.epochs), has_gaps=True)
    output = Segment.create(disk, directory, base_offset, expected, plan.index_interval_bytes, group[-1].created_ms)
    pending: list[Batch] = []
    pending_bytes = 0
    for segment in group:
        for batch in segment.batches():
            kept = keep.rebuild(batch, _records(batch))
            if not batch.is_control:
                counted.before += batch.record_count
                counted.after += kept.record_count if kept is not None else 0
            if kept is not None:
                pending.append(kept)
                pending_bytes += kept.size
            if pending_bytes >= WRITE_BYTES:
                output.append_placed(pending)
                pending, pending_bytes = [], 0
    output.append_placed(pending)
    output.next_offset = group[-1].next_offset
    output.file.sync()
    output.save_index()
    output.sync_index()
    return Replacement([segment.base_offset for segment in group])
