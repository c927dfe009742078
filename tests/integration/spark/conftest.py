"""One Spark session for all of these tests in a worker: it costs more to start than most tests take. They run in two
workers at most: `tests/conftest.py` sees to it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from goqueue.spark import session

os.environ["SPARK_CONF_DIR"] = str(Path(__file__).with_name("conf"))  # also for the Sparks in processes of their own


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    directory = tmp_path_factory.mktemp("spark")
    running = session(
        "tests",
        "local[2]",
        {
            "spark.driver.memory": "1g",
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
            "spark.local.dir": str(directory / "scratch"),
            "spark.sql.shuffle.partitions": "2",
        },
    )
    yield running
    running.stop()
