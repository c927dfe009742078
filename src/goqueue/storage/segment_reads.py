"""Finding and cutting out whole batches of one segment. All steps go over checked blocks, so every header met is
sound."""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from goqueue.records.batch import LENGTH_END, Batch, check_batch
from goqueue.records.slice import Slice
from goqueue.storage.segment import Segment

HEAD = Struct(">qi11xi8xq")
"""Of a batch header: base offset, length, last offset delta, max timestamp."""
_new_tuple = tuple.__new__

AHEAD_BYTES = 1024
"""So much is read for the head of one batch: a few small ones more are in it, for whoever wants them one by one."""

COARSE_BYTES = 64 * 1024
"""A read this large may end where a block begins: finding the last batch that fits would cost more than it brings."""


class Head(NamedTuple):
    """Where one batch stands and what it spans."""

    position: int
    end: int
    base_offset: int
    next_offset: int
    max_timestamp: int


def read(segment: Segment, offset: int, max_bytes: int, limit_offset: int) -> Slice | None:
    """Whole batches from the one that holds `offset` on, all of them below `limit_offset`; at least one if there is
    one, then not more than `max_bytes`. None: nothing here."""
    found = segment.found
    if found is None or not found[0] <= offset < found[1]:
        found = segment.ahead.get(offset)
    if (
        found is not None and found[0] <= offset < found[1] <= limit_offset and max_bytes <= found[3] - found[2]
    ):  # one record after the other, out of the same batch or of the next ones
        segment.found = found
        return _new_tuple(Slice, (segment.file, found[2], found[3] - found[2], found[0], found[1]))
    position, first_offset = locate(segment, offset)
    if position >= segment.size:
        return None
    end, next_offset = segment.size, segment.next_offset
    if limit_offset < next_offset:
        end, next_offset = locate(segment, limit_offset)
        if end <= position:
            return None
    if end - position > max_bytes:
        end, next_offset = _cut(segment, position, position + max_bytes)
    end, next_offset = _stop_at_damage(segment, position, end, next_offset)
    if end == position:  # a resumed read ran into damage that nobody had seen yet
        segment.boundaries.clear()
        segment.forget_found()
        return read(segment, offset, max_bytes, limit_offset)
    if end not in segment.damage:
        segment.note_boundary(next_offset, end)
    return Slice(segment.file, position, end - position, first_offset, next_offset)


def locate(segment: Segment, offset: int) -> tuple[int, int]:
    """(position, base offset) of the batch that holds `offset`, or of the first one behind it; the end if none."""
    known = segment.boundaries.get(offset)
    if known is not None:
        return known, offset
    found = segment.found
    if found is not None and found[0] <= offset < found[1]:
        return found[2], found[0]
    index, _ = segment.indexes()
    for head in _heads(segment, index.block_of_offset(offset)):
        if head.next_offset > offset:
            segment.found = head.base_offset, head.next_offset, head.position, head.end
            return head.position, head.base_offset
    return segment.size, segment.next_offset


def from_time(segment: Segment, timestamp: int) -> Iterator[Batch]:
    """The batches that may hold a record at or after `timestamp`, in log order."""
    _, time_index = segment.indexes()
    for head in _heads(segment, time_index.block_of_time(timestamp)):
        if head.max_timestamp >= timestamp:
            yield check_batch(memoryview(segment.read(head.position, head.end - head.position)))


def _heads(segment: Segment, block: int) -> Iterator[Head]:
    """The sound batches from `block` on to the end of the segment."""
    index, _ = segment.indexes()
    for number in range(block, len(index)):
        segment.check_blocks(number, number)
        start, end = segment.block_range(index, number)
        data = segment.read(start, min(end - start, segment.interval_bytes + HEAD.size))
        position = start
        while position < end:
            if position in segment.damage:
                position = segment.damage[position].end
                continue
            if position - start + HEAD.size > len(data):  # damage took us past what holds the batches' heads
                data, start = segment.read(position, HEAD.size), position
            head = _head(data, position - start, position)
            yield head
            position = head.end


def _head(data: bytes, at: int, position: int) -> Head:
    base_offset, length, delta, max_timestamp = HEAD.unpack_from(data, at)
    return Head(position, position + LENGTH_END + length, base_offset, base_offset + delta + 1, max_timestamp)


def _spans(data: bytes, position: int) -> dict[int, tuple[int, int, int, int]]:
    """As `Segment.ahead` has them: of the batches whose heads are in `data`, the first of which begins with it."""
    spans: dict[int, tuple[int, int, int, int]] = {}
    at, last = 0, len(data) - HEAD.size
    while at <= last:
        base_offset, length, delta, _ = HEAD.unpack_from(data, at)
        end = at + LENGTH_END + length
        spans[base_offset] = base_offset, base_offset + delta + 1, position + at, position + end
        at = end
    return spans


def _cut(segment: Segment, position: int, target: int) -> tuple[int, int]:
    """The last batch boundary up to `target`, but at least one batch behind `position`."""
    found = segment.found
    if found is not None and found[2] == position and found[3] >= target:
        return found[3], found[1]
    if target - position < HEAD.size and segment.is_sound():  # whatever its length, it is one batch
        segment.ahead = _spans(segment.read(position, min(AHEAD_BYTES, segment.size - position)), position)
        spans = list(segment.ahead.values())
        segment.found = found = spans[0]
        segment.note_boundary(spans[-1][1], spans[-1][3])  # where the next one begins
        return found[3], found[1]
    index, _ = segment.indexes()
    block = index.block_of_position(target)
    end, next_offset = index.positions[block], index.base_offset + index.deltas[block]
    if end - position >= COARSE_BYTES:
        return end, next_offset
    end = position
    for head in _heads(segment, block):
        if head.position > target:
            break
        if head.position > position:
            end, next_offset = head.position, head.base_offset
        if head.end > target:
            break
    if end == position:
        for head in _heads(segment, index.block_of_position(position)):
            if head.position == position:
                return head.end, head.next_offset
    return end, next_offset


def _stop_at_damage(segment: Segment, position: int, end: int, next_offset: int) -> tuple[int, int]:
    if segment.is_sound():
        return end, next_offset
    index, _ = segment.indexes()
    segment.check_blocks(index.block_of_position(position), index.block_of_position(end - 1))
    hit = min((damage for damage in segment.damage.values() if position <= damage.position < end), default=None)
    return (end, next_offset) if hit is None else (hit.position, hit.next_offset)
