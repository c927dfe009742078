"""Reading topics with Spark on two cores: 100-byte messages with the usual seven columns, each figure beside others of
the same run.

Three turns of each, in turns with the others, and the best counts. The baseline is a Python source that yields Arrow
batches which are ready: what Spark itself takes. Rows come to nobody (`noop`) or to Parquet files. A micro-batch has
one message; beside it is Spark's own source of made-up rows.
"""

import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from benchmarks.bench_client import PARTITIONS, VALUE, poll_ours, publish_confluent
from benchmarks.harness import BUILD, QUIET, Row, best_rates, node, rate_rows, row
from goqueue.cli.bench.librdkafka import own_topic
from goqueue.cli.bench.load import Load
from goqueue.spark import session

MESSAGES = 3_000_000
BATCH_ROWS = 20_000
MICRO_BATCHES = 20
OURS, BASELINE = "goqueue", "ready-made Arrow"
SINKS = ("noop", "parquet")
COLUMNS = (
    "cast(null as binary) key",
    f"cast(repeat('x', {len(VALUE)}) as binary) value",
    "'topic' topic",
    "0 partition",
    "id offset",
    "current_timestamp() timestamp",
    "0 timestampType",
)


class ReadyMade(DataSource):
    """Yields the same batch again and again."""

    @classmethod
    def name(cls) -> str:
        return "ready_made"

    def schema(self) -> str:
        return (
            "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        return ReadyMadeReader(schema)


class ReadyMadeReader(DataSourceReader):
    def __init__(self, schema: StructType) -> None:
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  Spark's signature
        schema = to_arrow_schema(self._schema, timezone="UTC")
        columns = [[None], [VALUE], ["topic"], [0], [0], [0], [0]]
        one = pa.RecordBatch.from_arrays([pa.array(*each) for each in zip(columns, schema.types)], schema=schema)
        batch = one.take(pa.repeat(pa.scalar(0), BATCH_ROWS))
        for _ in range(MESSAGES // PARTITIONS // BATCH_ROWS):
            yield batch


def run() -> list[Row]:
    spark = session("bench", "local[2]", {"spark.driver.memory": "1g"})
    spark.dataSource.register(ReadyMade)
    rows: list[Row] = []
    try:
        with node() as broker:
            load = Load(MESSAGES, len(VALUE), partitions=PARTITIONS, durability="os")
            with own_topic(broker, load, QUIET) as topic:
                publish_confluent(broker.address, topic.name, MESSAGES)
                topic.check_stored(MESSAGES)
                rows += _read(spark, broker.address, topic.name)
            with own_topic(broker, Load(MICRO_BATCHES, len(VALUE)), QUIET) as topic:
                rows += _micro_batches(spark, broker.address, topic.name)
    finally:
        spark.stop()
    return rows


def _read(spark: SparkSession, address: str, topic: str) -> Iterator[Row]:
    def ours() -> DataFrame:
        return spark.read.format("goqueue").option("kafka.bootstrap.servers", address).load(topic)

    sources: dict[str, Callable[[], DataFrame]] = {
        OURS: ours,
        BASELINE: lambda: spark.read.format("ready_made").load(),
        "spark.range": lambda: spark.range(0, MESSAGES, 1, PARTITIONS).selectExpr(*COLUMNS),
    }
    assert ours().count() == MESSAGES
    for sink in SINKS:
        works = {name: partial(_rate, source, sink) for name, source in sources.items()}
        if sink == "noop":
            works["goqueue.client, one process"] = partial(poll_ours, address, topic, MESSAGES)
        aims = {OURS: "ratio >= 0.5, 1 M rows/s"} if sink == "noop" else None
        yield from rate_rows(f"to {sink}", best_rates(works), "rows/s", BASELINE, aims)


def _rate(source: Callable[[], DataFrame], sink: str) -> float:
    frame = source()
    started = time.perf_counter()
    if sink == "noop":
        frame.write.format("noop").mode("overwrite").save()
        return MESSAGES / (time.perf_counter() - started)
    path = BUILD / "bench-parquet"
    frame.write.mode("overwrite").parquet(str(path))
    seconds = time.perf_counter() - started
    shutil.rmtree(path)
    return MESSAGES / seconds


def _micro_batches(spark: SparkSession, address: str, topic: str) -> Iterator[Row]:
    """How long a micro-batch of one message takes, of many the median."""
    publish_confluent(address, topic, MICRO_BATCHES)
    stream = spark.readStream.format("goqueue").option("kafka.bootstrap.servers", address)
    ours = stream.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "1").load(topic)
    made_up = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()
    times = {OURS: _median_ms(ours, "ours"), "rate-micro-batch": _median_ms(made_up, "made-up")}
    baseline = times["rate-micro-batch"]
    for name, value in times.items():
        yield row(f"micro-batch of one message: {name}", value, "ms", baseline)


def _median_ms(frame: DataFrame, name: str) -> float:
    checkpoint = BUILD / f"bench-checkpoint-{name}"
    shutil.rmtree(checkpoint, ignore_errors=True)
    query = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    try:
        while len(done := [each for each in query.recentProgress if each["numInputRows"]]) < MICRO_BATCHES:
            query.awaitTermination(1)
    finally:
        query.stop()
    shutil.rmtree(checkpoint)
    return float(statistics.median(each["durationMs"]["triggerExecution"] for each in done))
