"""Restore: a part of an archive back into a topic, in order, at a rate, exactly once.

What is to be written is first put in order and cut into slices, beside the archive. Each slice is one write of the
sink under a number that grows, so the broker knows a slice that comes again after a crash, and drops it.
"""

import json
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from uuid import uuid4

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from goqueue.model.tenancy import RETENTION
from goqueue.records.wishes import DEDUP_ID, DELAY_MS, DELIVER_AT, EXPIRES_AT
from goqueue.spark.jobs import why_nothing
from goqueue.spark.jobs.lake import Lake
from goqueue.spark.jobs.queries import Stopping, told_to_stop
from goqueue.spark.jobs.running import EXIT_USAGE, JobFailed, Run, check_topics, submitted, topic_config
from goqueue.spark.jobs.table import RESTORE
from goqueue.spark.jobs.telling import Totals, size

ORIGIN = "gq-restored-from"
"""Header: the place that a message had, as TOPIC/PARTITION/OFFSET."""
NOT_AGAIN = (DELAY_MS, DELIVER_AT, EXPIRES_AT, DEDUP_ID)
"""Wishes of the first time: a message would expire at once, or be taken for one that was there before."""
SLICE_ROWS = 200_000
ROW_BITS = 33
"""Of a number from monotonically_increasing_id: below are the rows of a Spark partition."""
SLICES_BITS = 24


def restore(run: Run) -> int:
    given, totals = run.given, Totals()
    lake = Lake(run.spark, given.lake)
    into = given.into or given.topic
    lake.check_bytes(given.topic)
    rows = chosen(lake.read(given.topic), given)
    if given.dry_run:
        return _dry_run(run, rows, into, lake.read(given.topic))
    check_topics(run.at, [into])
    if given.keep_timestamps:
        check_retention(run, rows, into)
    state = State(lake, given.state or lake.own_path("restores", _name(given)))
    if state.done is None:
        cut(rows, max(1, round(given.rate)) if given.rate else SLICE_ROWS).write.mode("overwrite").parquet(state.rows)
        state.note(0)
    plan = run.spark.read.parquet(state.rows)
    with told_to_stop() as stopping:
        _write_slices(run, state, plan, into, totals, stopping)
    if stopping.signal:
        run.tell.note("stopped; the same command goes on from here")
    else:
        state.forget()
    facts = totals.facts() | {"topic": given.topic, "into": into, "is_complete": not stopping.signal}
    if totals.records or stopping.signal:
        run.tell.facts(f"restored {totals} into {into}", facts)
    else:
        why = why_nothing.of_restore(lake.read(given.topic), given)
        run.tell.facts(f"nothing was restored: {why}", facts | {"why": why})
    return stopping.exit_code


class State:
    """What a restore will write, and how much of it is written."""

    def __init__(self, lake: Lake, path: str, prefix: str = "restore-") -> None:
        self._lake = lake
        self._path = path
        self._note = f"{path}/done.json"
        self.rows = f"{path}/rows"
        noted = lake.read_text(self._note)
        found: dict[str, Any] = json.loads(noted) if noted else {}
        self.done: int | None = found.get("slices")
        self.writer: str = found.get("writer") or f"{prefix}{uuid4().hex}"

    def note(self, slices: int) -> None:
        self.done = slices
        self._lake.write_text(self._note, json.dumps({"slices": slices, "writer": self.writer}))

    def forget(self) -> None:
        """So that the same words restore it once more, when somebody wants that."""
        self._lake.delete(self._path)


def chosen(rows: DataFrame, given: Namespace) -> DataFrame:
    rows = within(rows, given)
    return rows.where(given.where) if given.where else rows


def within(rows: DataFrame, given: Namespace) -> DataFrame:
    """Those of the time that was asked for."""
    for bound, sign in ((given.start, ">="), (given.stop, "<")):
        rows = rows if bound is None else rows.where(f"timestamp {sign} timestamp_millis({bound})")
    return rows


