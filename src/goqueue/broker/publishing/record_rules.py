"""What a topic's options ask of each single record. A batch with one bad record is refused whole, as Kafka does, and
the answer says which of them are bad.
"""

from goqueue.broker.publishing.opening import read_published
from goqueue.model.codes import Code
from goqueue.model.errors import InvalidWish
from goqueue.model.refusal import InvalidRecords
from goqueue.model.topics import TopicOptions
from goqueue.records.batch import Batch
from goqueue.records.wishes import dedup_id, read_wishes

NO_TIMESTAMP = -1
COMPACT = "compact"


def check_records(batch: Batch, options: TopicOptions, now_ms: int) -> None:
    """InvalidRecords: some of them may not be published."""
    keyless: dict[int, str] = {}
    untimely: dict[int, str] = {}
    needs_key = COMPACT in options.cleanup_policy
    earliest_ms = now_ms - options.message_timestamp_before_max_ms
    latest_ms = now_ms + options.message_timestamp_after_max_ms
    for record in read_published(batch, options):
        place = record.offset - batch.base_offset
        if needs_key and record.key is None:
            keyless[place] = "a compacted topic takes only records with a key"
        if options.bounds_time and record.timestamp != NO_TIMESTAMP:
            if record.timestamp < earliest_ms:
                untimely[place] = (
                    f"timestamp {record.timestamp} is too old: message.timestamp.before.max.ms allows {earliest_ms}"
                )
            elif record.timestamp > latest_ms:
                untimely[place] = (
                    f"timestamp {record.timestamp} is too far ahead: message.timestamp.after.max.ms allows {latest_ms}"
                )
    if keyless:
        raise InvalidRecords(next(iter(keyless.values())), keyless)
    if untimely:
        raise InvalidRecords(next(iter(untimely.values())), untimely, Code.INVALID_TIMESTAMP)


def wish_faults(batch: Batch, options: TopicOptions, now_ms: int) -> dict[int, str]:
    """The records of a batch whose `gq-` headers ask for something that cannot be, by their places, and why."""
    faults: dict[int, str] = {}
    for record in read_published(batch, options):
        try:
            read_wishes(record.headers, now_ms)
            if options.dedup_ms:
                dedup_id(record.headers)
        except InvalidWish as error:
            faults[record.offset - batch.base_offset] = str(error)
    return faults
