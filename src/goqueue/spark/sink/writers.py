"""What Spark sees of the sink: tasks that write, and a driver that commits what they have left open, all together.

Spark pickles a writer, and builds the one of a stream anew for every batch: all it knows is given at the start.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from goqueue.client.errors import BrokerRefused
from goqueue.client.together import LeftOpen, abort_together, commit_together
from goqueue.spark.connect import Brokers
from goqueue.spark.errors import SparkError, told_in_one_line
from goqueue.spark.options import Options
from goqueue.spark.sink.columns import check_schema
from goqueue.spark.sink.task import Plan, write
from goqueue.spark.versions import StreamArrowWriter
from goqueue.spark.where import kafka_at

KEY_PREFIX = "gq-spark-"
QUERY_ID = "sql.streaming.queryId"


@dataclass
class TaskWritten(WriterCommitMessage):
    key: str
    left: LeftOpen | None


Messages = Sequence[WriterCommitMessage | None]


class BatchWriter(DataSourceArrowWriter):
    """All or nothing: a write that fails has written nothing."""

    def __init__(self, plan: Plan, app_id: str | None, version: int) -> None:
        self._plan = plan
        self._is_last = app_id is None
        self._key = KEY_PREFIX + (app_id or str(uuid.uuid4()))
        self._version = version

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        with told_in_one_line():
            return _write(self._plan, self._key, iterator)

    def commit(self, messages: Messages) -> None:
        with told_in_one_line():
            _commit(self._plan, self._key, self._version, messages, is_last=self._is_last)

    def abort(self, messages: Messages) -> None:  # noqa: ARG002  what is open is known to the broker
        with told_in_one_line():
            _abort(self._plan, self._key, is_last=self._is_last)


class StreamWriter(StreamArrowWriter):
    """The query's id and the number of the micro-batch tell a repetition: both outlive a restart."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        with told_in_one_line():
            query_id = _context().getLocalProperty(QUERY_ID)
            if not query_id:
                raise SparkError("Spark does not say which query this is: use df.write for what is no stream")
            return _write(self._plan, KEY_PREFIX + query_id, iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803  Spark's name
        with told_in_one_line():
            key = _key_of(messages)
            if key is not None:
                _commit(self._plan, key, batchId, messages, is_last=False)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: ARG002, N803  Spark's name
        with told_in_one_line():
            key = _key_of(messages)
            if key is not None:
                _abort(self._plan, key, is_last=False)


def batch_writer(options: Options, schema: StructType, *, overwrite: bool) -> BatchWriter:
    if overwrite:
        raise SparkError('a topic cannot be overwritten: use .mode("append")')
    app_id, version = options.get("txnAppId"), options.get("txnVersion")
    if (app_id is None) != (version is None):
        raise SparkError("txnAppId and txnVersion belong together: who writes, and the how many-th write it is")
    return BatchWriter(_plan(options, schema), app_id, version or 0)


def stream_writer(options: Options, schema: StructType, *, overwrite: bool) -> StreamWriter:
    if overwrite:
        raise SparkError('outputMode("complete") would send the whole table with every batch: use "append" or "update"')
    return StreamWriter(_plan(options, schema))


def _plan(options: Options, schema: StructType) -> Plan:
    """What can be wrong is found out here, on the driver, before any task starts."""
    topic = options.get("topic") or options.get("path")
    check_schema(schema, has_topic=topic is not None)
    plan = Plan(
        kafka_at(options),
        topic,
        options.get("partitioner"),
        options.get("kafka.compression.type"),
        options.get("kafka.transaction.timeout.ms"),
        options.get("kafka.batch.size"),
        options.get("kafka.delivery.timeout.ms"),
    )
    with Brokers(plan.servers, creates_topics=True) as brokers:
        if topic is not None:
            brokers.run(brokers.cluster.topic(topic))
    return plan


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise SparkError("rows are written by Spark's tasks only")
    return context


def _write(plan: Plan, key: str, batches: Iterator[pa.RecordBatch]) -> TaskWritten:
    context = _context()
    task = f"{context.partitionId()}-{context.attemptNumber()}"
    return TaskWritten(key, write(plan, key, task, batches).left)


def _key_of(messages: Messages) -> str | None:
    """None: no task has got as far as to say it."""
    return next((one.key for one in messages if isinstance(one, TaskWritten)), None)


def _commit(plan: Plan, key: str, mark: int, messages: Messages, *, is_last: bool) -> None:
    left = [one.left for one in messages if isinstance(one, TaskWritten) and one.left is not None]
    if not left:
        return
    with Brokers(plan.servers, is_known=True) as brokers:
        try:
            brokers.run(commit_together(brokers.cluster, key, mark, left, is_last=is_last))
        except BrokerRefused as error:
            raise plan.explained(error) from None


def _abort(plan: Plan, key: str, *, is_last: bool) -> None:
    with Brokers(plan.servers) as brokers:
        brokers.run(abort_together(brokers.cluster, key, is_last=is_last))
