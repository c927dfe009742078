"""Reconcile: what was produced against what arrived. Ends with 1 if they differ, so that CI can ask."""

import sys
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StringType

from goqueue.spark.jobs.comparing import DUPLICATED, FAULTS, REORDERED, by_window, compared, identified, samples
from goqueue.spark.jobs.lake import Lake
from goqueue.spark.jobs.running import EXIT_FAILED, EXIT_USAGE, JobFailed, Run, check_topics, submitted
from goqueue.spark.jobs.table import RECONCILE
from goqueue.spark.jobs.telling import Totals

COUNTED = ("produced", "arrived", *FAULTS, "gone")


def reconcile(run: Run) -> int:
    given, totals = run.given, Totals()
    # What arrived is looked at first: a message that is published meanwhile is not lost, it is on its way.
    arrived = identified(_bounded(run, given.arrived), given.by, given.order).localCheckpoint()
    produced = identified(_bounded(run, given.produced), given.by)
    found = compared(produced, arrived).cache()
    try:
        windows = [row.asDict() for row in by_window(found, given.window).collect()]
        shown = [row.asDict() for row in samples(found, given.samples).collect()]
    finally:
        found.unpersist()
    sums = {name: sum(row[name] for row in windows) for name in COUNTED}
    totals.add(sums["produced"], 0)
    allowed = {DUPLICATED: given.allow_duplicates, REORDERED: given.allow_reordering}
    failures = {name: sums[name] for name in FAULTS if sums[name] and not allowed.get(name)}
    run.tell.rows("windows", windows, nothing="nothing was produced, and nothing arrived")
    run.tell.rows("samples", shown)
    run.tell.facts(_sentence(sums, failures), sums | {"is_right": not failures, "seconds": totals.facts()["seconds"]})
    return EXIT_FAILED if failures else 0


def _sentence(sums: dict[str, int], failures: dict[str, int]) -> str:
    told = f"{sums['produced']:,} produced, {sums['arrived']:,} arrived"
    gone = f"; {sums['gone']:,} that retention took were left out" if sums["gone"] else ""
    if not failures:
        return f"all right: {told}{gone}"
    return f"not right: {told}, " + ", ".join(f"{number:,} {name}" for name, number in failures.items()) + gone


def _bounded(run: Run, source: str) -> DataFrame:
    given = run.given
    rows = _rows(run, source)
    if given.topic and given.by is None and "topic" in rows.columns:
        rows = rows.where(f.col("topic").isin(*given.topic))
    if "timestamp" in rows.columns:
        for bound, sign in ((given.start, ">="), (given.stop, "<")):
            rows = rows if bound is None else rows.where(f"timestamp {sign} timestamp_millis({bound})")
    return rows


def _rows(run: Run, source: str) -> DataFrame:
    """`topic:NAME,NAME`, `lake:DIR`, or a file."""
    kind, mark, rest = source.partition(":")
    if mark and kind == "topic":
        topics = rest.split(",")
        check_topics(run.at, topics)
        return run.batch(*topics)
    if mark and kind == "lake":
        return _lake(run, Lake(run.spark, rest))
    if source.endswith((".json", ".jsonl", ".ndjson")):
        return run.spark.read.json(source)
    if source.endswith(".csv"):
        return run.spark.read.csv(source, header=True, inferSchema=True)
    if not Lake(run.spark, source).exists(source):
        raise JobFailed(f"there is no {source!r}; a topic is topic:NAME, an archive lake:DIR", EXIT_USAGE)
    return run.spark.read.parquet(source)


def _lake(run: Run, lake: Lake) -> DataFrame:
    wanted: Any = run.given.topic or lake.topics()
    rows = None
    for topic in wanted:
        lake.need(topic)
        # Values may have another type in every topic, and only an expression asks for them.
        some = lake.read(topic)
        if run.given.by is None:
            some = some.select("topic", "partition", "offset", "timestamp")
        rows = some if rows is None else rows.unionByName(some, allowMissingColumns=True)
    if rows is None:
        raise JobFailed(f"there is no archive in {lake.root}", EXIT_USAGE)
    return rows.withColumn("topic", f.col("topic").cast(StringType()))


def main(arguments: Sequence[str] | None = None) -> int:
    return submitted(RECONCILE, reconcile, arguments)


if __name__ == "__main__":
    sys.exit(main())
