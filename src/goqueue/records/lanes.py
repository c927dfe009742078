"""The lane of a batch, told record by record: a writer may say it once for all of them, in the attributes of the batch.
Whoever reads records has no batch any more, and finds it where it always is, in the header gq-priority.
"""

from collections.abc import Sequence

from goqueue.model.lanes import Lane
from goqueue.records.batch import Batch
from goqueue.records.decode import DecodedRecord, PlainRecord
from goqueue.records.wishes import PRIORITY, batch_lane, lane_and_expiry, mentions_wishes

_NORMAL = int(Lane.NORMAL)


def tell_lane(batch: Batch, records: Sequence[DecodedRecord]) -> Sequence[DecodedRecord]:
    """`records` of `batch`, each with the header that says their lane. What the batch says counts, as for queues."""
    lane = batch_lane(batch)
    if lane is None:
        return records
    if lane == _NORMAL:  # as most are: nothing is to be told, unless a header says otherwise
        if not mentions_wishes(batch, opens_compressed=True):
            return records
        if not any(each.headers for each in records):
            return records
    return [each if lane_and_expiry(each.headers)[0] == lane else _told(each, lane) for each in records]


def _told(record: DecodedRecord, lane: int) -> PlainRecord:
    headers = [header for header in record.headers if header[0] != PRIORITY]
    headers.append((PRIORITY, Lane(lane).name.lower().encode()))
    return PlainRecord(record.offset, record.timestamp, record.key, record.value, headers)
