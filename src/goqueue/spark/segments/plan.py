"""Which parts of which segments a read needs: by offsets, by time, and by how transactions ended.

Only headers are read here, and of segments that are out of range not even those. A transaction is decided by its
marker, which may stand behind all that is wanted, also in the active segment; the log is read up to the first
transaction that has none, as every Kafka consumer does that wants committed records only.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.records.batch import check_batch
from goqueue.records.decode import decode
from goqueue.records.transactions import FOR_EVER, Transactions
from goqueue.records.walk import Damage
from goqueue.spark.errors import SparkError
from goqueue.spark.segments.directory import LogFiles, SegmentFile
from goqueue.spark.segments.heads import Head, heads, opened
from goqueue.telemetry.logs import get_logger

PIECE_BYTES = 128 * 1024 * 1024

events = get_logger("spark")


@dataclass(frozen=True)
class Piece:
    """Bytes of one segment for one task, and which of the records in them are wanted."""

    topic: str
    partition: int
    segment: SegmentFile
    is_active: bool
    position: int
    end: int
    first_offset: int
    next_offset: int
    start: int = 0
    """Records before it are not wanted, nor those from `limit` on."""
    limit: int = FOR_EVER
    may_be_torn: bool = False
    """Its last batch may be on its way to the disk just now."""
    aborted: dict[int, list[tuple[int, int]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """Of one log. Offsets; a moment is searched for where it is given."""

    start: int = 0
    limit: int = FOR_EVER
    start_ms: int | None = None
    limit_ms: int | None = None
    is_committed: bool = True
    with_active: bool = False
    skips_damage: bool = False


def pieces_of(log: LogFiles, wanted: Wanted, piece_bytes: int = PIECE_BYTES) -> list[Piece]:
    readable = log.segments if wanted.with_active else log.segments[:-1]
    start = max(log.start_offset, wanted.start)
    limit = wanted.limit
    if wanted.start_ms is not None:
        start = max(start, _first_at(log, readable, wanted.start_ms, start))
    if wanted.limit_ms is not None:
        limit = min(limit, _first_at(log, readable, wanted.limit_ms, start))
    transactions = Transactions()
    found: list[Piece] = []
    for number, segment in enumerate(readable):
        following = log.segments[number + 1] if number + 1 < len(log.segments) else None
        if following is not None and following.base_offset <= start:
            continue
        if segment.base_offset >= limit:
            break
        is_active = following is None
        cut = _Cut(log, segment, is_active, piece_bytes)
        for item in _noted(segment, is_active, transactions, wanted):
            cut.add(item)
        is_torn_off = following is not None and _is_torn_off(log, cut.next_offset, following)
        found += cut.finish(None if is_torn_off else following)
        if is_torn_off:
            events.warning("segments behind a hole are left out", log=segment.path, offset=cut.next_offset)
            break
    if wanted.is_committed:
        _decide_open(log, found, transactions, wanted)
        undecided = transactions.end_of_decided()
        if undecided < limit:
            limit = undecided
            events.warning("read up to an open transaction", topic=log.topic, partition=log.partition, offset=undecided)
    if start >= limit:
        return []
    needed = [one for one in found if one.next_offset > start and one.first_offset < limit]
    return [_bounded(one, start, limit, transactions) for one in needed]


def _bounded(piece: Piece, start: int, limit: int, transactions: Transactions) -> Piece:
    aborted = {
        producer: kept
        for producer, spans in transactions.aborted.items()
        if (kept := [span for span in spans if span[1] > piece.first_offset and span[0] < piece.next_offset])
    }
    return replace(piece, start=start, limit=limit, aborted=aborted)


class _Cut:
    """Cuts a segment into pieces, between batches."""

    def __init__(self, log: LogFiles, segment: SegmentFile, is_active: bool, piece_bytes: int) -> None:
        self._log = log
        self._segment = segment
        self._is_active = is_active
        self._piece_bytes = piece_bytes
        self._found: list[Piece] = []
        self._start = self._end = 0
        self._first_offset = self.next_offset = segment.base_offset

    def add(self, item: Head | Damage) -> None:
        is_torn_end = isinstance(item, Damage) and self._is_active and item.end == self._segment.size
        if is_torn_end:
            return
        if item.end - self._start > self._piece_bytes and self._end > self._start:
            self._close()
        self._end = item.end
        self.next_offset = item.next_offset

    def _close(self) -> None:
        span = (self._start, self._end, self._first_offset, self.next_offset)
        self._found.append(Piece(self._log.topic, self._log.partition, self._segment, self._is_active, *span))
        self._start, self._first_offset = self._end, self.next_offset

    def finish(self, following: SegmentFile | None) -> list[Piece]:
        if self._end > self._start:
            self._close()
        if self._found:
            # Damage at the end of a segment costs what is missing up to the next one.
            end_offset = self.next_offset if following is None else max(self.next_offset, following.base_offset)
            self._found[-1] = replace(self._found[-1], next_offset=end_offset, may_be_torn=self._is_active)
        return self._found


def _is_torn_off(log: LogFiles, next_offset: int, following: SegmentFile) -> bool:
    """As in recovery: a segment that does not go on where the one before it ends was never acknowledged, unless it is
    known to have been on the disk."""
    return following.base_offset != next_offset and (
        following.base_offset < next_offset or following.base_offset > log.good_to
    )


def _noted(
    segment: SegmentFile, is_active: bool, transactions: Transactions, wanted: Wanted
) -> Iterator[Head | Damage]:
    """All heads of a segment; what they say about transactions is taken down on the way."""
    with opened(segment, is_active=is_active) as data:
        for item in heads(data, segment.base_offset, segment.expected):
            if wanted.is_committed and isinstance(item, Head) and item.is_transactional:
                _note(data, item, segment, transactions, wanted)
            yield item


def _note(data: memoryview, head: Head, segment: SegmentFile, transactions: Transactions, wanted: Wanted) -> None:
    if not head.is_control:
        transactions.wrote(head.producer_id, head.base_offset)
        return
    try:
        transactions.ended(check_batch(data, head.position))
    except CorruptBatch as error:
        if not wanted.skips_damage:
            raise SparkError(
                f"{segment.path}: the end of a transaction is damaged at byte {head.position},"
                f" offset {head.base_offset}: {error}; badRows=permissive leaves its records out"
            ) from None
        transactions.end(head.producer_id, head.base_offset, is_commit=False)


def _decide_open(log: LogFiles, found: list[Piece], transactions: Transactions, wanted: Wanted) -> None:
    """Markers of what is still open stand behind the pieces, if anywhere."""
    if not found:
        return
    last = found[-1].segment.base_offset
    for segment in log.segments:
        if segment.base_offset <= last or not transactions.open:
            continue
        for _ in _noted(segment, segment is log.segments[-1], _OnlyEnds(transactions), wanted):
            if not transactions.open:
                break


class _OnlyEnds(Transactions):
    """Hears of the ends of transactions that are known, and of no new ones."""

    def __init__(self, known: Transactions) -> None:
        super().__init__()
        self.open, self.aborted = known.open, known.aborted

    def wrote(self, producer_id: int, base_offset: int) -> None:
        pass


def _first_at(log: LogFiles, segments: list[SegmentFile], moment_ms: int, start: int) -> int:
    """The offset of the first record, in log order, that is not before the moment; FOR_EVER: there is none."""
    for number, segment in enumerate(segments):
        following = log.segments[number + 1] if number + 1 < len(log.segments) else None
        is_before = following is not None and following.base_offset <= start
        newest_ms = segment.max_timestamp
        if is_before or (newest_ms is not None and newest_ms < moment_ms):
            continue
        with opened(segment, is_active=following is None) as data:
            for item in heads(data, segment.base_offset, segment.expected):
                if isinstance(item, Damage) or item.is_control or item.max_timestamp < moment_ms:
                    continue
                offset = _first_in(data, item, moment_ms, start)
                if offset is not None:
                    return offset
    return FOR_EVER


def _first_in(data: memoryview, head: Head, moment_ms: int, start: int) -> int | None:
    try:
        records = decode(check_batch(data, head.position))
    except (CorruptBatch, BatchTooLarge):
        return None  # it has no times to find it by; whoever reads it is told
    return next((one.offset for one in records if one.timestamp >= moment_ms and one.offset >= start), None)
