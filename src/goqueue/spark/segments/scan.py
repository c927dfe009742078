"""The batches of one piece, each checked by its sum, and what is damaged between them."""

from collections.abc import Iterator

from goqueue.records.batch import Batch
from goqueue.records.transactions import Transactions
from goqueue.records.walk import Damage, walk
from goqueue.spark.segments.heads import opened
from goqueue.spark.segments.plan import Piece


def batches_of(piece: Piece) -> Iterator[Batch | Damage]:
    """Those with records for the reader. Damage has its place in the file. What a running broker is writing at the
    very end of its active segment is not damage."""
    transactions = Transactions()
    transactions.aborted = piece.aborted
    for item in _walked(piece):
        if isinstance(item, Damage):
            if max(item.next_offset, item.first_offset + 1) > piece.start and item.first_offset < piece.limit:
                yield item
            continue
        if item.base_offset >= piece.limit:
            return
        is_aborted = item.is_transactional and transactions.is_aborted(item.producer_id, item.base_offset)
        if item.next_offset > piece.start and item.record_count and not item.is_control and not is_aborted:
            yield item


def _walked(piece: Piece) -> Iterator[Batch | Damage]:
    expected = piece.segment.expected
    due = piece.first_offset
    with opened(piece.segment, is_active=piece.is_active, start=piece.position, end=piece.end) as data:
        for item in walk(data, due, expected, piece.next_offset):
            if not isinstance(item, Damage):
                due = item.batch.next_offset
                yield item.batch
                continue
            due = item.next_offset
            damage = item._replace(position=piece.position + item.position, end=piece.position + item.end)
            if not (piece.may_be_torn and damage.end == piece.end):
                yield damage
    if due < piece.next_offset and not expected.has_gaps and not piece.may_be_torn:
        yield Damage(piece.end, piece.end, due, piece.next_offset, "the end is missing")
