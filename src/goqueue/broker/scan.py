"""Walking over part of a log record by record, in turns, so that nobody else has to wait for the end of it."""

from collections.abc import Callable, Collection

from goqueue.broker.observe import Aborted
from goqueue.model.again import Again
from goqueue.model.errors import GoQueueError
from goqueue.records.batch import Batch, split
from goqueue.records.decode import DecodedRecord, decode
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock

PIECE_BYTES = 256 * 1024

OnRecords = Callable[[list[DecodedRecord]], bool]
"""Gets the visible records of one piece of log, in order. False: that is enough."""


def scan(
    replica: Replica,
    bounds: tuple[int, int],
    clock: Clock,
    on_records: OnRecords,
    on_end: Callable[[GoQueueError | None], None],
) -> None:
    """Give all committed records of the offsets [first, next) to `on_records`, a piece at a time."""
    offset, next_offset = max(bounds[0], replica.start_offset), min(bounds[1], replica.last_stable_offset)

    def step(again: Again) -> None:
        nonlocal offset
        try:
            piece = read_piece(replica, offset, next_offset)
        except GoQueueError as error:
            on_end(error)
            return
        if piece is None:
            on_end(None)
            return
        records, offset = piece
        if on_records(records):
            clock.call_soon(again)
        else:
            on_end(None)

    Again(step)()


def read_piece(replica: Replica, offset: int, next_offset: int) -> tuple[list[DecodedRecord], int] | None:
    """Committed records of [offset, next_offset), as many as one read gives, and where to go on. None: that is all."""
    piece = replica.read(offset, PIECE_BYTES, next_offset) if offset < next_offset else None
    if piece is None and offset < next_offset:  # the end lies within a batch
        piece = replica.read(offset, 1, replica.last_stable_offset)
    if piece is None:
        return None
    transactions = replica.producers.open_transactions
    aborted = Aborted(transactions.aborted_in(piece.first_offset, piece.next_offset - 1))
    records: list[DecodedRecord] = []
    for batch in split(piece.view()):
        is_hidden = aborted.holds(batch) or batch.is_control
        if batch.is_control:
            aborted.ended(batch)
        if not is_hidden:
            records += [one for one in _records(batch) if offset <= one.offset < next_offset]
    return records, piece.next_offset


def _records(batch: Batch) -> Collection[DecodedRecord]:
    try:
        return decode(batch)
    except GoQueueError:  # its producer filled it with nonsense: nothing in it can be chosen
        return ()
