"""Backfill: the archive of a topic and then the topic itself, without gap or overlap.

What is archived decides where the tail begins, partition by partition, once: the offsets are kept beside the query's
checkpoint. So the archive may grow meanwhile, and a query that is started again reads the same.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from goqueue.spark.errors import SparkError
from goqueue.spark.jobs.lake import Lake, query_id_of, starting_offsets
from goqueue.spark.jobs.lake_tables import has_typed_values
from goqueue.spark.jobs.queries import (
    WriteBatch,
    counted,
    limits_of,
    observed,
    seen,
    to_the_end,
    told_to_stop,
    triggered,
)
from goqueue.spark.jobs.running import EXIT_USAGE, JobFailed, Run, check_topics, submitted
from goqueue.spark.jobs.table import BACKFILL
from goqueue.spark.jobs.telling import Totals

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
FILES_PER_TRIGGER = 64
SENT = ("key", "value", "headers", "priority", "delay", "deliver_at", "ttl")


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

    As a stream it needs the directory of the query's checkpoint, to remember where the one ends and the other begins;
    both are then read side by side. `options` are those of the read of the topic, such as maxOffsetsPerTrigger.
    """
    if is_stream and checkpoint is None:
        raise SparkError("a stream over lake and tail needs checkpoint=, the directory of the query's checkpoint")
    reading = {"kafka.bootstrap.servers": kafka, **{name: str(value) for name, value in (options or {}).items()}}
    archived, tail = lake_and_tail(spark, Lake(spark, lake), topic, reading, is_stream, checkpoint)
    return archived.unionByName(tail)


def lake_and_tail(
    spark: SparkSession,
    store: Lake,
    topic: str,
    reading: Mapping[str, str],
    is_stream: bool,
    checkpoint: str | None,
) -> tuple[DataFrame, DataFrame]:
    if has_typed_values(store.read(topic)):
        raise JobFailed("this archive holds typed values (--values), which the topic does not", EXIT_USAGE)
    positions = store.positions(topic) if checkpoint is None else _remembered(store, topic, checkpoint)
    partitions = max(check_topics(reading, [topic])[topic], *(number + 1 for number in positions), 1)
    reader: Any = spark.readStream if is_stream else spark.read
    tail = (
        reader.format("goqueue")
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .option("startingOffsets", starting_offsets(topic, partitions, positions))
        .options(**reading)
        .load()
    )
    archived = store.stream(topic, FILES_PER_TRIGGER) if is_stream else store.read(topic)
    return archived.where(_is_before(positions)).select(*COLUMNS), tail.select(*COLUMNS)


def _is_before(positions: Mapping[int, int]) -> Column:
    """What was archived after the positions were taken is read from the topic."""
    if not positions:
        return f.lit(False)
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
    """First the lake, to its end, and then the tail: each is a query, and both write in the order of offsets."""
    given, totals = run.given, Totals()
    if bool(given.out) == bool(given.into):
        raise JobFailed("say where to: either --out DIR or --into TOPIC", EXIT_USAGE)
    if given.into:
        check_topics(run.at, [given.into])
    store = Lake(run.spark, given.lake)
    into = given.out or f"topic:{given.into}"
    name = f"{given.topic}-{sha256(f'{into}{given.select}'.encode()).hexdigest()[:12]}"
    checkpoint = given.checkpoint or store.own_path("backfills", name)
    archived, tail = lake_and_tail(run.spark, store, given.topic, run.at | limits_of(given), True, checkpoint)
    written = Totals()
    write = counted(_write(given, run.at, written), totals)
    with told_to_stop() as stopping:
        for part, rows in (("lake", archived), ("tail", tail)):
            writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", f"{checkpoint}/{part}")
            named = writer.queryName(f"backfill {given.topic}, {part}")
            when = named.trigger(availableNow=True) if part == "lake" else triggered(named, given)
            if not stopping.signal:
                to_the_end([when.start], run.tell, lambda: f"backfill: {totals}", stopping)
    facts = totals.facts() | {"topic": given.topic, "to": into, "written": written.records}
    if given.select and not written.records:
        facts["why"] = "--select gave no rows"
        run.tell.note(f"nothing was written: {facts['why']}")
    run.tell.facts(f"read {totals}, and wrote {written.records:,} rows to {into}", facts)
    return stopping.exit_code


def _write(given: Namespace, at: dict[str, str], written: Totals) -> WriteBatch:
    """A batch that comes again replaces itself in files, and is dropped by the broker. `written`: what it gave."""

    def write(batch: DataFrame, number: int) -> bool:
        query = query_id_of(batch.sparkSession)
        rows = batch.repartition("partition").sortWithinPartitions("partition", "offset")
        if given.select:
            rows.createOrReplaceTempView("messages")
            rows = batch.sparkSession.sql(given.select)
        observation = Observation()
        rows = observed(rows, observation)
        if given.out:
            writer = rows.withColumn("batch", f.lit(f"{query[:12]}-{number:09d}")).write.mode("overwrite")
            writer.option("partitionOverwriteMode", "dynamic").partitionBy("batch").parquet(given.out)
        else:
            sent = rows.select(*message_columns(rows)).write.format("goqueue").mode("append")
            numbered = sent.option("txnAppId", query).option("txnVersion", number)
            numbered.options(**at).save(given.into)
        written.add(*seen(observation))
        return True

    return write


def message_columns(rows: DataFrame) -> list[str]:
    """Of those that the sink knows; where a message came from is not where it goes to."""
    return [name for name in rows.columns if name in SENT]


def main(arguments: Sequence[str] | None = None) -> int:
    return submitted(BACKFILL, backfill, arguments)


if __name__ == "__main__":
    sys.exit(main())
