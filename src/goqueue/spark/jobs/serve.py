"""Serve: the tables of all topics that want one, kept fresh until the service is told to stop."""

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from goqueue.spark.iceberg.checkpoints import note
from goqueue.spark.iceberg.discovery import topics_with_tables
from goqueue.spark.iceberg.pages import served
from goqueue.spark.iceberg.rows import SOURCE
from goqueue.spark.iceberg.service import Service
from goqueue.spark.iceberg.table import TopicTable
from goqueue.spark.jobs.lake import query_id_of, starting_offsets
from goqueue.spark.jobs.queries import POLL_S, limits_of, told_to_stop
from goqueue.spark.jobs.running import EXIT_USAGE, JobFailed, Run, check_topics, submitted
from goqueue.spark.jobs.table import SERVE
from goqueue.spark.options import Options, Part
from goqueue.spark.where import kafka_at

TIDY_END_S_MAX = 30.0
"""How long a stop waits for files that are being put together. What is cut off is done again, and hurts nobody."""


def directory_of(lake: str) -> Path:
    """JobFailed: a place of another kind. Its name would become that of a directory here."""
    scheme, mark, _ = lake.partition("://")
    if mark and scheme != "file":
        raise JobFailed(
            f"--lake {lake} is not a directory of this machine: tables on {scheme} are those of a catalog, which the"
            " option table.catalog of a topic names",
            EXIT_USAGE,
        )
    return Path(lake.removeprefix("file://") if mark else lake)


def service_of(run: Run) -> Service:
    kafka = kafka_at(Options(run.at, Part.BATCH, Part.STREAM))
    find = partial(topics_with_tables, kafka, run.http)
    return Service(directory_of(run.given.lake), run.http, find, partial(_started, run), time.monotonic)


def serve(run: Run) -> int:
    given, service = run.given, service_of(run)
    pause = threading.Event()
    with told_to_stop() as stopping, _listening(service, *given.listen) as address, _tidying(run, service):
        run.tell.note(f"keeps tables fresh; http://{address} has /healthz, /metrics and /status")
        next_s = 0.0
        while not stopping.signal:
            if time.monotonic() >= next_s:
                service.step()
                next_s = time.monotonic() + given.look / 1000
            pause.wait(POLL_S)
        service.stop(stopping)
    return 0


@contextmanager
def _listening(service: Service, host: str, port: int) -> Iterator[str]:
    with ExitStack() as stack:
        try:
            address = stack.enter_context(served(service, host, port))
        except OSError as error:
            raise JobFailed(f"cannot listen on {host}:{port}: {error}", EXIT_USAGE) from None
        yield address


@contextmanager
def _tidying(run: Run, service: Service) -> Iterator[None]:
    is_over = threading.Event()

    def now_and_then() -> None:
        while not is_over.wait(run.given.tidy / 1000):
            service.tidy(run.spark, is_over)

    thread = threading.Thread(target=now_and_then, name="goqueue tidy", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(TIDY_END_S_MAX)


def _started(run: Run, table: TopicTable, checkpoint: str) -> StreamingQuery:
    topic = table.settings.topic

    def write(batch: DataFrame, number: int) -> None:
        table.write(batch, query_id_of(batch.sparkSession), number)
        note(checkpoint, table.reached)

    options = limits_of(run.given) | {"columns": ",".join(SOURCE)}
    # Where there is no checkpoint, or it was lost, the table says where to go on.
    options["startingOffsets"] = starting_offsets(topic, check_topics(run.at, [topic])[topic], table.positions)
    writer = run.stream(topic, **options).writeStream.foreachBatch(write).queryName(f"table {topic}")
    timed = writer.trigger(processingTime=f"{table.settings.freshness_ms} milliseconds")
    return timed.option("checkpointLocation", checkpoint).start()


def main(arguments: Sequence[str] | None = None) -> int:
    return submitted(SERVE, serve, arguments)


if __name__ == "__main__":
    sys.exit(main())
