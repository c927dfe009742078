"""One process that keeps the tables of all topics fresh: a query for each, started, watched and started again."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from goqueue.model.errors import GoQueueError
from goqueue.spark.iceberg.catalogs import Catalogs
from goqueue.spark.iceberg.checkpoints import discard_if_ahead
from goqueue.spark.iceberg.lag import NO_LAG, Behind, Lag
from goqueue.spark.iceberg.settings import NAMESPACE, TableSettings, settings_of
from goqueue.spark.iceberg.table import TopicTable
from goqueue.spark.jobs.queries import Stopping, finish_batch
from goqueue.spark.jobs.running import one_line
from goqueue.spark.progress import done_by
from goqueue.spark.where import Where
from goqueue.wire.rest.topics import TopicDetails

BACKOFF_S_MAX = 60.0
LATE_S_MAX = 120.0
"""When nobody has looked after the tables for so long, the service is not well."""

Start = Callable[[TopicTable, str], StreamingQuery]
Find = Callable[[], list[TopicDetails]]


@dataclass
class Kept:
    """One topic, its table and who writes it."""

    table: TopicTable
    behind: Behind = field(default_factory=Behind)
    lag: Lag = NO_LAG
    query: StreamingQuery | None = None
    error: str = ""
    failures: int = 0
    """One after the other, without a commit in between."""
    restarts: int = 0
    commits_before: int = 0
    due_s: float = 0.0
    tidy_error: str = ""
    """Why it could not be tidied, the last time."""

    @property
    def positions(self) -> dict[int, int]:
        """How far the table is. Its rows do not say where markers of transactions end, and the query does."""
        known = self.table.positions
        if self.query is None:
            return known
        done = done_by(self.query, self.table.settings.topic)
        return known | {number: max(offset, known.get(number, 0)) for number, offset in done.items()}

    @property
    def state(self) -> str:
        if self.query is None:
            return "failing" if self.error else "starting"
        return "running"

    def shown(self) -> dict[str, Any]:
        """For /status."""
        settings, counts = self.table.settings, self.table.counts
        return {
            "topic": settings.topic,
            "table": f"{settings.catalog + '.' if settings.catalog else ''}{NAMESPACE}.{settings.name}",
            "mode": settings.mode,
            "state": self.state,
            "lag": self.lag.messages,
            "lag_seconds": round(self.lag.seconds, 1),
            "rows": counts.rows,
            "bad_rows": counts.bad,
            "files": counts.files,
            "commits": counts.commits,
            "restarts": self.restarts,
            "tidied": self.table.tidied._asdict(),
            "tidy_error": self.tidy_error,
            "error": self.error,
        }


class Service:
    def __init__(self, lake: Path, server: Where, find: Find, start: Start, clock: Callable[[], float]) -> None:
        """`clock`: seconds that only grow."""
        self.catalogs = Catalogs(lake)
        self.kept: dict[str, Kept] = {}
        self.error = ""
        """Why topics could not be looked for, the last time."""
        self._lake = lake
        self._server = server
        self._find = find
        self._start = start
        self._clock = clock
        self._looked_s = clock()

    @property
    def is_well(self) -> bool:
        """Whether it goes round. That a broker is away, or a table cannot be written, is no reason to restart it."""
        return self._clock() - self._looked_s < LATE_S_MAX

    def step(self) -> None:
        """Once round: new topics, changed and deleted ones, queries that have ended."""
        try:
            found = self._find()
        except GoQueueError as error:
            self.error = one_line(error)
        else:
            self.error = ""
            self._follow(found)
        for kept in self.kept.values():
            self._look_after(kept)
        self._looked_s = self._clock()

    def tidy(self, spark: SparkSession, is_over: threading.Event) -> None:
        """All tables, one after the other. In a thread of its own: it may take long, and keeps nobody from its rows but
        the table that it is about."""
        for kept in list(self.kept.values()):
            if is_over.is_set():
                return
            kept.tidy_error = ""
            try:
                kept.table.tidy(spark)
            except Exception as error:  # noqa: BLE001  the next time; each catalog has errors of its own
                kept.tidy_error = one_line(error)

    def stop(self, stopping: Stopping) -> None:
        """After the micro-batches that have begun."""
        for kept in self.kept.values():
            if kept.query is not None:
                finish_batch(kept.query, stopping)
                kept.query.stop()
                kept.query = None

    def checkpoint(self, table: TopicTable) -> str:
        """By the topic's id, and that of its table: when either was made again, the query begins at what the table has.
        To go on from the checkpoint of a table that was dropped would leave out all that the new one does not have."""
        return str(self._lake / "_goqueue" / "checkpoints" / f"{table.settings.topic_id}-{table.table_id}")

    def _follow(self, found: list[TopicDetails]) -> None:
        wanted: dict[str, tuple[TableSettings, TopicDetails]] = {}
        unclear: set[str] = set()
        for details in found:
            try:
                settings = settings_of(details)
            except GoQueueError as error:  # a newer broker knows more options
                self.error = f"topic {details.name}: {one_line(error)}"
                unclear.add(details.name)
                continue
            if settings is not None:
                wanted[details.name] = settings, details
        for topic in [name for name in self.kept if name not in wanted and name not in unclear]:
            self._end(self.kept.pop(topic))
        for topic, (settings, details) in wanted.items():
            kept = self.kept.get(topic)
            if kept is not None and kept.table.settings != settings:
                self._end(self.kept.pop(topic))
                kept = None
            if kept is None:
                kept = self.kept[topic] = Kept(TopicTable(settings, self.catalogs, self._server))
            kept.lag = kept.behind.look(details, kept.positions, self._clock())

    def _end(self, kept: Kept) -> None:
        if kept.query is not None:
            kept.query.stop()

    def _look_after(self, kept: Kept) -> None:
        query = kept.query
        if query is not None:
            if query.isActive:
                if kept.table.counts.commits > kept.commits_before:
                    kept.failures, kept.error = 0, ""
                return
            failed = query.exception()
            kept.query = None
            self._note_failure(kept, one_line(failed) if failed is not None else "the query ended")
        elif self._clock() >= kept.due_s:
            self._begin(kept)

    def _begin(self, kept: Kept) -> None:
        if kept.table.lock.locked():  # it is being tidied, which may take long: the others are not to wait for it
            return
        kept.commits_before = kept.table.counts.commits
        try:
            kept.table.open()
            checkpoint = self.checkpoint(kept.table)
            discard_if_ahead(checkpoint, kept.table.reached)
            kept.query = self._start(kept.table, checkpoint)
        except (GoQueueError, PySparkException) as error:
            self._note_failure(kept, one_line(error))
        except Exception as error:  # noqa: BLE001  each catalog and file system has errors of its own
            self._note_failure(kept, f"{type(error).__name__}: {error}")
        else:
            if kept.failures:
                kept.restarts += 1

    def _note_failure(self, kept: Kept, why: str) -> None:
        kept.error = why
        kept.due_s = self._clock() + min(BACKOFF_S_MAX, 2.0**kept.failures)
        kept.failures += 1
