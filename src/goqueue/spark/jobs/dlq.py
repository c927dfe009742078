"""Dead letters: what they have in common, and sending back those that a condition in SQL chooses."""

import sys
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StringType

from goqueue.client.sync import Admin
from goqueue.spark.jobs.running import EXIT_FAILED, Run, submitted
from goqueue.spark.jobs.shapes import shape_of
from goqueue.spark.jobs.table import DLQ
from goqueue.spark.jobs.telling import Totals

PLACES_MAX = 10_000
"""In one request."""


def dlq(run: Run) -> int:
    given, totals = run.given, Totals()
    letters = described(_letters(run))
    chosen = (letters.where(given.where) if given.where else letters).cache()
    clusters = [row.asDict() for row in clustered(chosen).collect()]
    totals.add(sum(row["messages"] for row in clusters), sum(row["bytes"] for row in clusters))
    run.tell.rows("clusters", clusters, nothing="no dead letters")
    facts = totals.facts()
    if not given.redrive:
        run.tell.facts(f"{totals.records:,} dead letters in {len(clusters):,} clusters", facts)
        return 0
    done = _redriven(run, chosen)
    verb = "would be sent back" if given.dry_run else "were sent back"
    left = f", {done['looping']:,} left: sent back too often" if done["looping"] else ""
    failed = f", {done['failed']:,} failed: {'; '.join(done['errors'][:3])}" if done["failed"] else ""
    run.tell.facts(f"{done['redriven']:,} of {totals.records:,} dead letters {verb}{left}{failed}", facts | done)
    return EXIT_FAILED if done["failed"] else 0


def described(letters: DataFrame) -> DataFrame:
    """With `cause`, the error without its numbers and ids, and `shape`, what the value looks like."""
    shape = f.udf(shape_of, StringType(), useArrow=False)  # which would need pandas
    return letters.withColumn("cause", cause(f.col("error"))).withColumn("shape", shape(f.col("value")))


def cause(error: Column) -> Column:
    """`timeout after 31 ms for order-17` and `... 8 ms for order-9` have one cause."""
    quoted = f.regexp_replace(error, r"\"[^\"]*\"|'[^']*'", "'…'")
    ids = f.regexp_replace(quoted, r"\b[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4,}){2,}\b", "…")
    return f.regexp_replace(ids, r"\d+(\.\d+)?", "N")


def clustered(letters: DataFrame) -> DataFrame:
    size = f.coalesce(f.length("value"), f.lit(0))
    place = f.concat_ws("/", "topic", "partition", "offset")
    found = letters.groupBy("topic", "group", "reason", "cause", "shape").agg(
        f.count(f.lit(1)).alias("messages"),
        f.sum(size).alias("bytes"),
        f.round(f.avg("attempts"), 1).alias("attempts"),
        f.max("died_at").alias("last"),
        f.min(place).alias("example"),
    )
    return found.orderBy(f.desc("messages"), "topic", "group", "reason", "cause", "shape")


def _letters(run: Run) -> DataFrame:
    if not run.given.topic:
        return run.table("dlq")
    found = None
    for topic in run.given.topic:
        some = run.table("dlq", topic=topic)
        found = some if found is None else found.unionByName(some)
    assert found is not None
    return found


def _redriven(run: Run, chosen: DataFrame) -> dict[str, Any]:
    """By their places, which only this condition knows; the server sends and settles them, each once."""
    given = run.given
    total: dict[str, Any] = {"redriven": 0, "looping": 0, "failed": 0, "errors": [], "dry_run": given.dry_run}
    places: dict[str, list[str]] = {}
    for row in chosen.select("topic", "partition", "offset").orderBy("topic", "partition", "offset").collect():
        places.setdefault(row["topic"], []).append(f"{row['partition']}/{row['offset']}")
    with Admin(run.http.address, security=run.http.security) as admin:
        for topic, of_topic in places.items():
            for begin in range(0, len(of_topic), PLACES_MAX):
                reply = admin.redrive(
                    topic,
                    to=given.into,
                    places=of_topic[begin : begin + PLACES_MAX],
                    rate=max(1, round(given.rate)) if given.rate else 0,
                    redrives_max=given.redrives_max,
                    dry_run=given.dry_run,
                )
                for name in ("redriven", "looping", "failed", "errors"):
                    total[name] += getattr(reply, name)
                run.tell.progress(f"dlq: {total['redriven']:,} sent back")
    return total


def main(arguments: Sequence[str] | None = None) -> int:
    return submitted(DLQ, dlq, arguments)


if __name__ == "__main__":
    sys.exit(main())
