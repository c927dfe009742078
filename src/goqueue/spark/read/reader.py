"""What the batch and the stream reader do alike: fetch a range on an executor and give its rows."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.types import StructType

from goqueue.client.cluster import Topic
from goqueue.spark.connect import PATIENCE_S, Brokers
from goqueue.spark.read.fetch import FetchOptions, RangeFetcher
from goqueue.spark.read.rows import Home, Rows
from goqueue.spark.read.splits import Range
from goqueue.spark.versions import arrow_schema
from goqueue.spark.where import Where


def read_range(servers: Where, wanted: Range, schema: StructType, options: FetchOptions) -> Iterator[pa.RecordBatch]:
    """All rows of the range, in batches of a size that Spark likes."""
    # A broker that restarts just now is no reason to fail a task: the driver has reached it a moment ago.
    with Brokers(servers, absent_s_max=PATIENCE_S) as brokers:
        topic: Topic = brokers.run(brokers.cluster.topic(wanted.topic))
        rows = Rows(arrow_schema(schema), Home(topic.name, topic.id, wanted.partition))
        fetcher = RangeFetcher(brokers, wanted, options)
        for batch in fetcher:
            rows.add(batch, fetcher.first_offset, wanted.end)
            if rows.is_full:
                yield rows.take()
        if rows.count:
            yield rows.take()
