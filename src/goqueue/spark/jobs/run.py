"""Run: a pipeline of a user's own, from a file of SQL or of Python.

In SQL a table that nobody has made and that is a topic is read as a stream, and `INSERT INTO` writes to a topic or to
files. A Python file gets `spark`, `stream(topic)`, `batch(topic)`, `write(rows, topic)` and `write_files(rows, path)`.
Every write is a query with a checkpoint of its own, all run side by side, and all stop cleanly.
"""

import runpy
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation
from pyspark.sql.streaming.query import StreamingQuery

from goqueue.client.errors import UnknownTopic
from goqueue.model.errors import InvalidName
from goqueue.spark.jobs.backfill import message_columns
from goqueue.spark.jobs.queries import Start, Stopping, limits_of, observed, seen, to_the_end, told_to_stop, triggered
from goqueue.spark.jobs.running import (
    EXIT_FAILED,
    EXIT_NOT_FOUND,
    EXIT_USAGE,
    JobFailed,
    Run,
    check_topics,
    register,
    submitted,
)
from goqueue.spark.jobs.statements import insert_of, statements, unquoted
from goqueue.spark.jobs.table import RUN
from goqueue.spark.jobs.telling import Totals

SHOWN_ROWS = 100
COUNTED = "goqueue"
TABLES_MAX = 100
"""In one statement."""


def run_file(run: Run) -> int:
    given, totals = run.given, Totals()
    path = Path(given.file)
    if not path.is_file():
        raise JobFailed(f"there is no file {given.file!r}", EXIT_USAGE)
    work: Callable[[Pipeline, Path], None] | None = {".sql": run_sql, ".py": run_python}.get(path.suffix)
    if work is None:
        raise JobFailed(f"{given.file}: a pipeline is a file .sql or .py", EXIT_USAGE)
    own = run.spark.newSession()  # whose views and settings are gone with it
    register(own)
    pipeline = Pipeline(Run(own, given, run.tell), given.checkpoint or f"{path.with_suffix('')}.checkpoint")
    work(pipeline, path)
    with told_to_stop() as stopping:
        pipeline.to_the_end(stopping)
    for written in pipeline.written():
        totals.add(*written)
    names = ", ".join(str(query.name) for query in pipeline.queries) or "no query"
    run.tell.facts(f"ran {path.name} ({names}): {totals}", totals.facts() | {"queries": pipeline.counts()})
    return stopping.exit_code


class Written(NamedTuple):
    """In one micro-batch of a query."""

    records: int
    bytes: int | None


