"""Report: how topics and groups did, as tables and as Parquet."""

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from goqueue.spark.jobs import measuring
from goqueue.spark.jobs.running import Run, submitted
from goqueue.spark.jobs.table import REPORT
from goqueue.spark.jobs.telling import Totals

WINDOWS = 60
WINDOW_MS_MIN = 1000
COLUMNS = "key,value,topic,partition,offset,timestamp,priority"
SHOWN_ROWS_MAX = 20
OVER_TIME = ("throughput", "lag_over_time")


def report(run: Run) -> int:
    given, totals = run.given, Totals()
    topics = given.topic or [row["topic"] for row in run.table("topics").collect()]
    messages = _messages(run, topics).cache()
    bounds = messages.agg(f.min("timestamp"), f.max("timestamp"), f.count("*"), f.sum("bytes")).first()
    assert bounds is not None
    first, last, records, size_bytes = bounds
    totals.add(records, size_bytes or 0)
    window_ms = given.window or _window_ms(first, last)
    frames = _frames(run, topics, messages, window_ms)
    tables: dict[str, list[dict[str, Any]]] = {}
    for number, (name, frame) in enumerate(frames.items(), 1):
        run.tell.progress(f"report: {name.replace('_', ' ')} ({number} of {len(frames)})")
        tables[name] = [row.asDict() for row in frame.collect()]
        if given.out:
            run.spark.createDataFrame(tables[name], frame.schema).coalesce(1).write.mode("overwrite").parquet(
                f"{given.out}/{name}"
            )
    messages.unpersist()
    for name, rows in tables.items():
        if name not in OVER_TIME or given.output == "json":
            run.tell.rows(name, rows[:SHOWN_ROWS_MAX] if given.output == "table" else rows)
    where = f"; Parquet in {given.out}" if given.out else ""
    facts = totals.facts() | {"topics": topics, "out": given.out}
    run.tell.facts(f"reported on {totals}{where}", facts)
    return 0


def _messages(run: Run, topics: Sequence[str]) -> DataFrame:
    given = run.given
    if not topics:
        shape = "topic string, partition int, offset bigint, timestamp timestamp, priority string, bytes bigint"
        return run.spark.createDataFrame([], shape)
    bounds = {"startingTimestamp": given.start, "endingTimestamp": given.stop}
    options = {name: str(at) for name, at in bounds.items() if at is not None}
    if given.start is not None:
        options["startingOffsetsByTimestampStrategy"] = "latest"
    rows = run.batch(*topics, columns=COLUMNS, **options)
    sizes = f.coalesce(f.length("key"), f.lit(0)) + f.coalesce(f.length("value"), f.lit(0))
    return rows.withColumn("bytes", sizes.cast("bigint")).drop("key", "value")


def _frames(run: Run, topics: Sequence[str], messages: DataFrame, window_ms: int) -> dict[str, DataFrame]:
    given = run.given

    def chosen(rows: DataFrame, moment: str | None = None) -> DataFrame:
        rows = rows.where(f.col("topic").isin(*topics)) if topics else rows.limit(0)
        for bound, sign in ((given.start, ">="), (given.stop, "<")):
            if moment is not None and bound is not None:
                rows = rows.where(f"{moment} {sign} timestamp_millis({bound})")
        return rows

    only = {"topic": topics[0]} if len(topics) == 1 else {}  # that of others need not be asked for
    told = measuring.steps(chosen(run.table("steps", **only)), messages)
    steps = measuring.began_between(told, given.start, given.stop).cache()
    return {
        "throughput": measuring.throughput(messages, window_ms),
        "latency": measuring.latencies(measuring.deliveries(steps)),
        "retries": measuring.retries(steps),
        "dead_letters": measuring.dead_letters(chosen(run.table("dlq"), "died_at")),
        "lag": measuring.lag_now(chosen(run.table("lag"))),
        "lag_over_time": measuring.lag_over_time(steps, window_ms),
    }


def _window_ms(first: datetime | None, last: datetime | None) -> int:
    """A round time, so that the range has about WINDOWS of them."""
    if first is None or last is None:
        return WINDOW_MS_MIN
    wanted = (last - first).total_seconds() * 1000 / WINDOWS
    for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200):
        if seconds * 1000 >= wanted:
            return seconds * 1000
    return 86_400_000


def main(arguments: Sequence[str] | None = None) -> int:
    return submitted(REPORT, report, arguments)


if __name__ == "__main__":
    sys.exit(main())
