"""What the batch and the stream reader do alike: fetch a range on an executor and give its rows."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.types import StructType

from goqueue.client.cluster import Topic
from goqueue.client.errors import UnknownTopic
from goqueue.spark.connect import Brokers
from goqueue.spark.errors import SparkError
from goqueue.spark.read.fetch import FetchOptions, RangeFetcher
from goqueue.spark.read.rows import Home, Rows
from goqueue.spark.read.splits import Range
from goqueue.spark.versions import arrow_schema
from goqueue.spark.where import Where


def read_range(servers: Where, wanted: Range, schema: StructType, options: FetchOptions) -> Iterator[pa.RecordBatch]:
    """All rows of the range, in batches of a size that Spark likes."""
    # A broker that restarts just now is no reason to fail a task: the driver has reached it a moment ago.
    with Brokers(servers, is_known=True) as brokers:
        topic = _topic(brokers, wanted, options)
        if topic is None:
            return
        rows = Rows(arrow_schema(schema), Home(topic.name, topic.id, wanted.partition))
        fetcher = RangeFetcher(brokers, wanted, options)
        try:
            for batch in fetcher:
                rows.add(batch, fetcher.first_offset, wanted.end)
                if rows.is_full:
                    yield rows.take()
        except UnknownTopic:  # only where that is to be gone past
            return
        brokers.run(brokers.cluster.refresh([wanted.topic]))
        # The same one before and after: so nothing in between came from another of its name.
        if _topic(brokers, wanted, options) is not None and rows.count:
            yield rows.take()


def _topic(brokers: Brokers, wanted: Range, options: FetchOptions) -> Topic | None:
    """None: it is not there any more, and that is to be gone past. SparkError: it may not be."""
    try:
        topic = brokers.run(brokers.cluster.topic(wanted.topic))
    except UnknownTopic:
        if options.fails_on_loss:
            raise
        return None
    if wanted.topic_id in (b"", topic.id):
        return topic
    if options.fails_on_loss:
        raise SparkError(
            f"topic {wanted.topic} was deleted and made again while it was read; with failOnDataLoss=false the read"
            " goes on without what is gone"
        )
    return None
