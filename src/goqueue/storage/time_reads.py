"""Reading a log by time: the log as it stood at a moment, whatever order the producers' clocks came in."""

from collections.abc import Iterator
from typing import NamedTuple

from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.records.batch import CODEC_MASK, Batch, split
from goqueue.records.decode import DecodedRecord
from goqueue.records.portions import Portion, portions
from goqueue.storage.log import Log
from goqueue.storage.options import MIB
from goqueue.storage.segment_reads import from_time
from goqueue.telemetry.logs import get_logger

UNPACKED_BYTES_MAX = 16 * MIB
"""How much is unpacked to find one record by its time. Where that is not enough, the header of a batch is believed."""

events = get_logger("storage")


class Moment(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp: int


def first_at_or_after(log: Log, timestamp: int) -> Moment | None:
    """The first record, in log order, whose timestamp is `timestamp` or later."""
    log.check_open()
    room = UNPACKED_BYTES_MAX
    for segment in log.segments:
        if segment.max_timestamp < timestamp or segment.next_offset <= log.start_offset:
            continue
        if not segment.has_index:
            log.segments.touch(segment)
        for batch in from_time(segment, timestamp):
            if room <= 0 and not batch.is_control and batch.next_offset > log.start_offset:
                return Moment(max(batch.base_offset, log.start_offset), batch.max_timestamp)
            for portion in _portions(log, batch):
                room -= portion.unpacked_bytes if batch.attributes & CODEC_MASK else 0
                for record in portion.records:
                    if record.timestamp >= timestamp and record.offset >= log.start_offset:
                        return Moment(record.offset, record.timestamp)
    return None


def records_between(log: Log, from_ms: int, to_ms: int) -> Iterator[DecodedRecord]:
    """The records of [from_ms, to_ms): the log up to the first record at or after `to_ms`, without what is older than
    `from_ms`. A record stamped inside the range but written after its end is late and not part of it."""
    first = first_at_or_after(log, from_ms)
    if first is None or from_ms >= to_ms:
        return
    last = first_at_or_after(log, to_ms)
    end_offset = log.end_offset if last is None else last.offset
    offset = first.offset
    while offset < end_offset and (piece := log.read(offset, MIB)) is not None:
        for batch in split(piece.view()):
            for portion in _portions(log, batch):
                for record in portion.records:
                    if first.offset <= record.offset < end_offset and record.timestamp >= from_ms:
                        yield record
        offset = piece.next_offset


def _portions(log: Log, batch: Batch) -> Iterator[Portion]:
    """A batch that its producer filled with nonsense has no times to find it by; stream readers still get it."""
    if batch.is_control:
        return
    try:
        yield from portions(batch)
    except (CorruptBatch, BatchTooLarge) as error:
        events.warning(
            "batch skipped in a read by time", log=log.directory, offset=batch.base_offset, reason=str(error)
        )
