"""Opening a batch that is being published, on topics that must look at its records: the one place that knows how much
may be in it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter

from goqueue.model.codes import Code
from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.model.refusal import Refused
from goqueue.model.topics import TopicOptions
from goqueue.records.batch import CODEC_MASK, Batch
from goqueue.records.decode import OBJECT_BYTES_PER_MAX, DecodedRecord, decode
from goqueue.records.portions import RECORDS_MAX as PORTION_RECORDS_MAX
from goqueue.records.portions import portions
from goqueue.records.weigh import HEADER_OBJECT_BYTES, RECORD_OBJECT_BYTES

RECORDS_MAX = 100_000
"""Of a compressed batch: each costs a microsecond or more, however small it is."""
TURN_RECORDS = PORTION_RECORDS_MAX
SMALL_BYTES = 256 * 1024
"""What is looked at in one turn, at most."""

_headers_of = attrgetter("headers")


def in_portions(records: Sequence[DecodedRecord], count: int = TURN_RECORDS) -> Iterator[Sequence[DecodedRecord]]:
    """As many at a time as are looked at in one turn."""
    for start in range(0, len(records), count):
        yield records[start : start + count]


def open_published(batch: Batch, options: TopicOptions) -> Sequence[DecodedRecord]:
    """All records of `batch`. BatchTooLarge: more than its topic opens. Refused: it holds no records."""
    with _told():
        _check_count(batch)
        return decode(batch, max_bytes=_bytes_max(batch, options))


def read_published(batch: Batch, options: TopicOptions, bytes_max: int | None = None) -> Iterator[DecodedRecord]:
    """As `open_published`, for who looks at each record once. `bytes_max`: if that is less than its topic opens."""
    with _told():
        _check_count(batch)
        for portion in portions(batch, max_bytes=_bytes_max(batch, options) if bytes_max is None else bytes_max):
            yield from portion.records


def portions_published(
    batch: Batch, options: TopicOptions, *, are_kept: bool = False
) -> Iterator[Sequence[DecodedRecord]]:
    """As `open_published`, some records at a time; there may be none among them. `are_kept`: all of them together must
    not take more memory than `open_published` allows.
    """
    with _told():
        _check_count(batch)
        bytes_max = _bytes_max(batch, options)
        room = bytes_max * OBJECT_BYTES_PER_MAX
        for portion in portions(batch, max_bytes=bytes_max):
            if are_kept:
                headers = sum(map(len, map(_headers_of, portion.records)))
                room -= portion.unpacked_bytes + len(portion.records) * RECORD_OBJECT_BYTES
                room -= headers * HEADER_OBJECT_BYTES
                if room < 0:
                    allowed = bytes_max * OBJECT_BYTES_PER_MAX
                    raise BatchTooLarge(f"{batch!r}: its objects would take more than {allowed} bytes")
            yield portion.records


def _check_count(batch: Batch) -> None:
    if batch.attributes & CODEC_MASK and batch.record_count > RECORDS_MAX:
        raise BatchTooLarge(f"{batch.record_count} records in a compressed batch, at most {RECORDS_MAX} are taken")


def _bytes_max(batch: Batch, options: TopicOptions) -> int:
    return max(options.max_unpacked_bytes, batch.size)  # what is not compressed has come this far already


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BatchTooLarge as error:
        raise BatchTooLarge(
            f"{error}; this topic looks at every record on publish: send smaller batches, or raise max.unpacked.bytes"
        ) from error
    except CorruptBatch as error:
        raise Refused(Code.CORRUPT_MESSAGE, str(error)) from error
