"""Control batches: the marks that the broker writes into a log itself, one record each, to end a transaction."""

from enum import IntEnum
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from goqueue.model.errors import CorruptBatch
from goqueue.records.batch import CONTROL_BIT, NO_EPOCH, TRANSACTIONAL_BIT, Batch
from goqueue.records.decode import PlainRecord, decode
from goqueue.records.encode import Head, assemble, encode_records

VERSION = 0
KEPT_FREE = 0x4751
"""The kind of a control record that only keeps places in the log free. To the protocol it is an unknown one."""
_KEY = Struct(">hh")
_MARKER = Struct(">hi")
_CONTROL_BYTES_MAX = 1024 * 1024  # a marker needs ten bytes


class ControlKind(IntEnum):
    """What a control record says. UNKNOWN: a kind of a later version, to be passed over."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1


class ControlRecord(NamedTuple):
    """The mark of one control batch. `coordinator_epoch` is NO_EPOCH where the kind is UNKNOWN."""

    kind: ControlKind
    version: int
    coordinator_epoch: int


def build_control(
    kind: ControlKind, *, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp: int
) -> bytearray:
    """The batch that ends the transaction of a producer in one partition."""
    if kind is ControlKind.UNKNOWN or min(producer_id, producer_epoch, timestamp) < 0:
        raise ValueError(f"{kind.name} of producer {producer_id}, epoch {producer_epoch}, at {timestamp}")
    try:
        key, value = _KEY.pack(VERSION, kind), _MARKER.pack(VERSION, coordinator_epoch)
    except StructError as mistake:
        raise ValueError(f"coordinator epoch {coordinator_epoch}: {mistake}") from None
    head = Head(
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        record_count=1,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    return assemble(head, encode_records([PlainRecord(0, timestamp, key, value, [])], 0, timestamp))


def build_kept_free(batch: Batch) -> bytearray:
    """What stands in the log for `batch` when none of its records is there yet: it spans the same offsets and has the
    same producer and sequence.

    A batch without records would do the same, but librdkafka takes a reply that holds only such batches for one that
    was cut short. Every client steps over a control batch of a kind that it does not know. It is not transactional:
    that tells it from a marker.
    """
    timestamp = max(batch.max_timestamp, 0)
    head = Head(
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        record_count=1,
        attributes=CONTROL_BIT,
        base_offset=batch.base_offset,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )
    record = PlainRecord(batch.base_offset, timestamp, _KEY.pack(VERSION, KEPT_FREE), b"", [])
    return assemble(head, encode_records([record], batch.base_offset, timestamp))


def decode_control(batch: Batch) -> ControlRecord | None:
    """The mark in a control batch. None: compaction has emptied it, the whole transaction is gone."""
    if not batch.is_control:
        raise ValueError(f"{batch!r} is no control batch")
    if not batch.record_count:
        return None
    if batch.record_count > 1:
        raise CorruptBatch(f"{batch!r}: a control batch holds one record")
    (record,) = decode(batch, max_bytes=_CONTROL_BYTES_MAX)
    try:
        version, number = _KEY.unpack_from(record.key or b"")
        if version < 0:
            raise CorruptBatch(f"{batch!r}: control version {version}")
        if number not in (ControlKind.ABORT, ControlKind.COMMIT):
            return ControlRecord(ControlKind.UNKNOWN, version, NO_EPOCH)
        marker_version, coordinator_epoch = _MARKER.unpack_from(record.value or b"")
    except StructError as damage:
        raise CorruptBatch(f"{batch!r}: {damage}") from None
    if marker_version < 0:
        raise CorruptBatch(f"{batch!r}: marker version {marker_version}")
    return ControlRecord(ControlKind(number), version, coordinator_epoch)
