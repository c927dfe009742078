"""New batches from records, for every door but Kafka's: encoded in bulk by the compiled builder, sealed by us."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from goqueue.records.batch import (
    APPEND_TIME_BIT,
    HEADER,
    HEADER_BYTES,
    NO_EPOCH,
    NO_PRODUCER,
    TRANSACTIONAL_BIT,
    Codec,
)
from goqueue.records.compression import Octets
from goqueue.records.decode import PlainRecord
from goqueue.records.encode import NO_SEQUENCE, Head, assemble, encode_records
from goqueue.records.native import Headers, native_builder
from goqueue.records.wishes import lane_bits

_TIME_END = 2**63

NewRecord: TypeAlias = tuple[int, Octets | None, Octets | None, Headers]
"""timestamp, key, value, headers: a tuple, because an object per message would cost more than encoding it."""


def build_batch(  # noqa: PLR0913  these are the fields of the header
    records: Iterable[NewRecord],
    *,
    codec: Codec = Codec.NONE,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    append_time: int | None = None,
    lane: int | None = None,
    is_of_any_time: bool = False,
) -> bytearray:
    """One dense batch, writable so that the log can place it. `append_time`: every record then carries that time.
    `lane`: the one of all these records, for readers that do not decode them. `is_of_any_time`: they are copies of what
    another producer has stored, and may be older than 1970; the builder cannot say that, so it takes longer.

    ValueError: no records, a negative timestamp (unless `is_of_any_time`), a producer without epoch or
    sequence, a value of the wrong type or one that does not fit its field.
    """
    if producer_id >= 0 and min(producer_epoch, base_sequence) < 0:
        raise ValueError(f"producer {producer_id} needs an epoch and a sequence")
    if transactional and producer_id < 0:
        raise ValueError("a transaction needs a producer")
    plain = _encode_slowly(list(records)) if is_of_any_time else _encode(records)
    encoded = HEADER.unpack_from(plain)
    attributes = codec | lane_bits(lane)
    if transactional:
        attributes |= TRANSACTIONAL_BIT
    if append_time is not None:
        attributes |= APPEND_TIME_BIT
    head = Head(
        last_offset_delta=encoded[6],
        base_timestamp=encoded[7],
        max_timestamp=encoded[8] if append_time is None else append_time,
        record_count=encoded[12],
        attributes=attributes,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
    return assemble(head, memoryview(plain)[HEADER_BYTES:])


def build_fitting(records: Sequence[NewRecord], bytes_max: int, **producer: int) -> bytearray:
    """One batch of records that were stored before, compressed if they need not fit in any other way: then they came
    so. It may be too large still.
    """
    made = build_batch(records, **producer)  # type: ignore[arg-type]
    return made if len(made) <= bytes_max else build_batch(records, codec=Codec.ZSTD, **producer)  # type: ignore[arg-type]


def _encode(records: Iterable[NewRecord]) -> bytearray:
    """The records behind the builder's own header, which tells their number and times."""
    builder = native_builder()
    append = builder.append
    offset = -1
    try:
        for offset, (timestamp, key, value, headers) in enumerate(records):
            # The builder would take its own clock for None and mix up its base time after a -1.
            if timestamp < 0:
                raise ValueError(f"record {offset}: timestamp {timestamp} is negative")
            append(offset, timestamp, key, value, headers)
    except (TypeError, OverflowError) as mistake:
        raise ValueError(f"record {offset}: {mistake}") from mistake
    if offset < 0:
        raise ValueError("a batch needs a record")
    return builder.build()


def _encode_slowly(records: Sequence[NewRecord]) -> bytearray:
    if not records:
        raise ValueError("a batch needs a record")
    plain = [
        PlainRecord(offset, timestamp, _octets(key), _octets(value), headers)
        for offset, (timestamp, key, value, headers) in enumerate(records)
    ]
    times = [record.timestamp for record in plain]
    if not -_TIME_END <= min(times) <= max(times) < _TIME_END:
        raise ValueError("a timestamp that does not fit into 64 bits")
    head = Head(len(plain) - 1, times[0], max(times), len(plain))
    try:
        return assemble(head, encode_records(plain, 0, times[0]))
    except (AttributeError, TypeError) as mistake:
        raise ValueError(f"a field of the wrong type: {mistake}") from mistake


def _octets(given: Octets | None) -> bytes | None:
    return None if given is None else bytes(given)
