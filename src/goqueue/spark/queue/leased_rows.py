"""What an executor does in queue mode: read the rows of one lease, wherever they lie, with their receipts."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from goqueue.client.cluster import Topic
from goqueue.records.decode import DecodedRecord
from goqueue.records.portions import portions
from goqueue.spark.connect import Brokers
from goqueue.spark.queue.offsets import Lease, Run
from goqueue.spark.read.fetch import FetchOptions, RangeFetcher
from goqueue.spark.read.rows import Home, Rows
from goqueue.spark.read.splits import Range
from goqueue.spark.versions import arrow_schema
from goqueue.spark.where import Where

GAP_OFFSETS_MAX = 1000
"""Runs that are closer are fetched as one: a request costs more than so many records between them."""
COUNT, RECEIPT, OFFSET = "delivery_count", "receipt", "offset"


def read_lease(servers: Where, lease: Lease, schema: StructType) -> Iterator[pa.RecordBatch]:
    """In the order of offsets. What retention has removed meanwhile is left out."""
    wanted = arrow_schema(schema)
    stored = [field for field in wanted if field.name not in (COUNT, RECEIPT)]
    if OFFSET not in wanted.names:
        stored.append(pa.field(OFFSET, pa.int64()))
    with Brokers(servers, is_known=True) as brokers:
        topic: Topic = brokers.run(brokers.cluster.topic(lease.topic))
        rows = Rows(pa.schema(stored), Home(topic.name, topic.id, lease.partition))
        for runs in close_together(lease.runs):
            span = Range(lease.topic, lease.partition, runs[0].first, runs[-1].last + 1)
            for batch in RangeFetcher(brokers, span, FetchOptions(is_committed=True, fails_on_loss=False)):
                for portion in portions(batch, from_offset=runs[0].first):
                    rows.add_records(batch, chosen(portion.records, runs), portion.unpacked_bytes)
                    if rows.is_full:
                        yield completed(rows.take(), lease, wanted)
        if rows.count:
            yield completed(rows.take(), lease, wanted)


def close_together(runs: Sequence[Run]) -> list[list[Run]]:
    found: list[list[Run]] = []
    for run in runs:
        if found and run.first - found[-1][-1].last <= GAP_OFFSETS_MAX:
            found[-1].append(run)
        else:
            found.append([run])
    return found


def chosen(records: Sequence[DecodedRecord], runs: Sequence[Run]) -> Sequence[DecodedRecord]:
    """Of one batch, those that are leased."""
    if not records:
        return records
    first, last = records[0].offset, records[-1].offset
    firsts = [run.first for run in runs]
    place = max(bisect_right(firsts, first) - 1, 0)
    if runs[place].first <= first and last <= runs[place].last:
        return records
    return [one for one in records if _run_of(one.offset, firsts, runs) is not None]


def _run_of(offset: int, firsts: Sequence[int], runs: Sequence[Run]) -> Run | None:
    place = bisect_right(firsts, offset) - 1
    return runs[place] if place >= 0 and offset <= runs[place].last else None


def completed(batch: pa.RecordBatch, lease: Lease, schema: pa.Schema) -> pa.RecordBatch:
    """With what the log does not know of a row."""
    offsets = batch.column(batch.schema.get_field_index(OFFSET))
    made = {COUNT: lambda: _counts(offsets, lease.runs), RECEIPT: lambda: _receipts(offsets, lease.receipt)}
    arrays = [
        made[field.name]() if field.name in made else batch.column(batch.schema.get_field_index(field.name))
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _counts(offsets: pa.Array, runs: Sequence[Run]) -> pa.Array:
    counts = {run.delivery_count for run in runs}
    if len(counts) == 1:
        return pa.repeat(pa.scalar(counts.pop(), pa.int32()), len(offsets))
    firsts = [run.first for run in runs]
    return pa.array([runs[bisect_right(firsts, each) - 1].delivery_count for each in offsets.to_pylist()], pa.int32())


def _receipts(offsets: pa.Array, receipt: str) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(receipt), offsets.cast(pa.string()), ".")
