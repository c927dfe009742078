"""What a topic's options ask of each single record. A batch with one bad record is refused whole, as Kafka does, and
the answer says which of them are bad.
"""

from collections.abc import Iterable

from goqueue.broker.publishing.opening import SMALL_BYTES, TURN_RECORDS, portions_published, read_published
from goqueue.broker.publishing.turns import Steps
from goqueue.model.codes import Code
from goqueue.model.errors import BatchTooLarge, InvalidWish
from goqueue.model.refusal import InvalidRecords
from goqueue.model.tenancy import TenantLimit
from goqueue.model.topics import TopicOptions
from goqueue.records.batch import Batch
from goqueue.records.decode import DecodedRecord
from goqueue.records.wishes import dedup_id, read_wishes

NO_TIMESTAMP = -1
COMPACT = "compact"


class RecordRules:
    """What was found of one batch so far."""

    def __init__(self, batch: Batch, options: TopicOptions, now_ms: int, message_bytes_max: int | None = None) -> None:
        """`message_bytes_max`: by a quota of the topic's tenant."""
        self._base_offset = batch.base_offset
        self._needs_key = COMPACT in options.cleanup_policy
        self._bounds_time = options.bounds_time
        self._earliest_ms = now_ms - options.message_timestamp_before_max_ms
        self._latest_ms = now_ms + options.message_timestamp_after_max_ms
        self._keyless: dict[int, str] = {}
        self._untimely: dict[int, str] = {}
        self._message_bytes_max = message_bytes_max
        self._large: dict[int, str] = {}

    def look(self, records: Iterable[DecodedRecord]) -> None:
        for record in records:
            if self._needs_key and record.key is None:
                self._keyless[record.offset - self._base_offset] = "a compacted topic takes only records with a key"
            if self._bounds_time and record.timestamp != NO_TIMESTAMP:
                self._look_at_time(record)
            if self._message_bytes_max is not None:
                self._look_at_size(record, self._message_bytes_max)

    def _look_at_size(self, record: DecodedRecord, bytes_max: int) -> None:
        size = len(record.key or b"") + len(record.value or b"")
        size += sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
        if size > bytes_max:
            words = f"{size} bytes; the quota {TenantLimit.MESSAGE_BYTES} of the tenant is {bytes_max}"
            self._large[record.offset - self._base_offset] = words

    def _look_at_time(self, record: DecodedRecord) -> None:
        place, timestamp = record.offset - self._base_offset, record.timestamp
        if timestamp < self._earliest_ms:
            self._untimely[place] = (
                f"timestamp {timestamp} is too old: message.timestamp.before.max.ms allows {self._earliest_ms}"
            )
        elif timestamp > self._latest_ms:
            self._untimely[place] = (
                f"timestamp {timestamp} is too far ahead: message.timestamp.after.max.ms allows {self._latest_ms}"
            )

    def check(self) -> None:
        """InvalidRecords: some of them may not be published."""
        if self._large:
            raise InvalidRecords(next(iter(self._large.values())), self._large, Code.MESSAGE_TOO_LARGE)
        if self._keyless:
            raise InvalidRecords(next(iter(self._keyless.values())), self._keyless)
        if self._untimely:
            raise InvalidRecords(next(iter(self._untimely.values())), self._untimely, Code.INVALID_TIMESTAMP)


def check_small(batch: Batch, options: TopicOptions, now_ms: int) -> None:
    """All at once. BatchTooLarge: that would take longer than a turn."""
    if batch.record_count > TURN_RECORDS or batch.size > SMALL_BYTES:
        raise BatchTooLarge(f"{batch!r} is not looked at in one turn")
    rules = RecordRules(batch, options, now_ms)
    rules.look(read_published(batch, options, min(SMALL_BYTES, options.max_unpacked_bytes)))
    rules.check()


def wish_faults(batch: Batch, options: TopicOptions, now_ms: int) -> Steps[dict[int, str]]:
    """The records of a batch whose `gq-` headers ask for something that cannot be, by their places, and why."""
    faults: dict[int, str] = {}
    for records in portions_published(batch, options):
        for record in records:
            try:
                read_wishes(record.headers, now_ms)
                if options.dedup_ms:
                    dedup_id(record.headers)
            except InvalidWish as error:
                faults[record.offset - batch.base_offset] = str(error)
        yield None
    return faults
