"""From a checked batch to its records, for the features that must look inside. All is checked before it is given.

The records are the objects of aiokafka's compiled codec as they come out of it; turning each into one of our own
would halve the speed. They are read from a padded copy, because that codec reads up to twenty bytes beyond the end
of a damaged record before it notices, and the caller's memory may end at a page nobody mapped.
"""

from collections.abc import Sequence
from operator import attrgetter, lt
from typing import NamedTuple, Protocol

from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.records.batch import CODEC_MASK, HEADER, HEADER_BYTES, Batch
from goqueue.records.compression import decompress
from goqueue.records.native import Headers, native_reader
from goqueue.records.weigh import RECORD_BYTES_MIN, object_bytes

DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024
OBJECT_BYTES_PER_MAX = 4
"""The decoded objects may take this many times `max_bytes`; only tiny records and headers come near."""

_PADDING = bytes(32)
_offset_of = attrgetter("offset")


class DecodedRecord(Protocol):
    """One record with its absolute offset and time. A header name is text, its value may be absent."""

    @property
    def offset(self) -> int: ...

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, or -1: its producer gave none."""

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def headers(self) -> Headers: ...


class PlainRecord(NamedTuple):
    """A record made in Python, for the few that the broker itself writes."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def unpack(batch: Batch, *, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> bytes | memoryview:
    """The records of `batch` as they were before compression."""
    packed = batch.data[HEADER_BYTES:]
    # Compaction may leave a batch without records and without the empty stream that its codec would need.
    return decompress(batch.codec, packed, max_bytes) if packed else packed


def decode(
    batch: Batch, *, max_bytes: int = DECOMPRESSED_BYTES_MAX, unpacked: bytes | memoryview | None = None
) -> Sequence[DecodedRecord]:
    """All records of `batch`, in offset order. BatchTooLarge: they need more memory than `max_bytes` allows.
    `unpacked`: what `unpack` gave, if that was needed before.
    """
    plain = unpack(batch, max_bytes=max_bytes) if unpacked is None else unpacked
    if len(plain) < batch.record_count * RECORD_BYTES_MIN:
        raise CorruptBatch(f"{batch!r}: {len(plain)} bytes cannot hold that many records")
    objects_max = max_bytes * OBJECT_BYTES_PER_MAX
    if object_bytes(plain, batch.record_count, objects_max) > objects_max:
        raise BatchTooLarge(f"{batch!r}: its objects would take more than {objects_max} bytes")
    records = read_records(batch, plain, batch.record_count)
    _check_offsets(batch, list(map(_offset_of, records)))
    return records


def read_records(batch: Batch, plain: bytes | memoryview, record_count: int) -> list[DecodedRecord]:
    """So many records of `batch` that stand in `plain`, and nothing else. Their offsets are not checked."""
    # The header as it was checked: the one in memory may have been placed elsewhere meanwhile.
    header = HEADER.pack(*batch[:5], batch.attributes & ~CODEC_MASK, *batch[6:12], record_count)
    padded = b"".join((header, plain, _PADDING))
    reader = native_reader()
    try:
        return list(reader(memoryview(padded)[: -len(_PADDING)]))
    except Exception as damage:
        raise CorruptBatch(f"{batch!r}: {damage}") from damage


def _check_offsets(batch: Batch, offsets: list[int]) -> None:
    if not offsets:
        return
    if offsets[0] < batch.base_offset or offsets[-1] > batch.last_offset or not all(map(lt, offsets, offsets[1:])):
        raise CorruptBatch(f"{batch!r}: offsets do not rise within the batch")
