"""The protocol's numbers for our errors: what a client of Kafka is told, and what nodes tell each other."""

from goqueue.model.codes import Code
from goqueue.model.errors import (
    BatchTooLarge,
    CoordinatorFailed,
    CoordinatorLoading,
    CorruptBatch,
    DiskFull,
    GoQueueError,
    InvalidWish,
    NotCoordinator,
    OffsetOutOfRange,
    ReadFailed,
)
from goqueue.model.refusal import Refused

CODES: tuple[tuple[type[GoQueueError], Code], ...] = (
    (CorruptBatch, Code.CORRUPT_MESSAGE),
    (BatchTooLarge, Code.MESSAGE_TOO_LARGE),
    (OffsetOutOfRange, Code.OFFSET_OUT_OF_RANGE),
    (DiskFull, Code.KAFKA_STORAGE_ERROR),
    (InvalidWish, Code.INVALID_RECORD),
    (ReadFailed, Code.KAFKA_STORAGE_ERROR),
    (CoordinatorLoading, Code.COORDINATOR_LOAD_IN_PROGRESS),
    (CoordinatorFailed, Code.COORDINATOR_NOT_AVAILABLE),
    (NotCoordinator, Code.NOT_COORDINATOR),
)


def code_of(error: GoQueueError) -> Code:
    """The protocol's number for one of our errors."""
    if isinstance(error, Refused):
        return error.code
    return next((code for kind, code in CODES if isinstance(error, kind)), Code.KAFKA_STORAGE_ERROR)
