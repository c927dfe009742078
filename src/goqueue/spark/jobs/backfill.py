"""Backfill: the archive of a topic and then the topic itself, without gap or overlap.

What is archived decides where the tail begins, partition by partition, once: the offsets are kept beside the query's
checkpoint. So the archive may grow meanwhile, and a query that is started again reads the same.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from goqueue.spark.jobs.lake import Lake, has_typed_values, query_id_of, starting_offsets
from goqueue.spark.jobs.queries import counted, to_the_end, told_to_stop, triggered
from goqueue.spark.jobs.running import EXIT_USAGE, JobFailed, Run, check_topics, submitted
from goqueue.spark.jobs.table import BACKFILL
from goqueue.spark.jobs.telling import Totals

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
FILES_PER_TRIGGER = 64


def lake_then_tail(
    spark: SparkSession,
    lake: str,
    topic: str,
    kafka: str,
    *,
    is_stream: bool = False,
    checkpoint: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """All of a topic: what is archived from the lake, the rest from the brokers, each message once.

    As a stream it needs the directory of the query's checkpoint, to remember where the one ends and the other begins.
    `options` are those of the read of the topic, such as maxOffsetsPerTrigger.
    """
    store = Lake(spark, lake)
    if has_typed_values(store.read(topic)):
        raise JobFailed("this archive holds typed values (--values), which the topic does not", EXIT_USAGE)
    positions = store.positions(topic) if checkpoint is None else _remembered(store, topic, checkpoint)
    partitions = max(check_topics(kafka, [topic])[topic], *(number + 1 for number in positions), 1)
    reader: Any = spark.readStream if is_stream else spark.read
    tail = (
        reader.format("goqueue")
        .option("kafka.bootstrap.servers", kafka)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .option("startingOffsets", starting_offsets(topic, partitions, positions))
        .options(**(options or {}))
        .load()
    )
    archived = store.stream(topic) if is_stream else store.read(topic)
    return archived.where(_is_before(positions)).select(*COLUMNS).unionByName(tail.select(*COLUMNS))


def _is_before(positions: Mapping[int, int]) -> Column:
    """What was archived after the positions were taken is read from the topic."""
    ends = f.create_map(*(f.lit(each) for place in sorted(positions.items()) for each in place))
    return f.col("offset") < ends[f.col("partition")]


def _remembered(store: Lake, topic: str, checkpoint: str) -> dict[int, int]:
    path = f"{checkpoint.rstrip('/')}/goqueue-positions.json"
    noted = store.read_text(path)
    if noted is not None:
        return {int(number): offset for number, offset in json.loads(noted).items()}
    positions = store.positions(topic)
    store.write_text(path, json.dumps(positions))
    return positions


def backfill(run: Run) -> int:
    given, totals = run.given, Totals()
    if bool(given.out) == bool(given.into):
        raise JobFailed("say where to: either --out DIR or --into TOPIC", EXIT_USAGE)
    store = Lake(run.spark, given.lake)
    into = given.out or f"topic:{given.into}"
    name = f"{given.topic}-{sha256(f'{into}{given.select}'.encode()).hexdigest()[:12]}"
    checkpoint = given.checkpoint or store.own_path("backfills", name)
    rows = lake_then_tail(
        run.spark,
        given.lake,
        given.topic,
        run.kafka,
        is_stream=True,
        checkpoint=checkpoint,
        options={"maxOffsetsPerTrigger": given.batch},
    )
    if given.select:
        rows = run.spark.sql(given.select.replace("messages", "{messages}", 1), messages=rows)
    if given.out:
        writer = rows.writeStream.foreachBatch(counted(_files(given.out), totals))
    else:
        check_topics(run.kafka, [given.into])
        writer = to_topic(rows, given.into, run.kafka)
    named = writer.queryName(f"backfill {given.topic}").option("checkpointLocation", checkpoint)
    with told_to_stop() as stopping:
        (query,) = to_the_end([triggered(named, given).start], run.tell, lambda: f"backfill: {totals}", stopping)
    if given.into:
        totals.add(sum(each["numInputRows"] for each in query.recentProgress), 0)
    run.tell.facts(f"wrote {totals} to {into}", totals.facts() | {"topic": given.topic, "to": into})
    return stopping.exit_code


def _files(out: str) -> Any:
    """A batch that comes again replaces itself, as in the lake."""

    def write(batch: DataFrame, number: int) -> None:
        name = f.lit(f"{query_id_of(batch.sparkSession)[:12]}-{number:09d}")
        writer = batch.withColumn("batch", name).write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writer.partitionBy("batch").parquet(out)

    return write


def to_topic(rows: DataFrame, topic: str, kafka: str) -> Any:
    """A streaming write into a topic, exactly once."""
    known = ("key", "value", "headers", "priority", "delay", "deliver_at", "ttl")
    columns = [name for name in rows.columns if name in known]
    writer = rows.select(*columns).writeStream.format("goqueue").option("kafka.bootstrap.servers", kafka)
    return writer.option("topic", topic)


def main(arguments: Sequence[str] | None = None) -> int:
    return submitted(BACKFILL, backfill, arguments)


if __name__ == "__main__":
    sys.exit(main())
