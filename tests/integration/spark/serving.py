"""The service of tables in the session that all tests share: gone round by the test itself."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from goqueue.spark.iceberg.service import Service
from goqueue.spark.jobs.queries import Stopping
from goqueue.spark.jobs.running import Run, register
from goqueue.spark.jobs.serve import service_of
from goqueue.spark.jobs.table import SERVE
from goqueue.spark.jobs.telling import Teller
from goqueue.spark.jobs.words import parser_of
from tests.integration.process import Node
from tests.integration.spark.jobs import SPARK_DEADLINE_S


@contextmanager
def serving(spark: SparkSession, node: Node, lake: Path, *words: str) -> Iterator[Service]:
    register(spark)
    asked = ["--kafka", node.address, "--server", node.url, "--lake", str(lake), *words]
    given = parser_of(SERVE).parse_args(asked)
    given.api_key = None
    service = service_of(Run(spark, given, Teller()))
    try:
        yield service
    finally:
        service.stop(Stopping())


def rounds(service: Service, until: Callable[[], bool]) -> None:
    """Goes round until it holds."""
    pause = threading.Event()
    give_up = time.monotonic() + SPARK_DEADLINE_S
    while True:
        service.step()
        if until():
            return
        tables = [kept.shown() for kept in service.kept.values()]
        assert time.monotonic() < give_up, (service.error, tables)
        pause.wait(0.1)


def complete(service: Service, *topics: str) -> Callable[[], bool]:
    """All that is in the topics is in their tables."""

    def is_complete() -> bool:
        return all(
            topic in service.kept
            and service.kept[topic].table.positions.keys()
            and service.kept[topic].lag.messages == 0
            for topic in topics
        )

    return is_complete
