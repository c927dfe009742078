"""Streaming queries run to their end: with progress, and stopped cleanly by Ctrl-C or SIGTERM."""

import signal
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from goqueue.spark.jobs.running import EXIT_USAGE, JobFailed
from goqueue.spark.jobs.telling import Teller, Totals
from goqueue.spark.read.limits import IS_KNOWN_TO_SPARK

POLL_S = 0.2
BATCH_RECORDS = 1_000_000
SIGNAL_EXIT = 128
SIGNALS = (signal.SIGINT, signal.SIGTERM)

SLOW_START = "Python worker failed to connect back"
RESTARTS_MAX = 5

Start = Callable[[], StreamingQuery]
WriteBatch = Callable[[DataFrame, int], bool]
"""False: there was nothing to do, and nothing was read."""


class Stopping:
    """Which signal has asked for an end; 0: none. A second one does not want to wait for the micro-batch."""

    def __init__(self) -> None:
        self.signal = 0
        self.is_urgent = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        self.is_urgent = bool(self.signal)
        self.signal = number

    @property
    def exit_code(self) -> int:
        return SIGNAL_EXIT + self.signal if self.signal else 0


@contextmanager
def told_to_stop() -> Iterator[Stopping]:
    stopping = Stopping()
    before = {number: signal.signal(number, stopping) for number in SIGNALS}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def to_the_end(
    starts: Sequence[Start], tell: Teller, show: Callable[[], str], stopping: Stopping
) -> list[StreamingQuery]:
    """Until all have ended, one has failed (raised, and the others stopped), or a signal came."""
    queries = [start() for start in starts]
    restarts = [0] * len(queries)
    try:
        while not stopping.signal:
            for number, query in enumerate(queries):
                if _is_passing(query) and restarts[number] < RESTARTS_MAX:
                    restarts[number] += 1
                    queries[number] = starts[number]()
            active = [query for query in queries if query.isActive]
            if not active or any(query.exception() is not None for query in queries):
                break
            tell.progress(show())
            with suppress(StreamingQueryException):  # looked at above
                active[0].awaitTermination(POLL_S)  # type: ignore[arg-type]
    finally:
        for query in queries:
            if stopping.signal:
                finish_batch(query, stopping)
            query.stop()
    for query in queries:
        failed = query.exception()
        if failed is not None and not stopping.signal:
            raise failed
    return queries


def finish_batch(query: StreamingQuery, stopping: Stopping) -> None:
    """A micro-batch that has begun is finished, so that nothing of it is done again."""
    before, pause = _batches_done(query), threading.Event()
    while query.isActive and query.status["isTriggerActive"] and _batches_done(query) == before:
        if stopping.is_urgent:
            return
        pause.wait(POLL_S)


def _batches_done(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def _is_passing(query: StreamingQuery) -> bool:
    """Spark gives a Python process 10 s to start, whatever else the machine has to do. Its query loses nothing."""
    failed = None if query.isActive else query.exception()
    return failed is not None and SLOW_START in str(failed)


def triggered(writer: DataStreamWriter, given: Namespace) -> DataStreamWriter:
    """Up to now and then an end, unless it shall follow."""
    if not given.follow:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=f"{given.every} milliseconds") if given.every else writer


def limits_of(given: Namespace) -> dict[str, str]:
    """How much of a topic a batch takes, as options of the read."""
    if IS_KNOWN_TO_SPARK:
        return {"maxOffsetsPerTrigger": str(given.batch or BATCH_RECORDS)}
    if given.batch:
        raise JobFailed(
            f"--batch needs pyspark 4.2 or newer, and this is {pyspark.__version__}: without it, all is one batch",
            EXIT_USAGE,
        )
    return {}


def counted(write: WriteBatch, totals: Totals) -> Callable[[DataFrame, int], None]:
    """Counts what `write` reads, in the same pass."""

    def write_and_count(batch: DataFrame, number: int) -> None:
        observation = Observation()
        # What was not read is not counted either: its observation would be waited for without end.
        totals.add(*(seen(observation) if write(observed(batch, observation), number) else (0, 0)))

    return write_and_count


def observed(rows: DataFrame, by: Observation | str) -> DataFrame:
    """Counted as they go by: `records`, and the `bytes` of their keys and values, if they have such."""
    return rows.observe(by, f.count(f.lit(1)).alias("records"), _size_of(rows).alias("bytes"))


def seen(observation: Observation) -> tuple[int, int | None]:
    """Records and bytes: none, where Spark sees at once that there are no rows: pyspark cannot read that, and fails."""
    try:
        found = observation.get
    except Py4JJavaError:
        return 0, 0
    return found.get("records") or 0, found.get("bytes")


def _size_of(rows: DataFrame) -> Column:
    """NULL: the value is not bytes."""
    octets = [name for name, kind in rows.dtypes if name in ("key", "value") and kind in ("binary", "string")]
    if "value" not in octets:
        return f.max(f.lit(None).cast("bigint"))
    sizes = [f.coalesce(f.octet_length(name), f.lit(0)).cast("bigint") for name in octets]
    return f.sum(sum(sizes, f.lit(0)))
