"""What the log holds, told to deliveries as spans of offsets: which records there are, in which lane, until when.

Batches without wishes are one span each, known from their header. A batch is opened only where its bytes mention a
wish, or where the topic asks for something of every record (a time to live, order by key, fairness between keys). On
topics with fairness by header compressed ones are opened as well.
"""

from collections import deque
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from goqueue.broker.reading.open_batches import OpenBatches, Turn
from goqueue.machines.deliveries.commands import NEVER, NO_KEY, Span
from goqueue.model.errors import GoQueueError
from goqueue.model.lanes import Lane
from goqueue.model.moments import MOMENT_MS_MAX
from goqueue.model.topics import UNLIMITED, TopicOptions
from goqueue.records.batch import Batch, split
from goqueue.records.decode import DecodedRecord
from goqueue.records.wishes import batch_lane, hash_key, hash_sender, lane_and_expiry, mentions_wishes, sender_of
from goqueue.replica.replica import Replica

READ_BYTES = 1024 * 1024
ONE_BATCH = 1


class Look(NamedTuple):
    """What a topic makes us look for."""

    wishes: bool
    opens_compressed: bool
    ttl_ms: int
    """Negative: none."""
    by_key: bool
    is_uncommitted: bool = False
    """Records of open and of aborted transactions are shown, too."""
    fair_by: str = "none"
    needs_records: bool = False
    """Something is asked of every record."""

    @classmethod
    def of(cls, options: TopicOptions, is_uncommitted: bool = False) -> "Look":
        has_wishes, ttl_ms, by_key = options.wishes != "off", options.message_ttl_ms, options.lease_order == "key"
        fair_by = options.fair_by if has_wishes or options.fair_by != "header" else "none"
        opens_compressed = options.wishes == "all" or fair_by == "header"
        needs_records = by_key or ttl_ms != UNLIMITED or fair_by == "key"
        return cls(has_wishes, opens_compressed, ttl_ms, by_key, is_uncommitted, fair_by, needs_records)


def observe(
    replica: Replica, bounds: tuple[int, int], look: Look, batches: OpenBatches, turn: Turn
) -> tuple[tuple[Span, ...], int]:
    """Spans that tile the log from the first offset of `bounds` on, and where they end: at the second (which is not
    observed), or earlier if there is much. The last span may say more.
    """
    offset, limit_offset = bounds
    piece = replica.read(offset, READ_BYTES, limit_offset)
    if piece is None and offset < limit_offset:  # the end of a replay lies within a batch
        end = replica.high_watermark if look.is_uncommitted else replica.last_stable_offset
        piece = replica.read(offset, ONE_BATCH, end)
    if piece is None:
        # Damaged or compacted up to the end.
        return (Span(offset, limit_offset - 1, is_visible=False),) if offset < limit_offset else (), limit_offset
    next_offset = min(piece.next_offset, limit_offset)
    aborted = Aborted(replica.producers.open_transactions.aborted_in(piece.first_offset, piece.next_offset - 1))
    spans: list[Span] = []
    for batch in split(piece.view()):
        if batch.next_offset <= offset:
            continue
        if batch.base_offset > offset:
            _add(spans, Span(offset, batch.base_offset - 1, is_visible=False))
            offset = batch.base_offset
        is_hidden = (aborted.holds(batch) and not look.is_uncommitted) or batch.is_control
        if is_hidden:
            _add(spans, Span(offset, batch.last_offset, is_visible=False))
        if batch.is_control:
            aborted.ended(batch)
        elif not is_hidden:
            offset = _observe_batch(replica, batch, offset, look, batches, turn, spans)
            if offset < batch.next_offset or turn.is_over:
                return tuple(spans), min(offset, next_offset)
        offset = batch.next_offset
    if offset < next_offset:
        _add(spans, Span(offset, next_offset - 1, is_visible=False))
    return tuple(spans), next_offset


class Aborted:
    """Which batches of a piece of log belong to aborted transactions; asked in the order of the log."""

    def __init__(self, transactions: Sequence[tuple[int, int]]) -> None:
        self._to_come = deque(sorted(transactions, key=itemgetter(1)))
        self._open: set[int] = set()

    def holds(self, batch: Batch) -> bool:
        while self._to_come and self._to_come[0][1] <= batch.base_offset:
            self._open.add(self._to_come.popleft()[0])
        return batch.is_transactional and batch.producer_id in self._open

    def ended(self, marker: Batch) -> None:
        self._open.discard(marker.producer_id)


def _add(spans: list[Span], span: Span) -> None:
    """Neighbours that are alike are one; but records of a key stay apart, each is leased by itself."""
    if spans and span.key_hash == NO_KEY and spans[-1][2:] == span[2:]:
        spans[-1] = spans[-1]._replace(last=span.last)
    else:
        spans.append(span)


def _observe_batch(
    replica: Replica, batch: Batch, offset: int, look: Look, batches: OpenBatches, turn: Turn, spans: list[Span]
) -> int:
    """Add what there is from `offset` on. Where that ends: behind the batch, or behind some of its records if there is
    much in it.
    """
    lane = batch_lane(batch)
    whole = Span(offset, batch.last_offset, Lane.NORMAL if lane is None else lane)
    needs_records = look.needs_records or not batch.is_dense
    if not needs_records and not (look.wishes and mentions_wishes(batch, look.opens_compressed)):
        _add(spans, whole)
        return batch.next_offset
    opened = batches.open(replica, batch, offset)
    reached = offset
    while True:
        for record in opened.records:
            if record.offset >= reached:
                if record.offset > reached:
                    _add(spans, Span(reached, record.offset - 1, is_visible=False))
                _add(spans, _record_span(record, look, lane))
                reached = record.offset + 1
        if opened.is_at_end:
            if reached < batch.next_offset:
                _add(spans, Span(reached, batch.last_offset, is_visible=False))
            return batch.next_offset
        if turn.is_over and reached > offset:
            return reached
        try:
            opened.go_on(turn)
        except GoQueueError:  # delivered all the same: its consumer shall see what there is
            _add(spans, whole._replace(first=reached))
            return batch.next_offset


def _record_span(record: DecodedRecord, look: Look, lane: int | None) -> Span:
    own_lane, expires_at_ms = lane_and_expiry(record.headers)
    if expires_at_ms == NEVER and look.ttl_ms != UNLIMITED:
        # Its producer chose the timestamp, and both may be as large as a number can be.
        expires_at_ms = min(max(record.timestamp, 0) + look.ttl_ms, MOMENT_MS_MAX)
    key_hash = hash_key(record.key) if look.by_key and record.key is not None else NO_KEY
    sender = 0
    if look.fair_by == "header":
        sender = sender_of(record.headers)
    elif look.fair_by == "key" and record.key:
        sender = hash_sender(record.key)
    return Span(
        record.offset, record.offset, own_lane if lane is None else lane, expires_at_ms, key_hash, sender=sender
    )
