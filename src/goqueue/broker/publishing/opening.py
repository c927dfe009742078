"""Opening a batch that is being published, on topics that must look at its records: the one place that knows how much
may be in it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from goqueue.model.codes import Code
from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.model.refusal import Refused
from goqueue.model.topics import TopicOptions
from goqueue.records.batch import CODEC_MASK, Batch
from goqueue.records.decode import DecodedRecord, decode
from goqueue.records.portions import portions

RECORDS_MAX = 100_000
"""Of a compressed batch: each costs a microsecond or more, however small it is, and the others wait."""


def open_published(batch: Batch, options: TopicOptions) -> Sequence[DecodedRecord]:
    """All records of `batch`. BatchTooLarge: more than its topic opens. Refused: it holds no records."""
    with _told():
        _check_count(batch)
        return decode(batch, max_bytes=_bytes_max(batch, options))


def read_published(batch: Batch, options: TopicOptions) -> Iterator[DecodedRecord]:
    """As `open_published`, for who looks at each record once."""
    with _told():
        _check_count(batch)
        for portion in portions(batch, max_bytes=_bytes_max(batch, options)):
            yield from portion.records


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
