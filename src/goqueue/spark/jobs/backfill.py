"""Backfill: the archive of a topic and then the topic itself, without gap or overlap.

What is archived decides where the tail begins, partition by partition, once: the offsets are kept beside the query's
checkpoint. So the archive may grow meanwhile, and a query that is started again reads the same.

A table that `goqueue pipeline serve` keeps cannot be read as a stream: its files are put together while it is read. The
job cuts it into slices, as a restore does, and writes each of them under its number.
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
from goqueue.spark.iceberg.settings import UPSERT
from goqueue.spark.jobs.lake import Lake, query_id_of, starting_offsets
from goqueue.spark.jobs.queries import (
    Stopping,
    WriteBatch,
    counted,
    limits_of,
    observed,
    seen,
    to_the_end,
    told_to_stop,
    triggered,
)
from goqueue.spark.jobs.restore import SLICE_ROWS, State, check_retention, cut, within
from goqueue.spark.jobs.running import EXIT_USAGE, JobFailed, Run, check_topics, submitted
from goqueue.spark.jobs.served_tables import mode_of
from goqueue.spark.jobs.table import BACKFILL
from goqueue.spark.jobs.telling import Totals

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
FILES_PER_TRIGGER = 64
ALL = -1
"""Of the slices of a table: they were written, and are not kept."""
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
    *,
    is_cut: bool = False,
) -> tuple[DataFrame, DataFrame]:
    """`is_cut`: the lake is no stream, also where the tail is."""
    store.check_bytes(topic)
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
    archived = store.stream(topic, FILES_PER_TRIGGER) if is_stream and not is_cut else store.read(topic)
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
    elif given.keep_timestamps:
        raise JobFailed("--keep-timestamps is for --into: the rows of --out have their timestamps", EXIT_USAGE)
    store = Lake(run.spark, given.lake)
    into = given.out or f"topic:{given.into}"
    checkpoint = given.checkpoint or store.own_path("backfills", _name(given, into))
    is_cut, reading = store.is_served(given.topic), run.at | limits_of(given)
    if is_cut and mode_of(given.lake, given.topic) == UPSERT:
        raise JobFailed(
            "this table has the last row of each key (table.mode=upsert), not each message: restore writes its rows",
            EXIT_USAGE,
        )
    both = lake_and_tail(run.spark, store, given.topic, reading, True, checkpoint, is_cut=is_cut)
    archived, tail = (within(rows, given) for rows in both)
    if given.keep_timestamps:
        check_retention(run, within(store.read(given.topic), given), given.into)
    written = Totals()
    write = counted(_write(given, run.at, written), totals)
    with told_to_stop() as stopping:
        if is_cut:
            _write_table(run, State(store, f"{checkpoint}/table", ""), store, archived, totals, written, stopping)
        for part, rows in (("tail", tail),) if is_cut else (("lake", archived), ("tail", tail)):
            writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", f"{checkpoint}/{part}")
            named = writer.queryName(f"backfill {given.topic}, {part}")
            when = named.trigger(availableNow=True) if part == "lake" else triggered(named, given)
            if not stopping.signal:
                to_the_end([when.start], run.tell, lambda: f"backfill: {totals}", stopping)
    facts = totals.facts() | {"topic": given.topic, "to": into, "written": written.records}
    if given.select and not written.records:
        facts["why"] = "--select gave no rows"
    elif (given.start is not None or given.stop is not None) and not totals.records and not stopping.signal:
        facts["why"] = "no message of that time is new"
    if "why" in facts:
        run.tell.note(f"nothing was written: {facts['why']}")
    run.tell.facts(f"read {totals}, and wrote {written.records:,} rows to {into}", facts)
    return stopping.exit_code


def _write_table(
    run: Run, state: State, store: Lake, rows: DataFrame, totals: Totals, written: Totals, stopping: Stopping
) -> None:
    """In slices, which are kept until all are written: the files of the table may be others by then."""
    if state.done is None:
        cut(rows, run.given.batch or SLICE_ROWS).write.mode("overwrite").parquet(state.rows)
        state.note(0)
    assert state.done is not None
    if state.done == ALL:
        store.delete(state.rows)  # a run may have been killed before it could
        return
    plan = run.spark.read.parquet(state.rows)
    write = counted(_write(run.given, run.at, written, state.writer), totals)
    for number, row in enumerate(plan.select("slice").distinct().orderBy("slice").collect()):
        if number < state.done:
            continue
        if stopping.signal:
            return
        write(plan.where(f.col("slice") == row["slice"]).drop("slice"), number)
        state.note(number + 1)
        run.tell.progress(f"backfill: {totals}")
    state.note(ALL)
    store.delete(state.rows)


def _name(given: Namespace, into: str) -> str:
    """The same words are the same backfill."""
    words = f"{into}{given.select}"
    more = (given.start, given.stop, given.keep_timestamps)
    if more != (None, None, False):
        words += repr(more)
    return f"{given.topic}-{sha256(words.encode()).hexdigest()[:12]}"


def _write(given: Namespace, at: dict[str, str], written: Totals, writer: str | None = None) -> WriteBatch:
    """A batch that comes again replaces itself in files, and is dropped by the broker. `written`: what it gave.

    `writer`: whose batches these are, where they are of no streaming query.
    """

    def write(batch: DataFrame, number: int) -> bool:
        query = writer or query_id_of(batch.sparkSession)
        rows = batch.repartition("partition").sortWithinPartitions("partition", "offset")
        if given.select:
            rows.createOrReplaceTempView("messages")
            rows = batch.sparkSession.sql(given.select)
        observation = Observation()
        rows = observed(rows, observation)
        if given.out:
            files = rows.withColumn("batch", f.lit(f"{query[:12]}-{number:09d}")).write.mode("overwrite")
            files.option("partitionOverwriteMode", "dynamic").partitionBy("batch").parquet(given.out)
        else:
            sent = rows.select(*message_columns(rows, given.keep_timestamps)).write.format("goqueue").mode("append")
            numbered = sent.option("txnAppId", query).option("txnVersion", number)
            numbered.options(**at).save(given.into)
        written.add(*seen(observation))
        return True

    return write


def message_columns(rows: DataFrame, keep_timestamps: bool = False) -> list[str]:
    """Of those that the sink knows; where a message came from is not where it goes to."""
    sent = (*SENT, "timestamp") if keep_timestamps else SENT
    return [name for name in rows.columns if name in sent]


def main(arguments: Sequence[str] | None = None) -> int:
    return submitted(BACKFILL, backfill, arguments)


if __name__ == "__main__":
    sys.exit(main())
