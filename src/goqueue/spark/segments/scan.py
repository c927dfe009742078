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
    with opened(piece.segment, is_active=piece.is_active) as data:
        end = min(piece.end, len(data))
        found = walk(data[piece.position : end], piece.first_offset, piece.segment.expected, piece.next_offset)
        for item in found:
            if isinstance(item, Damage):
                placed = item._replace(position=piece.position + item.position, end=piece.position + item.end)
                is_torn = piece.may_be_torn and placed.end == piece.end
                is_wanted = max(item.next_offset, item.first_offset + 1) > piece.start
                if is_wanted and not is_torn and item.first_offset < piece.limit:
                    yield placed
                continue
            batch = item.batch
            if batch.base_offset >= piece.limit:
                return
            is_aborted = batch.is_transactional and transactions.is_aborted(batch.producer_id, batch.base_offset)
            if batch.next_offset > piece.start and batch.record_count and not batch.is_control and not is_aborted:
                yield batch
