"""Archive: topics into a lake, exactly once.

Every topic is a streaming query of its own, with its checkpoint inside the lake, so that topics may come and go from
one run to the next. Where a checkpoint is lost, the lake itself says where to go on.
"""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from goqueue.spark.jobs import why_nothing
from goqueue.spark.jobs.lake import Lake, as_archived, query_id_of, starting_offsets
from goqueue.spark.jobs.queries import counted, limits_of, to_the_end, told_to_stop, triggered
from goqueue.spark.jobs.running import Run, check_topics, submitted
from goqueue.spark.jobs.table import ARCHIVE
from goqueue.spark.jobs.telling import Totals

START = "goqueue-start.json"
AT_ONCE_MAX = 4
"""Queries side by side, when each ends by itself."""


def archive(run: Run) -> int:
    given, totals = run.given, Totals()
    lake = Lake(run.spark, given.lake, given.format)
    for topic in given.topic:
        lake.table(topic)  # whether it can be written is told before anything is read
    partitions, limits = check_topics(run.at, given.topic), limits_of(given)
    with told_to_stop() as stopping:
        at_once = len(given.topic) if given.follow else AT_ONCE_MAX
        for begin in range(0, len(given.topic), at_once):
            some = given.topic[begin : begin + at_once]
            starts = [partial(_started, run, lake, topic, partitions[topic], totals, limits) for topic in some]
            to_the_end(starts, run.tell, lambda: f"archive: {totals}", stopping)
            if stopping.signal:
                break
    facts = totals.facts() | {"lake": given.lake, "topics": given.topic}
    if not totals.records and not stopping.signal:
        facts["why"] = why_nothing.of_topics(run.at, given.topic)
        for why in facts["why"]:
            run.tell.note(why)
    run.tell.facts(f"archived {totals}, in {given.lake}", facts)
    return stopping.exit_code


def _started(
    run: Run, lake: Lake, topic: str, partitions: int, totals: Totals, limits: dict[str, Any]
) -> StreamingQuery:
    given = run.given
    checkpoint = lake.own_path("checkpoints", topic)
    lake.sweep(topic)
    options = {"includeHeaders": "true", "valueFormat": given.values} | limits
    options["startingOffsets"] = _start(lake, topic, partitions, f"{checkpoint}/{START}")

    def write(batch: DataFrame, number: int) -> bool:
        return lake.write(batch, topic, query_id_of(batch.sparkSession), number)

    rows = run.stream(topic, **options)
    if given.values != "raw":
        rows = as_archived(rows)
    writer = rows.writeStream.foreachBatch(counted(write, totals))
    named = writer.queryName(f"archive {topic}").option("checkpointLocation", checkpoint)
    return triggered(named, given).start()


def _start(lake: Lake, topic: str, partitions: int, path: str) -> str:
    """Where its first batch begins. One that was killed in that batch is asked again, and what it has written by then
    must not change the answer; later, Spark knows by itself.
    """
    noted = lake.read_text(path)
    if noted is None:
        noted = starting_offsets(topic, partitions, lake.positions(topic))
        lake.write_text(path, noted)
    return noted


def main(arguments: Sequence[str] | None = None) -> int:
    return submitted(ARCHIVE, archive, arguments)


if __name__ == "__main__":
    sys.exit(main())
