"""Batches that are being read some records at a time. Their places are kept: whoever comes back for the next records
goes on, instead of unpacking a large batch from its beginning again and again.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from goqueue.model.errors import GoQueueError
from goqueue.records.batch import CODEC_MASK, Batch
from goqueue.records.decode import DecodedRecord
from goqueue.records.lanes import tell_lane
from goqueue.records.portions import Portion, portions
from goqueue.replica.replica import Replica

TURN_BYTES = 2 * 1024 * 1024
"""Unpacked bytes for which nobody else has to wait: a few milliseconds."""
RECORD_COST = 256
"""A record costs as much as unpacking so many bytes, however small it is."""
BATCHES_KEPT = 64
BYTES_KEPT = 32 * 1024 * 1024

_NOTHING: Iterator[Portion] = iter(())


class Turn:
    """How much may still be unpacked before others have their turn. What never was compressed costs nothing: how much
    of it is read was bounded by whoever read it.
    """

    def __init__(self, room: int = TURN_BYTES) -> None:
        self.room = room

    @property
    def is_over(self) -> bool:
        return self.room <= 0


class OpenBatch:
    """Invariant: `records` are neighbours, and those behind them are still to come from `_portions`."""

    def __init__(self, batch: Batch, offset: int) -> None:
        # Copied: the log's memory is not ours beyond this turn.
        own = batch._replace(data=memoryview(bytes(batch.data)))
        self.batch = own
        self._portions = portions(own, from_offset=offset)
        self._is_compressed = batch.attributes & CODEC_MASK != 0
        self._last_offset = batch.last_offset
        self._packed_bytes = batch.size
        self.begin = offset
        """Nothing below it can be had any more."""
        self.end = offset
        """Everything below it has been read."""
        self.records: Sequence[DecodedRecord] = ()
        self._coming_bytes = 0
        """Of a record that has not come whole."""
        self.kept_bytes = batch.size
        self._failure: GoQueueError | None = None

    @property
    def is_at_end(self) -> bool:
        return self.end > self._last_offset

    def go_on(self, turn: Turn) -> None:
        """To the next records, though there may be none yet. CorruptBatch, BatchTooLarge: the rest is unreadable."""
        if self._failure is not None:
            raise self._failure.kept()
        try:
            portion = next(self._portions, None)
        except GoQueueError as error:
            self._portions, self._failure = _NOTHING, error.kept()
            raise
        self.begin = self.end
        if portion is None:
            self.records, self.end = (), self._last_offset + 1
            return
        if self._is_compressed:
            turn.room -= portion.unpacked_bytes + len(portion.records) * RECORD_COST
        self.records = tell_lane(self.batch, portion.records)
        self._coming_bytes += portion.unpacked_bytes
        self.kept_bytes = self._packed_bytes + self._coming_bytes
        if portion.records:
            self._coming_bytes = 0
            self.end = portion.records[-1].offset + 1
            if self.is_at_end:
                self._portions = _NOTHING


class OpenBatches:
    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Replica, int], OpenBatch] = OrderedDict()
        """Invariant: the one used last comes last."""
        self._counted: dict[tuple[Replica, int], int] = {}
        """What each of them was known to hold when another was opened; the one used last may have grown since."""
        self._bytes = 0

    def open(self, replica: Replica, batch: Batch, offset: int) -> OpenBatch:
        """`batch` as it was left by whoever read it last, or anew if that is behind `offset`."""
        key = (replica, batch.base_offset)
        offset = max(offset, batch.base_offset)
        if self._kept:
            self._count(next(reversed(self._kept)))
        found = self._kept.pop(key, None)
        if found is None or found.begin > offset:
            found = OpenBatch(batch, offset)
        if batch.record_count > 1 or batch.attributes & CODEC_MASK:  # one plain record is cheap to read again
            self._kept[key] = found
        self._count(key)
        self._make_room()
        return found

    def known(self, replica: Replica, first_offset: int, size: int) -> Batch | None:
        """The batch that begins there and is so long, if it is open."""
        found = self._kept.get((replica, first_offset))
        return found.batch if found is not None and found.batch.size == size else None

    def _count(self, key: tuple[Replica, int]) -> None:
        found = self._kept.get(key)
        self._bytes -= self._counted.pop(key, 0)
        if found is not None:
            self._counted[key] = found.kept_bytes
            self._bytes += found.kept_bytes

    def _make_room(self) -> None:
        """The one that is used now stays."""
        while len(self._kept) > 1 and (self._bytes > BYTES_KEPT or len(self._kept) > BATCHES_KEPT):
            key, _ = self._kept.popitem(last=False)
            self._count(key)
