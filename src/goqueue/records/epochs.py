"""Which leader wrote which offsets: what a follower compares to find where its log parted from its leader's."""

from bisect import bisect_right
from collections.abc import Iterable

from goqueue.model.errors import StaleEpoch
from goqueue.records.batch import NO_EPOCH

NO_OFFSET = -1


class EpochHistory:
    """Invariant: epochs and their first offsets both rise strictly."""

    __slots__ = ("_epochs", "_starts")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.replace(entries)

    def replace(self, entries: Iterable[tuple[int, int]]) -> None:
        self._epochs.clear()
        self._starts.clear()
        for epoch, start in entries:
            self.begin(epoch, start)

    @property
    def latest(self) -> int:
        return self._epochs[-1] if self._epochs else NO_EPOCH

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def begin(self, epoch: int, start_offset: int) -> None:
        """The next record, at `start_offset`, is the first of `epoch`."""
        if epoch <= self.latest:
            raise StaleEpoch(f"epoch {epoch} is over: the log has seen epoch {self.latest}")
        if self._starts and start_offset <= self._starts[-1]:
            self.truncate(start_offset)  # the last epoch wrote nothing
        self._epochs.append(epoch)
        self._starts.append(start_offset)

    def at(self, offset: int) -> int:
        """The epoch that wrote `offset`."""
        place = bisect_right(self._starts, offset) - 1
        return self._epochs[place] if place >= 0 else NO_EPOCH

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The last epoch not above `epoch` and the offset where it ended; (NO_EPOCH, NO_OFFSET) for one yet to come."""
        if epoch > self.latest or epoch < 0:
            return NO_EPOCH, NO_OFFSET
        place = bisect_right(self._epochs, epoch)
        found = self._epochs[place - 1] if place else epoch
        return found, self._starts[place] if place < len(self._starts) else log_end

    def truncate(self, end_offset: int) -> bool:
        """Forget what begins at or behind `end_offset`; True if anything did."""
        before = len(self._starts)
        while self._starts and self._starts[-1] >= end_offset:
            self._starts.pop()
            self._epochs.pop()
        return len(self._starts) != before

    def forget_below(self, offset: int) -> None:
        """Forget epochs that ended at or before `offset`, where the oldest segment begins."""
        place = bisect_right(self._starts, offset) - 1
        if place > 0:
            del self._epochs[:place], self._starts[:place]
