"""Walking over part of a log record by record, in turns, so that nobody else has to wait for the end of it."""

from collections.abc import Callable, Iterator

from goqueue.broker.queues.observe import Aborted
from goqueue.model.again import Again
from goqueue.model.errors import CorruptBatch, GoQueueError
from goqueue.records.batch import Batch, split
from goqueue.records.decode import DecodedRecord
from goqueue.records.lanes import tell_lane
from goqueue.records.portions import Portion, portions
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock
from goqueue.telemetry.logs import get_logger

PIECE_BYTES = 256 * 1024
TURN_BYTES = 512 * 1024
"""Unpacked bytes of one turn; more only if a codec cannot give less at once."""
TURN_RECORDS = 2000

OnRecords = Callable[[list[DecodedRecord]], bool]
"""Gets the visible records of one turn, in order; there may be none. False: that is enough."""

events = get_logger("broker")


def scan(
    replica: Replica,
    bounds: tuple[int, int],
    clock: Clock,
    on_records: OnRecords,
    on_end: Callable[[GoQueueError | None], None],
) -> None:
    """Give all committed records of the offsets [first, next) to `on_records`, a turn at a time."""
    reader = Reader(replica, max(bounds[0], replica.start_offset), min(bounds[1], replica.last_stable_offset))

    def step(again: Again) -> None:
        try:
            records = reader.take()
        except GoQueueError as error:
            on_end(error)
            return
        if records is None:
            on_end(None)
        elif on_records(records):
            clock.call_soon(again)
        else:
            on_end(None)

    Again(step)()


class Reader:
    """Committed records of [offset, next_offset). Between two turns it holds at most a piece of the log and what has
    been unpacked of one record.
    """

    def __init__(self, replica: Replica, offset: int, next_offset: int) -> None:
        self._replica = replica
        self._next_offset = next_offset
        self._piece: Iterator[Portion] | None = None
        self.offset = offset
        """Everything before it was given."""

    @property
    def holds_piece(self) -> bool:
        """False: it can as well be made anew at `offset`."""
        return self._piece is not None

    def take(self) -> list[DecodedRecord] | None:
        """Those of the next turn, up to the end of a piece of the log. None: that was all."""
        if self._piece is None:
            self._piece = self._open_piece()
            if self._piece is None:
                return None
        records: list[DecodedRecord] = []
        room = TURN_BYTES
        while room > 0 and len(records) < TURN_RECORDS:
            try:
                portion = next(self._piece, None)
            except CorruptBatch:  # it rotted since it was checked: from now on it is known, and passed over
                self._replica.log.segments.of(self.offset).check_again()
                portion = None
            if portion is None:
                self._piece = None
                break
            records += portion.records
            room -= portion.unpacked_bytes
        return records

    def _open_piece(self) -> Iterator[Portion] | None:
        offset, replica = self.offset, self._replica
        piece = replica.read(offset, PIECE_BYTES, self._next_offset) if offset < self._next_offset else None
        if piece is None and offset < self._next_offset:  # the end lies within a batch
            piece = replica.read(offset, 1, replica.last_stable_offset)
        if piece is None:
            return None
        transactions = replica.producers.open_transactions
        aborted = Aborted(transactions.aborted_in(piece.first_offset, piece.next_offset - 1))
        # Read, not viewed: the log's memory is not ours beyond this turn.
        return self._portions(memoryview(piece.read()), aborted, piece.next_offset)

    def _portions(self, data: memoryview, aborted: Aborted, next_offset: int) -> Iterator[Portion]:
        for batch in split(data):
            is_hidden = aborted.holds(batch) or batch.is_control
            if batch.is_control:
                aborted.ended(batch)
            if not is_hidden:
                yield from self._visible(batch)
            self.offset = max(self.offset, batch.next_offset)
        self.offset = max(self.offset, next_offset)

    def _visible(self, batch: Batch) -> Iterator[Portion]:
        try:
            for portion in portions(batch, from_offset=self.offset):
                records = [one for one in portion.records if self.offset <= one.offset < self._next_offset]
                if records:
                    self.offset = records[-1].offset + 1
                yield Portion(tell_lane(batch, records), portion.unpacked_bytes)
                if portion.records and portion.records[-1].offset >= self._next_offset - 1:
                    return
        except GoQueueError as error:  # what its producer did to it nobody can choose from: the next one may be whole
            topic, partition = self._replica.place
            where = f"{topic}/{partition}/{batch.base_offset}"
            events.warning("the rest of a batch cannot be read", batch=where, reason=str(error))
