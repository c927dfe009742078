"""The records of a batch some at a time, unpacked as they are asked for. A batch of 6 kB may hold 64 MiB: whoever wants
one record of it must not pay for all, and whoever wants all must let others have their turn in between.

Unlike `decode`, which gives everything or nothing, damage behind the first records is met after they were given.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.records.batch import HEADER_BYTES, Batch
from goqueue.records.compression import decompress_steps
from goqueue.records.decode import DECOMPRESSED_BYTES_MAX, DecodedRecord, decode, read_records
from goqueue.records.weigh import RECORD_BYTES_MIN, object_bytes, read_varint

RECORDS_MAX = 500
"""In one portion: about two milliseconds."""
OBJECT_BYTES_MAX = 32 * 1024 * 1024
"""What the objects of one portion may take beside the bytes that they hold: only many tiny headers come near."""


class Portion(NamedTuple):
    records: Sequence[DecodedRecord]
    unpacked_bytes: int
    """What it took to come here from the portion before."""


def portions(batch: Batch, *, max_bytes: int = DECOMPRESSED_BYTES_MAX, from_offset: int = 0) -> Iterator[Portion]:
    """All records of `batch` from `from_offset` on, and perhaps some before it, in offset order. Portions without
    records tell of the work that was done. BatchTooLarge: more than `max_bytes` would have to be unpacked.
    """
    packed = batch.data[HEADER_BYTES:]
    if not packed:  # left by compaction
        return
    steps = decompress_steps(batch.codec, packed, max(max_bytes, batch.size))
    first = next(steps, b"")
    second = next(steps, None)
    if second is None and batch.record_count <= RECORDS_MAX:
        yield Portion(decode(batch, max_bytes=max_bytes, unpacked=first), len(first))
        return
    cutting = _Cutting(batch, from_offset)
    yield from cutting.cut(first)
    if second is not None:
        yield from cutting.cut(second)
    for part in steps:
        yield from cutting.cut(part)
    cutting.check_end()


def find_record(batch: Batch, offset: int, *, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> DecodedRecord | None:
    """The first record of `batch` at or behind `offset`."""
    for portion in portions(batch, max_bytes=max_bytes, from_offset=offset):
        for record in portion.records:
            if record.offset >= offset:
                return record
    return None


class _Cutting:
    """Invariant: `_rest` begins with a record."""

    def __init__(self, batch: Batch, from_offset: int) -> None:
        self._batch = batch
        self._skips = max(0, from_offset - batch.base_offset) if batch.is_dense else 0
        """How many records nobody asked for; where offsets have gaps, that is not known without reading them."""
        self._left = batch.record_count
        self._rest = bytearray()
        self._last_offset = batch.base_offset - 1

    def cut(self, part: bytes | memoryview) -> Iterator[Portion]:
        self._rest += part
        size = len(part)
        while True:
            end, count = self._whole()
            if count or not self._left:
                yield Portion(self._read(end, count), size)
                size = 0
            if count < RECORDS_MAX:
                break
        if size:
            yield Portion((), size)

    def check_end(self) -> None:
        if self._left or self._rest:
            raise CorruptBatch(f"{self._batch!r}: {self._left} records are missing, {len(self._rest)} bytes are left")

    def _whole(self) -> tuple[int, int]:
        """Where the records end that have come whole, and how many these are; not more than make one portion."""
        data, end = self._rest, 0
        have = len(data)
        for count in range(min(self._left, RECORDS_MAX)):
            try:
                size = data[end]
                if size < 0x80:
                    size, start = size >> 1 ^ -(size & 1), end + 1
                else:
                    size, start = read_varint(data, end)
            except IndexError:
                return end, count
            if size < RECORD_BYTES_MIN - 1:
                raise CorruptBatch(f"{self._batch!r}: a record of {size} bytes")
            if start + size > have:
                return end, count
            end = start + size
        return end, min(self._left, RECORDS_MAX)

    def _read(self, end: int, count: int) -> Sequence[DecodedRecord]:
        if not count and self._rest:
            raise CorruptBatch(f"{self._batch!r}: bytes behind its last record")
        self._left -= count
        records: Sequence[DecodedRecord] = ()
        if self._skips < count:
            self._skips = 0
            with memoryview(self._rest) as rest, rest[:end] as plain:  # not copied: it may be one record of 60 MB
                records = self._decode(plain, count)
        else:
            self._skips -= count
        del self._rest[:end]
        return records

    def _decode(self, plain: memoryview, count: int) -> Sequence[DecodedRecord]:
        allowed = len(plain) + OBJECT_BYTES_MAX
        if object_bytes(plain, count, allowed) > allowed:
            raise BatchTooLarge(f"{self._batch!r}: {count} of its records would take more than {allowed} bytes")
        return self._checked(read_records(self._batch, plain, count))

    def _checked(self, records: Sequence[DecodedRecord]) -> Sequence[DecodedRecord]:
        for record in records:
            if record.offset <= self._last_offset:
                raise CorruptBatch(f"{self._batch!r}: offsets do not rise within the batch")
            self._last_offset = record.offset
        if self._last_offset > self._batch.last_offset:
            raise CorruptBatch(f"{self._batch!r}: offsets do not rise within the batch")
        return records
