"""Walking over the batches of a segment, past damage: one damaged batch costs one batch.

The checksum does not cover a batch's base offset and leader epoch, because the broker sets them. They are checked here,
against where the batch stands: the offset must follow from the batch before it, the epoch from the log's history.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from goqueue.model.errors import CorruptBatch
from goqueue.records.batch import HEADER_BYTES, LENGTH_END, MAGIC, Batch, check_batch
from goqueue.records.epochs import EpochHistory

SECTOR_BYTES = 512
"""The smallest piece that a disk writes whole or not at all."""
MAGIC_AT = 16
FRAME = Struct(">qi")
CLAIM = Struct(">qi4xb6xi")
"""Of a batch header: base offset, length, magic, last offset delta."""
WINDOW_BYTES = 64 * 1024
OFFSETS_SKIPPED_MAX = 1 << 31
CHECKED_BYTES_MAX = 1 << 30
"""How many bytes the search behind one damaged batch may run checksums over: a message full of fake headers must not
make it quadratic."""
_ZEROS = bytes(64 * 1024)


class Expected(NamedTuple):
    """What the bytes outside a batch's checksum must say."""

    epochs: EpochHistory | None
    """None: the history is lost too, and whatever the batches say is believed."""
    has_gaps: bool = False
    """True: compaction took whole batches out, so offsets rise without being dense."""
    learns_from: int | None = None
    """Behind this offset nothing is known to have been synced, and the history is saved with a sync: a batch there may
    tell of an epoch that the history does not know yet."""


class Damage(NamedTuple):
    """Bytes [position, end) of a segment that hold no batch, and the offsets that are gone with them."""

    position: int
    end: int
    first_offset: int
    next_offset: int
    reason: str


class Found(NamedTuple):
    position: int
    batch: Batch


def walk(data: memoryview, offset: int, expected: Expected, next_offset: int | None = None) -> Iterator[Found | Damage]:
    """All batches in `data`, the first due at `offset`, and the damage between them.

    `next_offset` is the offset due behind `data` where that is known; else damage at the end is taken to have cost
    nothing that anybody could name.
    """
    position = 0
    while position < len(data):
        try:
            batch = check_batch(data, position)
            if expected.learns_from is not None:
                _learn_epoch(data, position + batch.size, batch, offset, expected)
            _check_place(batch, offset, expected)
        except CorruptBatch as error:
            later = next_batch(data, position, offset, expected)
            if later is None:
                last = max(offset, next_offset or offset)
                yield Damage(position, len(data), offset, last, str(error))
                return
            yield Damage(position, later.position, offset, later.batch.base_offset, str(error))
            position, batch = later
        yield Found(position, batch)
        offset = batch.next_offset
        position += batch.size


def _check_place(batch: Batch, offset: int, expected: Expected) -> None:
    if batch.base_offset != offset and not (expected.has_gaps and batch.base_offset > offset):
        raise CorruptBatch(f"the batch claims offset {batch.base_offset}, but {offset} is next")
    if expected.epochs is not None and batch.leader_epoch != expected.epochs.at(batch.base_offset):
        raise CorruptBatch(
            f"the batch claims epoch {batch.leader_epoch}, but {expected.epochs.at(batch.base_offset)} wrote its offset"
        )


def _learn_epoch(data: memoryview, behind: int, batch: Batch, offset: int, expected: Expected) -> None:
    """Only a later epoch than all that are known, and only if the next batch does not fall below it: then it rotted."""
    epochs, learns_from = expected.epochs, expected.learns_from
    if epochs is None or learns_from is None or batch.leader_epoch <= epochs.latest:
        return
    if batch.base_offset < max(offset, learns_from) or (batch.base_offset != offset and not expected.has_gaps):
        return
    if behind < len(data):
        try:
            later = check_batch(data, behind)
        except CorruptBatch:
            later = None
        if later is not None and later.base_offset >= batch.next_offset and later.leader_epoch < batch.leader_epoch:
            return
    epochs.begin(batch.leader_epoch, batch.base_offset)


class Frame(NamedTuple):
    """What the header of a damaged batch claims."""

    end: int
    next_offset: int


