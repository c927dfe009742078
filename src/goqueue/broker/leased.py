"""From leased offsets to what a consumer gets: whole batches as bytes, or the records themselves."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from goqueue.machines.delivery_commands import LeasedRun
from goqueue.model.errors import GoQueueError
from goqueue.records.batch import Batch, split
from goqueue.records.decode import DecodedRecord, decode
from goqueue.replica.replica import Replica, Slice

RECORD_BATCHES_KEPT = 64
BATCH_BYTES_KEPT = 256 * 1024
ONE_BATCH = 1

Leased: TypeAlias = tuple[DecodedRecord, LeasedRun]
"""A record and the run that says how often it was delivered."""


class LeasedSlices(NamedTuple):
    slices: list[Slice]
    """Whole batches in the order of offsets; they may hold more than what was leased."""
    runs: list[LeasedRun]
    """What of the leased runs is in them."""
    left_out: list[LeasedRun]
    """What is not: it did not fit."""


def read_slices(replica: Replica, runs: Sequence[LeasedRun], bytes_max: int, *, is_first: bool = True) -> LeasedSlices:
    """Whole batches of `bytes_max` together. `is_first`: nothing else is in the answer, so the first batch comes
    whatever its size, because a consumer must get past it.
    """
    slices: list[Slice] = []
    taken: list[LeasedRun] = []
    left_out: list[LeasedRun] = []
    room = bytes_max
    reached = -1
    """Everything below it that was asked for is in `slices`, or gone."""
    is_full = False
    for run in sorted(runs):
        if not is_full and run.last >= reached:
            for piece in _pieces(replica, max(run.first, reached), run.last, max(room, ONE_BATCH)):
                if piece.length > room and (slices or not is_first):
                    is_full = True
                    break
                slices.append(piece)
                room -= piece.length
                reached = piece.next_offset
            else:
                reached = max(reached, run.last + 1)
        if reached > run.last:
            taken.append(run)
        elif reached <= run.first:
            left_out.append(run)
        else:
            taken.append(run._replace(last=reached - 1))
            left_out.append(run._replace(first=reached))
    return LeasedSlices(slices, taken, left_out)


def _pieces(replica: Replica, offset: int, last: int, bytes_max: int) -> Iterator[Slice]:
    """The batches that hold offset..last, and few others: those up to the one with `last`, then that one."""
    while offset <= last:
        piece = replica.read(offset, bytes_max, last + 1)
        if piece is None:
            piece = replica.read(offset, ONE_BATCH, replica.high_watermark)
        if piece is None or piece.first_offset > last:
            return
        yield piece
        offset = piece.next_offset
        bytes_max = max(ONE_BATCH, bytes_max - piece.length)


class LeasedRecords:
    """Decoded batches are kept for a while: who takes one record at a time opens each batch once, not a hundred
    times.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Replica, int], Sequence[DecodedRecord]] = OrderedDict()

    def read(self, replica: Replica, leased: LeasedSlices) -> tuple[list[Leased], list[LeasedRun]]:
        """Records in the order of offsets, and what cannot be read: damaged by its producer before it was signed.
        Offsets without a record are left out.
        """
        found: list[Leased] = []
        unreadable: list[LeasedRun] = []
        runs = deque(leased.runs)
        for piece in leased.slices:
            for batch in split(piece.view()):
                while runs and runs[0].last < batch.base_offset:
                    runs.popleft()
                if not runs or runs[0].first > batch.last_offset:
                    continue
                try:
                    records = self._records(replica, batch)
                except GoQueueError:
                    unreadable.extend(_within(runs, batch))
                    continue
                for record in records:
                    while runs and runs[0].last < record.offset:
                        runs.popleft()
                    if runs and runs[0].first <= record.offset:
                        found.append((record, runs[0]))
        return found, unreadable

    def _records(self, replica: Replica, batch: Batch) -> Sequence[DecodedRecord]:
        key = (replica, batch.base_offset)
        records = self._kept.get(key)
        if records is None:
            records = decode(batch)
            if batch.size <= BATCH_BYTES_KEPT and batch.record_count > 1:
                self._kept[key] = records
                if len(self._kept) > RECORD_BATCHES_KEPT:
                    self._kept.popitem(last=False)
        return records


def _within(runs: Iterable[LeasedRun], batch: Batch) -> Iterator[LeasedRun]:
    for run in runs:
        if run.first > batch.last_offset:
            return
        yield run._replace(first=max(run.first, batch.base_offset), last=min(run.last, batch.last_offset))
