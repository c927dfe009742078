"""From header to header through a segment: what is where, without reading the records.

Headers are believed as long as they fit to where they stand; whoever reads the records checks their sums.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import NamedTuple

from goqueue.records.batch import CONTROL_BIT, HEADER_BYTES, LENGTH_END, MAGIC, TRANSACTIONAL_BIT
from goqueue.records.walk import Damage, Expected, is_zero, next_batch
from goqueue.spark.errors import SparkError
from goqueue.spark.segments.directory import SegmentFile

HEAD = Struct(">qiib4xhi8xqq")
"""Base offset, length, leader epoch, magic, attributes, last offset delta, max timestamp, producer id."""


class Head(NamedTuple):
    position: int
    end: int
    base_offset: int
    next_offset: int
    max_timestamp: int
    attributes: int
    producer_id: int

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)


def heads(data: memoryview, base_offset: int, expected: Expected) -> Iterator[Head | Damage]:
    """Zeros at the end are room that was allocated ahead: the data ends before them."""
    position, offset = 0, base_offset
    while position < len(data):
        head = _head(data, position, offset, expected)
        if head is None:
            later = next_batch(data, position, offset, expected)
            end = len(data) if later is None else later.position
            if later is None and is_zero(data[position:]):
                return
            next_offset = offset if later is None else later.batch.base_offset
            yield Damage(position, end, offset, next_offset, "no batch begins there")
            position, offset = end, next_offset
            continue
        yield head
        position, offset = head.end, head.next_offset


def _head(data: memoryview, position: int, offset: int, expected: Expected) -> Head | None:
    if position + HEADER_BYTES > len(data):
        return None
    base_offset, length, epoch, magic, attributes, delta, max_timestamp, producer_id = HEAD.unpack_from(data, position)
    is_in_place = base_offset == offset or (expected.has_gaps and base_offset > offset)
    end = position + LENGTH_END + length
    if not is_in_place or magic != MAGIC or delta < 0 or length < HEADER_BYTES - LENGTH_END or end > len(data):
        return None
    if expected.epochs is not None and expected.epochs.at(base_offset) != epoch:
        return None
    return Head(position, end, base_offset, base_offset + delta + 1, max_timestamp, attributes, producer_id)


@contextmanager
def opened(segment: SegmentFile, *, is_active: bool, start: int = 0, end: int | None = None) -> Iterator[memoryview]:
    """The bytes of a segment from `start` to `end`, as they were when it was planned. A sealed one is mapped; an active
    one is copied, since its owner may cut it while we look at it. SparkError: another file has taken its place.
    """
    try:
        descriptor = os.open(segment.path, os.O_RDONLY)
    except FileNotFoundError:
        raise SparkError(_gone(segment.path, "is gone")) from None
    try:
        found = os.fstat(descriptor)
        is_same = found.st_size == segment.size and found.st_mtime_ns == segment.changed_ns
        if not is_same and not is_active:
            raise SparkError(_gone(segment.path, "was replaced"))
        until = segment.size if end is None else min(end, segment.size)
        if is_active or not segment.size:
            yield memoryview(_read(descriptor, start, until))
        else:
            # Closed with the last view of it: whoever reads may still hold one.
            yield memoryview(mmap.mmap(descriptor, segment.size, prot=mmap.PROT_READ))[start:until]
    finally:
        os.close(descriptor)


def _read(descriptor: int, position: int, end: int) -> bytes:
    pieces = []
    while position < end and (piece := os.pread(descriptor, end - position, position)):
        pieces.append(piece)
        position += len(piece)
    return b"".join(pieces)


def _gone(path: str, what: str) -> str:
    return (
        f"{path} {what} since the read was planned: retention or compaction of the broker that owns it; "
        "read again, or read a copy"
    )