class Pipeline:
    """What a file of a user can do with topics, and the queries that came of it."""

    def __init__(self, run: Run, checkpoint: str) -> None:
        self.run = run
        self._checkpoint = checkpoint
        self._starts: dict[str, Start] = {}
        self.queries: list[StreamingQuery] = []
        self._written: dict[tuple[str, int], Written] = {}
        self._once: list[tuple[str, Observation]] = []
        self._shown = 0

    def stream(self, topic: str, **options: Any) -> DataFrame:
        """What is in a topic and what will come. `options` are those of the data source."""
        given = self.run.given
        usual = {
            "startingOffsets": "earliest",
            "includeHeaders": "true",
            "valueFormat": given.values,
            **limits_of(given),
        }
        return self.run.stream(topic, **(usual | options))

    def batch(self, topic: str, **options: Any) -> DataFrame:
        """What is in a topic now."""
        return self.run.batch(topic, **({"includeHeaders": "true", "valueFormat": self.run.given.values} | options))

    def write(self, rows: DataFrame, topic: str, name: str | None = None) -> None:
        """Into a topic, exactly once. `name` is that of its checkpoint, where several write to one topic."""
        check_topics(self.run.at, [topic])
        sent = rows.select(*message_columns(rows))
        if not rows.isStreaming:
            whole = self._counted_once(sent, name or topic)
            whole.write.format("goqueue").mode("append").options(**self.run.at).save(topic)
            return
        writer = observed(sent, COUNTED).writeStream.format("goqueue").option("topic", topic)
        self._start(writer.options(**self.run.at), name or topic)

    def write_files(self, rows: DataFrame, path: str, format: str = "parquet", name: str | None = None) -> None:
        """Into a directory of files, exactly once for those who read it with Spark."""
        if not rows.isStreaming:
            self._counted_once(rows, name or Path(path).name).write.format(format).mode("append").save(path)
            return
        self._start(observed(rows, COUNTED).writeStream.format(format).option("path", path), name or Path(path).name)

    def _counted_once(self, rows: DataFrame, name: str) -> DataFrame:
        """What is no stream is written at once."""
        self._once.append((name, Observation()))
        return observed(rows, self._once[-1][1])

    def _start(self, writer: Any, name: str) -> None:
        if name in self._starts:
            raise JobFailed(f"two queries are named {name!r}: give one of them another name", EXIT_USAGE)
        named = writer.queryName(name).option("checkpointLocation", f"{self._checkpoint}/{name}")
        self._starts[name] = triggered(named, self.run.given).start

    def sql(self, statement: str) -> DataFrame:
        """As spark.sql, with every topic that it names as a stream."""
        spark = self.run.spark
        for _ in range(TABLES_MAX):
            try:
                return spark.sql(statement)
            except AnalysisException as error:
                if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
                    raise
                name = unquoted((error.getMessageParameters() or {})["relationName"])
                try:
                    check_topics(self.run.at, [name])
                except (UnknownTopic, InvalidName):
                    raise JobFailed(f"there is no table and no topic {name!r}", EXIT_NOT_FOUND) from None
                self.stream(name).createOrReplaceTempView(f"`{name}`" if "." in name or "-" in name else name)
        raise JobFailed(f"more than {TABLES_MAX} topics in one statement", EXIT_FAILED)

    def show(self, rows: DataFrame) -> None:
        if rows.isStreaming:
            raise JobFailed("a stream cannot be shown: INSERT it INTO a topic or files", EXIT_USAGE)
        if rows.columns:
            self._shown += 1
            self.run.tell.rows(f"result_{self._shown}", [row.asDict() for row in rows.limit(SHOWN_ROWS).collect()])

    def counts(self) -> dict[str, int]:
        """Messages that each query has written."""
        found = dict.fromkeys(self._starts, 0)
        for (name, _), written in self._written.items():
            found[name] += written.records
        for name, observation in self._once:
            found[name] = found.get(name, 0) + seen(observation)[0]
        return found

    def written(self) -> list[tuple[int, int | None]]:
        """Records and bytes, if they are known, of all that was written."""
        return [*self._written.values(), *(seen(observation) for _, observation in self._once)]

    def shown(self) -> str:
        """A query remembers its last batches only, so they are counted as it goes."""
        for query in self.run.spark.streams.active:
            self._count(query)
        return f"run: {', '.join(f'{records:,} to {name}' for name, records in self.counts().items())}"

    def _count(self, query: StreamingQuery) -> None:
        for batch in query.recentProgress if query.name in self._starts else ():
            counted = batch.observedMetrics.get(COUNTED)
            if counted is not None:
                self._written[str(query.name), batch.batchId] = Written(counted["records"], counted["bytes"])

    def to_the_end(self, stopping: Stopping) -> None:
        """All queries side by side, none before the file was read to its end without an error; and those that the
        file has started itself.
        """
        started = [partial(_itself, query) for query in self.run.spark.streams.active]
        self.queries = to_the_end([*self._starts.values(), *started], self.run.tell, self.shown, stopping)
        for query in self.queries:
            self._count(query)


def _itself(query: StreamingQuery) -> StreamingQuery:
    return query


def run_sql(pipeline: Pipeline, path: Path) -> None:
    run = pipeline.run
    for name, value in {"goqueue.kafka": run.kafka, "goqueue.server": run.server, **dict(run.given.set)}.items():
        run.spark.conf.set(name, value)
    used: dict[str, int] = {}
    for statement in statements(path.read_text("utf-8")):
        try:
            insert = insert_of(statement)
        except ValueError as error:
            raise JobFailed(f"{path.name}: {error}", EXIT_USAGE) from None
        if insert is None:
            pipeline.show(pipeline.sql(statement))
            continue
        target = insert.topic or Path(insert.path).name
        used[target] = used.get(target, 0) + 1
        name = target if used[target] == 1 else f"{target}-{used[target]}"
        rows = pipeline.sql(insert.query)
        if insert.topic:
            pipeline.write(rows, insert.topic, name)
        else:
            pipeline.write_files(rows, insert.path, insert.format, name)


def run_python(pipeline: Pipeline, path: Path) -> None:
    given = {"stream": pipeline.stream, "batch": pipeline.batch, "write": pipeline.write}
    run = pipeline.run
    more = {"spark": run.spark, "write_files": pipeline.write_files, "settings": dict(run.given.set)}
    runpy.run_path(str(path), given | more, "__main__")


def main(arguments: Sequence[str] | None = None) -> int:
    return submitted(RUN, run_file, arguments)


if __name__ == "__main__":
    sys.exit(main())
