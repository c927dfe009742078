"""Batches that the broker changes after they were signed: compaction drops records, append time replaces a clock.

Every change re-signs the batch. KIP-534: a batch that keeps tombstones carries the time when they may go, its delete
horizon, in the base timestamp, so that compaction on any replica and after any restart removes them at the same time.
"""

from collections.abc import Sequence
from itertools import pairwise
from struct import Struct
from struct import error as StructError

from goqueue.records.batch import APPEND_TIME_BIT, CHECKED_FROM, CODEC_MASK, Batch
from goqueue.records.decode import DecodedRecord
from goqueue.records.encode import Head, assemble, encode_records, sign

DELETE_HORIZON_BIT = 0x40

_ATTRIBUTES = Struct(">h")
_TIMESTAMP = Struct(">q")
_MAX_TIMESTAMP_AT = 35


def delete_horizon_ms(batch: Batch) -> int | None:
    """When the tombstones of `batch` may go; None: compaction has not kept any in it yet."""
    return batch.base_timestamp if batch.attributes & DELETE_HORIZON_BIT else None


def rebuild_batch(
    batch: Batch,
    records: Sequence[DecodedRecord],
    *,
    delete_horizon_ms: int | None = None,
    encoded: bytearray | None = None,
) -> bytearray:
    """`batch` with only these of its records, the offsets it spans unchanged. A horizon once set stays.

    Without records it is a bare header, as in Kafka: it keeps what producers and offsets need, and no codec, since
    some clients would try to decompress the nothing behind it. `encoded`: what `encode_part` gave for all of them.
    """
    offsets = [batch.base_offset - 1, *(record.offset for record in records), batch.next_offset]
    if any(offset >= following for offset, following in pairwise(offsets)):
        raise ValueError(f"not a subset of {batch!r} in order: offsets {offsets[1:-1]}")
    attributes, base_timestamp, max_timestamp = batch.attributes, batch.base_timestamp, batch.max_timestamp
    if delete_horizon_ms is not None and not attributes & DELETE_HORIZON_BIT:
        attributes, base_timestamp = attributes | DELETE_HORIZON_BIT, delete_horizon_ms
    if records:
        max_timestamp = max(record.timestamp for record in records)  # under append time they all say the same
    else:
        attributes &= ~CODEC_MASK
    head = Head(
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=len(records),
        attributes=attributes,
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )
    return assemble(head, encode_records(records, batch.base_offset, base_timestamp) if encoded is None else encoded)


def encode_part(batch: Batch, records: Sequence[DecodedRecord]) -> bytearray:
    """Some records of `batch`, for who rebuilds it without a delete horizon and takes turns."""
    return encode_records(records, batch.base_offset, batch.base_timestamp)


def stamp_append_time(batch: Batch, now_ms: int) -> Batch:
    """Give every record of `batch` the time of its append, in the caller's memory; returns what it says now."""
    attributes = batch.attributes | APPEND_TIME_BIT
    try:
        timestamp = _TIMESTAMP.pack(now_ms)
    except StructError as mistake:
        raise ValueError(f"append time {now_ms}: {mistake}") from None
    batch.data[_MAX_TIMESTAMP_AT : _MAX_TIMESTAMP_AT + len(timestamp)] = timestamp
    _ATTRIBUTES.pack_into(batch.data, CHECKED_FROM, attributes)
    return batch._replace(attributes=attributes, max_timestamp=now_ms, crc=sign(batch.data))