def cut(rows: DataFrame, slice_rows: int) -> DataFrame:
    """In the order of time, and never against the order of offsets; with the number of each row's slice."""
    so_far = Window.partitionBy("partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, 0)
    ordered = rows.withColumn("at", f.max("timestamp").over(so_far)).orderBy("at", "partition", "offset")
    number = f.monotonically_increasing_id()
    spark_partition = f.shiftrightunsigned(number, ROW_BITS)
    row = number.bitwiseAND((1 << ROW_BITS) - 1)
    slice_number = f.shiftleft(spark_partition, SLICES_BITS) + f.floor(row / slice_rows)
    return ordered.withColumn("slice", slice_number.cast("bigint")).drop("at")


def message(given: Namespace) -> list[Column]:
    """The columns of the sink."""
    kept = f.filter("headers", lambda each: ~each["key"].isin(*NOT_AGAIN, ORIGIN))
    place = f.concat_ws("/", "topic", "partition", "offset").cast("binary")
    origin = f.array(f.struct(f.lit(ORIGIN).alias("key"), place.alias("value")))
    headers = kept if given.no_origin else f.concat(kept, origin)
    partition = [f.col("partition")] if given.keep_partitions else []
    timestamp = [f.col("timestamp")] if given.keep_timestamps else []
    return [f.col("key"), f.col("value"), headers.alias("headers"), *partition, *timestamp]


def check_retention(run: Run, rows: DataFrame, into: str) -> None:
    """Retention goes by the time of a message: what is too old would be gone again without a word."""
    retention_ms = int(topic_config(run.at, into, RETENTION))
    oldest = rows.agg(f.min("timestamp").alias("at")).collect()[0]["at"]
    if retention_ms < 0 or oldest is None or oldest.timestamp() * 1000 > time.time() * 1000 - retention_ms:
        return
    raise JobFailed(
        f"the oldest message is of {oldest:%Y-%m-%d %H:%M:%S}, and {into} removes what is older than"
        f" {retention_ms / 3_600_000:,.1f} hours: give it a longer {RETENTION}, or leave out --keep-timestamps",
        EXIT_USAGE,
    )


def _write_slices(run: Run, state: State, plan: DataFrame, into: str, totals: Totals, stopping: Stopping) -> None:
    given = run.given
    bytes_of = f.sum(f.coalesce(f.length("key"), f.lit(0)) + f.coalesce(f.length("value"), f.lit(0)))
    slices = plan.groupBy("slice").agg(f.count(f.lit(1)).alias("records"), bytes_of.alias("bytes")).orderBy("slice")
    began_s, records = time.monotonic(), 0
    assert state.done is not None
    for number, part in enumerate(slices.collect()):
        if number < state.done:
            continue
        if given.rate:
            _wait(began_s + records / given.rate, stopping)
        if stopping.signal:
            return
        rows = plan.where(f.col("slice") == part["slice"]).repartition("partition")
        (
            rows.sortWithinPartitions("partition", "offset")
            .select(*message(given))
            .write.format("goqueue")
            .mode("append")
            .options(**run.at)
            .option("topic", into)
            .option("txnAppId", state.writer)
            .option("txnVersion", number)
            .save()
        )
        state.note(number + 1)
        records += part["records"]
        totals.add(part["records"], part["bytes"])
        run.tell.progress(f"restore: {totals}")


def _wait(until_s: float, stopping: Stopping) -> None:
    while not stopping.signal and (left_s := until_s - time.monotonic()) > 0:
        time.sleep(min(left_s, 0.1))


def _dry_run(run: Run, rows: DataFrame, into: str, archived: DataFrame) -> int:
    facts = rows.agg(
        f.count(f.lit(1)).alias("records"),
        f.coalesce(f.sum(f.length("value")), f.lit(0)).alias("bytes"),
        f.min("timestamp").alias("first"),
        f.max("timestamp").alias("last"),
    ).first()
    assert facts is not None
    found = facts.asDict()
    if not found["records"]:
        why = why_nothing.of_restore(archived, run.given)
        run.tell.facts(f"nothing would be restored: {why}", found | {"dry_run": True, "why": why})
        return 0
    taking = f", taking {found['records'] / run.given.rate:,.0f} s" if run.given.rate else ""
    sentence = (
        f"{found['records']:,} messages, {size(found['bytes'])}, from {found['first']:%Y-%m-%d %H:%M:%S} to"
        f" {found['last']:%Y-%m-%d %H:%M:%S}, would be written to {into}{taking}"
    )
    run.tell.facts(sentence, found | {"into": into, "dry_run": True})
    return 0


def _name(given: Namespace) -> str:
    """The same words are the same restore."""
    words = (given.topic, given.start, given.stop, given.into, given.where, given.keep_partitions, given.no_origin)
    words += (given.keep_timestamps,) if given.keep_timestamps else ()
    return f"{given.topic}-{sha256(repr(words).encode()).hexdigest()[:12]}"


def main(arguments: Sequence[str] | None = None) -> int:
    return submitted(RESTORE, restore, arguments)


if __name__ == "__main__":
    sys.exit(main())
