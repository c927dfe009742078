"""Which transactions of one partition are undecided and which were aborted: what readers of committed records ask for.

It is rebuilt from the partition's own batches, so what was aborted stays so whatever is lost beside the log. A log that
is truncated gets a new one: from the last snapshot before the cut, and the batches between the two.
"""

from array import array
from bisect import bisect_left
from collections import deque

import msgspec

from goqueue.model.errors import DamagedFile

NO_OFFSET = -1
_VERSION = 1


class _Saved(msgspec.Struct, array_like=True, frozen=True):
    version: int
    log_start: int
    open: list[tuple[int, int]]
    decided: list[tuple[int, int]]
    aborted: list[tuple[int, int, int, int]]


_decode_saved = msgspec.msgpack.Decoder(_Saved).decode


class OpenTransactions:
    """Told of every transactional batch in the order of the log; `ProducerStates.record` does that."""

    __slots__ = (
        "_aborted_ids",
        "_decided",
        "_earliest",
        "_first_offsets",
        "_last_offsets",
        "_log_start",
        "_open",
        "_stable",
    )

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """Producer id to first offset. Invariant: first offsets rise, because batches come in the order of the log."""
        self._earliest = NO_OFFSET
        """The first offset of the first in `_open`: a dict that lost its first entries is slow to give the next."""
        self._decided: deque[tuple[int, int]] = deque()
        """(marker's offset, first offset) of transactions whose marker may still lie above the high watermark."""
        self._log_start = 0
        # The aborted index, a column each. Invariant: last offsets (those of the markers) rise strictly.
        self._aborted_ids = array("q")
        self._first_offsets = array("q")
        self._last_offsets = array("q")
        self._stable = array("q")
        """What was stable when the marker came. Invariant: it never falls, and whatever was decided later begins there
        or behind it. So a search may stop at the first entry that is stable beyond what is asked for."""

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._open

    def first_offset(self, producer_id: int) -> int:
        """Where the open transaction of a producer begins; NO_OFFSET: it has none."""
        return self._open.get(producer_id, NO_OFFSET)

    def begin(self, producer_id: int, first_offset: int) -> None:
        """A transactional batch was appended: the first of a transaction, or one more."""
        if producer_id not in self._open:
            if not self._open:
                self._earliest = first_offset
            self._open[producer_id] = first_offset

    def not_begun(self, producer_id: int) -> None:
        """The batch that began it was not written."""
        self._open.pop(producer_id, None)
        self._earliest = next(iter(self._open.values()), NO_OFFSET)

    def end(self, producer_id: int, marker_offset: int, *, aborted: bool) -> None:
        """A marker was appended. Without an open transaction it decides nothing: none of its records are here."""
        first = self._open.pop(producer_id, NO_OFFSET)
        if first == NO_OFFSET:
            return
        if first == self._earliest:
            self._earliest = next(iter(self._open.values()), NO_OFFSET)
        self._decided.append((marker_offset, first))
        if aborted:
            self._aborted_ids.append(producer_id)
            self._first_offsets.append(first)
            self._last_offsets.append(marker_offset)
            self._stable.append(self._earliest if self._open else marker_offset + 1)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Below it everything is decided, on every in-sync replica. `high_watermark` never falls between two calls.

        A marker above the high watermark could still be lost with its leader, so it decides nothing yet.
        """
        self.forget_decided(high_watermark)
        stable = high_watermark
        if self._open and self._earliest < stable:
            stable = self._earliest
        for _, first in self._decided:
            stable = min(stable, first)
        return max(stable, self._log_start)

    def forget_decided(self, high_watermark: int) -> None:
        """What was decided below it is decided for good. To be called now and then, should nobody be reading."""
        while self._decided and self._decided[0][0] < high_watermark:
            self._decided.popleft()

    def aborted_in(self, first_offset: int, last_offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of every aborted transaction with a record or its marker in the range."""
        found = []
        for place in range(bisect_left(self._last_offsets, first_offset), len(self._last_offsets)):
            first = self._first_offsets[place]
            if first <= last_offset:
                found.append((self._aborted_ids[place], first))
            if self._stable[place] > last_offset:
                break
        return found

    def drop_below(self, log_start: int) -> None:
        """The log begins at `log_start` now: nobody can ask for what was aborted before."""
        self._log_start = max(self._log_start, log_start)
        place = bisect_left(self._last_offsets, log_start)
        for column in (self._aborted_ids, self._first_offsets, self._last_offsets, self._stable):
            del column[:place]

    def encode(self) -> bytes:
        aborted = list(zip(self._aborted_ids, self._first_offsets, self._last_offsets, self._stable, strict=True))
        saved = _Saved(_VERSION, self._log_start, list(self._open.items()), list(self._decided), aborted)
        return msgspec.msgpack.encode(saved)

    @classmethod
    def decode(cls, data: bytes) -> "OpenTransactions":
        try:
            saved = _decode_saved(data)
        except msgspec.DecodeError as damage:
            raise DamagedFile(f"snapshot of open transactions: {damage}") from None
        if saved.version != _VERSION:
            raise DamagedFile(f"snapshot of open transactions: version {saved.version}")
        made = cls()
        made._log_start = saved.log_start
        made._open.update(saved.open)
        made._earliest = next(iter(made._open.values()), NO_OFFSET)
        made._decided.extend(saved.decided)
        columns = (made._aborted_ids, made._first_offsets, made._last_offsets, made._stable)
        for column, values in zip(columns, zip(*saved.aborted, strict=True)):
            column.extend(values)
        return made