def claimed_frame(data: memoryview, position: int, offset: int) -> Frame | None:
    """Where the batch at `position`, damaged though it is, says that it ends; None if not even its start is as it must
    be."""
    if position + HEADER_BYTES > len(data):
        return None
    base_offset, length, magic, last_offset_delta = CLAIM.unpack_from(data, position)
    if base_offset != offset or magic != MAGIC or length < HEADER_BYTES - LENGTH_END or last_offset_delta < 0:
        return None
    return Frame(position + LENGTH_END + length, offset + last_offset_delta + 1)


def next_batch(data: memoryview, damaged_at: int, offset: int, expected: Expected) -> Found | None:
    """The first sound batch behind a damaged one.

    A message may hold the bytes of whole batches, which must not be taken for ours. So where the damaged batch's own
    length leads to a batch, that is the one; and a batch inside the span that it claims counts only if it has just the
    offset that must come next (the length may be what is damaged)."""
    after_gap = expected._replace(has_gaps=True)
    claimed = claimed_frame(data, damaged_at, offset)
    if claimed is not None:
        found, _ = _try_batch(data, claimed.end, offset, after_gap)
        if found is not None:
            return found
    budget = CHECKED_BYTES_MAX
    for position in _magic_positions(data, damaged_at + 1):
        is_inside = claimed is not None and position < claimed.end
        if is_inside and FRAME.unpack_from(data, position)[0] != claimed.next_offset:  # type: ignore[union-attr]
            continue
        found, checked_bytes = _try_batch(data, position, offset, after_gap)
        budget -= checked_bytes
        if found is not None or budget < 0:
            return found
    return None


def _magic_positions(data: memoryview, start: int) -> Iterator[int]:
    """Where batches might begin: MAGIC stands sixteen bytes behind. In windows, since most of the data is never
    needed."""
    for window_at in range(start + MAGIC_AT, len(data), WINDOW_BYTES):
        window = bytes(data[window_at : window_at + WINDOW_BYTES])
        at = window.find(MAGIC)
        while at >= 0:
            yield window_at + at - MAGIC_AT
            at = window.find(MAGIC, at + 1)


def _try_batch(data: memoryview, position: int, offset: int, expected: Expected) -> tuple[Found | None, int]:
    """The sound batch at `position`, if there is one, and how many bytes had to be checked to tell."""
    if position + HEADER_BYTES > len(data):
        return None, 0
    base_offset, length = FRAME.unpack_from(data, position)
    if not offset < base_offset <= offset + OFFSETS_SKIPPED_MAX or position + LENGTH_END + length > len(data):
        return None, 0
    try:
        batch = check_batch(data, position)
        _check_place(batch, offset, expected)
    except CorruptBatch:
        return None, max(0, length)
    return Found(position, batch), 0


def is_zero(data: memoryview) -> bool:
    return all(_ZEROS.startswith(bytes(data[at : at + len(_ZEROS)])) for at in range(0, len(data), len(_ZEROS)))


def lost_a_sector(data: memoryview, position: int, *, at_end_of_file: bool) -> bool:
    """Do these bytes, a damage that stands at `position` of its file, look like a write that never reached the disk?

    Space is allocated as zeros before it is written, and a disk writes whole sectors. So a lost write leaves nothing
    but zeros, or zeros from a batch's start or a sector's to the end of that sector. Rot changes bits and leaves the
    rest. Telling them apart is what keeps good batches behind rot and drops unacknowledged ones behind a hole.
    """
    if is_zero(data):
        return True
    start = 0
    end = SECTOR_BYTES - position % SECTOR_BYTES
    while end <= len(data):
        # The first seven bytes of a batch are the high bytes of its offset: zeros there tell nothing.
        if end - start > 7 and is_zero(data[start:end]):
            return True
        start, end = end, end + SECTOR_BYTES
    return at_end_of_file and len(data) - start > 7 and is_zero(data[start:])


def ends_in_zeros(data: memoryview, position: int) -> bool:
    """Is the part of these bytes that lies in their last sector all zeros?"""
    end = position + len(data)
    last_sector = max(0, end - (end % SECTOR_BYTES or SECTOR_BYTES) - position)
    return is_zero(data[last_sector:])
