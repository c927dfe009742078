"""From the bytes of a Fetch to the batches that a consumer may see, and from those to messages."""

from collections.abc import Iterator, Sequence
from struct import Struct

from goqueue.client.assigned import Assigned
from goqueue.client.message import Message
from goqueue.model.errors import BatchTooLarge
from goqueue.records.batch import HEADER_BYTES, LENGTH_END, Batch, check_batch
from goqueue.records.control import ControlKind, decode_control
from goqueue.records.decode import DecodedRecord, decode
from goqueue.records.lanes import tell_lane
from goqueue.records.portions import portions
from goqueue.wire.kafka.messages.fetch import AbortedTransaction

AT_ONCE_RECORDS, AT_ONCE_BYTES = 2000, 1024 * 1024
"""What costs little memory and a few milliseconds. A portion at a time is slower."""
_LENGTH_AT = 8
_LENGTH = Struct(">i")


def whole_batches(records: memoryview) -> Iterator[Batch]:
    """A broker may cut the last one short. CorruptBatch: one is damaged."""
    at = 0
    while len(records) - at >= HEADER_BYTES:
        (length,) = _LENGTH.unpack_from(records, at + _LENGTH_AT)
        if at + LENGTH_END + length > len(records):
            return
        batch = check_batch(records, at)
        yield batch
        at += batch.size


def visible_batches(records: memoryview, aborted: list[AbortedTransaction] | None) -> Iterator[tuple[Batch, bool]]:
    """Each batch, and whether it has messages for the reader: marks never do, what was aborted does not either."""
    left = sorted(aborted, key=lambda one: one.first_offset, reverse=True) if aborted else []
    aborting: set[int] = set()
    for batch in whole_batches(records):
        while left and left[-1].first_offset <= batch.last_offset:
            aborting.add(left.pop().producer_id)
        if batch.is_control:
            if batch.is_marker:
                mark = decode_control(batch)
                if mark is not None and mark.kind is ControlKind.ABORT:
                    aborting.discard(batch.producer_id)
            yield batch, False
        else:
            yield batch, not (batch.is_transactional and batch.producer_id in aborting) and batch.record_count > 0


def messages_of(state: Assigned, batch: Batch) -> Iterator[list[Message]]:
    """Those from the position of the partition on: all at once if they are not too many, else a portion at a time.
    CorruptBatch: it is damaged, perhaps behind messages that were given.
    """
    topic, partition = state.place
    start = state.position
    for records in _portions(batch, start):
        messages = [
            Message(topic, partition, one.offset, one.timestamp, one.key, one.value, one.headers)
            for one in tell_lane(batch, records)
        ]
        if batch.base_offset < start:
            messages = [message for message in messages if message.offset >= start]
        yield messages


def _portions(batch: Batch, start: int) -> Iterator[Sequence[DecodedRecord]]:
    if batch.record_count <= AT_ONCE_RECORDS:
        try:
            records = decode(batch, max_bytes=AT_ONCE_BYTES)
        except BatchTooLarge:
            pass
        else:
            yield records
            return
    for portion in portions(batch, from_offset=start):
        yield portion.records
