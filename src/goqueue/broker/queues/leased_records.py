"""From leased offsets to what a consumer gets: whole batches as bytes, or the records themselves."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from goqueue.broker.reading.open_batches import OpenBatch, OpenBatches, Turn
from goqueue.machines.deliveries.commands import LeasedRun
from goqueue.model.errors import GoQueueError
from goqueue.records.batch import CODEC_MASK, Batch, split
from goqueue.records.decode import DecodedRecord
from goqueue.records.slice import Slice
from goqueue.replica.replica import Replica

ONE_BATCH = 1

_new_tuple = tuple.__new__
_offset_of = attrgetter("offset")

Leased: TypeAlias = tuple[DecodedRecord, LeasedRun]
"""A record and the run that says how often it was delivered."""


class LeasedSlices(NamedTuple):
    slices: list[Slice]
    """Whole batches in the order of offsets; they may hold more than what was leased."""
    runs: list[LeasedRun]
    """What of the leased runs is in them."""
    left_out: list[LeasedRun]
    """What is not: it did not fit."""

    @property
    def size_bytes(self) -> int:
        slices = self.slices
        return slices[0].length if len(slices) == 1 else sum(piece.length for piece in slices)


def read_slices(replica: Replica, runs: Sequence[LeasedRun], bytes_max: int, *, is_first: bool = True) -> LeasedSlices:
    """Whole batches of `bytes_max` together. `is_first`: nothing else is in the answer, so the first batch comes
    whatever its size, because a consumer must get past it.
    """
    if len(runs) == 1:
        run = runs[0]
        piece = replica.read(run.first, ONE_BATCH, replica.high_watermark)
        if (
            piece is not None
            and piece.first_offset <= run.first
            and run.last < piece.next_offset
            and (is_first or piece.length <= bytes_max)
        ):
            return _new_tuple(LeasedSlices, ([piece], [run], []))
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
    if left_out and len(runs) > 1:
        return _most_urgent(replica, runs, bytes_max, is_first=is_first)
    return LeasedSlices(slices, taken, left_out)


def _most_urgent(replica: Replica, runs: Sequence[LeasedRun], bytes_max: int, *, is_first: bool) -> LeasedSlices:
    """Not all fit: those come that stand first in `runs`, wherever they lie in the log. Else whoever asks for few bytes
    would always get what lies first, and an urgent record at the end would be given back each time.
    """
    slices: dict[int, Slice] = {}
    """By first offset, one batch each."""
    taken: list[LeasedRun] = []
    left_out: list[LeasedRun] = []
    room = bytes_max
    for run in runs:
        offset = run.last + 1 if left_out else run.first
        while offset <= run.last:
            piece = replica.read(offset, ONE_BATCH, replica.high_watermark)
            if piece is None or piece.first_offset > run.last:
                offset = run.last + 1  # there is nothing, which whoever reads finds out
            elif piece.first_offset in slices or piece.length <= room or (is_first and not slices):
                if piece.first_offset not in slices:
                    slices[piece.first_offset] = piece
                    room -= piece.length
                offset = piece.next_offset
            else:
                break
        if left_out or offset == run.first:
            left_out.append(run)
        elif offset > run.last:
            taken.append(run)
        else:
            taken.append(run._replace(last=offset - 1))
            left_out.append(run._replace(first=offset))
    return LeasedSlices([slices[first] for first in sorted(slices)], sorted(taken), left_out)


def _pieces(replica: Replica, offset: int, last: int, bytes_max: int) -> Iterator[Slice]:
    """The batches that hold offset..last, and few others: the first, those up to the one with `last`, then that one."""
    piece = replica.read(offset, ONE_BATCH, replica.high_watermark)  # mostly it is all
    while piece is not None and piece.first_offset <= last:
        yield piece
        offset = piece.next_offset
        if offset > last:
            return
        bytes_max = max(ONE_BATCH, bytes_max - piece.length)
        piece = replica.read(offset, bytes_max, last + 1)
        if piece is None:
            piece = replica.read(offset, ONE_BATCH, replica.high_watermark)


class ReadLeases(NamedTuple):
    records: list[Leased]
    """In the order of offsets. Offsets without a record are left out."""
    unreadable: list[LeasedRun]
    """Damaged by its producer before it was signed, or too large to be unpacked."""
    not_reached: list[LeasedRun]
    """More than one turn would have been needed to unpack it. The first record is read in any case: whoever asks must
    get somewhere.
    """

    @property
    def is_empty(self) -> bool:
        return not self.records and not self.unreadable


class LeasedRecords:
    """Who takes one record at a time opens each batch once, not a hundred times."""

    def __init__(self) -> None:
        self._batches = OpenBatches()

    def open(self, replica: Replica, leased: LeasedSlices) -> Iterator[None]:
        """Unpack up to the first record, for `read` that follows: it may be one of 64 MiB. Yields where others may have
        their turn.
        """
        opened = self._open_first(replica, leased)
        if opened is None:
            return
        wanted, turn = opened.end, Turn()
        while opened.end <= wanted and not opened.is_at_end:
            if turn.is_over:
                yield
                turn = Turn()
            try:
                opened.go_on(turn)
            except GoQueueError:
                return  # whoever reads meets it again

    def _open_first(self, replica: Replica, leased: LeasedSlices) -> OpenBatch | None:
        """None: it is not packed, or was opened before."""
        first = leased.runs[0].first
        for batch in self._batches_in(replica, leased.slices[0]):
            if batch.last_offset >= first:
                offset = max(first, batch.base_offset)
                if not batch.attributes & CODEC_MASK:
                    return None
                opened = self._batches.open(replica, batch, offset)
                return opened if opened.end <= offset else None
        return None

    def _batches_in(self, replica: Replica, piece: Slice) -> Iterable[Batch]:
        """Whoever takes one record after the other finds its batch open, and need not read it again."""
        known = self._batches.known(replica, piece.first_offset, piece.length)
        return split(piece.view()) if known is None else (known,)

    def read(self, replica: Replica, leased: LeasedSlices) -> ReadLeases:
        read = ReadLeases([], [], [])
        runs = deque(leased.runs)
        turn = Turn()
        for piece in leased.slices:
            for batch in self._batches_in(replica, piece):
                while runs and runs[0].last < batch.base_offset:
                    runs.popleft()
                if not runs or runs[0].first > batch.last_offset:
                    continue
                if turn.is_over and not read.is_empty:
                    read.not_reached.extend(_within(runs, batch.base_offset, batch.last_offset))
                else:
                    self._read_batch(replica, batch, runs, read, turn)
        return read

    def _read_batch(
        self, replica: Replica, batch: Batch, runs: "deque[LeasedRun]", read: ReadLeases, turn: Turn
    ) -> None:
        wanted = max(runs[0].first, batch.base_offset)
        opened = self._batches.open(replica, batch, wanted)
        while True:
            records = opened.records
            for place in range(bisect_left(records, runs[0].first, key=_offset_of), len(records)):
                record = records[place]
                while runs and runs[0].last < record.offset:
                    runs.popleft()
                if not runs:
                    return
                if runs[0].first <= record.offset:
                    read.records.append((record, runs[0]))
            if opened.is_at_end or not runs or runs[0].first > batch.last_offset or _all_given(runs, opened.end, batch):
                return
            if turn.is_over and not read.is_empty:
                read.not_reached.extend(_within(runs, max(wanted, opened.end), batch.last_offset))
                return
            try:
                opened.go_on(turn)
            except GoQueueError:
                read.unreadable.extend(_within(runs, max(wanted, opened.end), batch.last_offset))
                return


def _all_given(runs: Iterable[LeasedRun], end: int, batch: Batch) -> bool:
    """Whether nothing of `batch` from `end` on is leased."""
    return next(_within(runs, end, batch.last_offset), None) is None


def _within(runs: Iterable[LeasedRun], first: int, last: int) -> Iterator[LeasedRun]:
    for run in runs:
        if run.first > last:
            return
        if run.last >= first:
            yield run._replace(first=max(run.first, first), last=min(run.last, last))
