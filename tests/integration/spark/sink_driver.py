"""A driver of its own, for tests that kill it: `sink_driver.py stream|job|wheel servers topic directory`."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

import goqueue
from goqueue.spark import session

TASKS = 2
JOB_ROWS = 100_000
"""More than a task gathers before it sends, and what Spark gathers on the way."""


def stream(spark: SparkSession, servers: str, topic: str, directory: Path) -> None:
    """Every file in `directory`/in, a line each, two files at a time; what is done is in `directory`/checkpoint."""
    lines = spark.readStream.option("maxFilesPerTrigger", 2).text(str(directory / "in"))
    query = (
        lines.selectExpr("value", "value AS key")
        .repartition(TASKS)
        .writeStream.format("goqueue")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", topic)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def job(spark: SparkSession, servers: str, topic: str, directory: Path) -> None:
    """Every task sends what it has and waits for the file `directory`/go, then it ends."""
    go = str(directory / "go")

    def rows(task: int) -> Iterator[tuple[str]]:
        for number in range(JOB_ROWS):
            yield (f"{task}-{number}",)
        while not Path(go).exists():
            threading.Event().wait(0.05)
        yield (f"{task}-last",)

    (
        spark.createDataFrame(spark.sparkContext.parallelize(range(TASKS), TASKS).flatMap(rows), "value string")
        .write.format("goqueue")
        .mode("append")
        .option("kafka.bootstrap.servers", servers)
        .save(topic)
    )


def wheel(spark: SparkSession, servers: str, topic: str, directory: Path) -> None:
    """On two executors, which say where they have GoQueue from."""
    found = str(directory / "found")

    def rows(task: int) -> Iterator[tuple[str]]:
        Path(found).write_text(goqueue.__file__)
        for number in range(JOB_ROWS):
            yield (f"{task}-{number}",)

    tasks = spark.sparkContext.parallelize(range(TASKS), TASKS)
    written = spark.createDataFrame(tasks.flatMap(rows), "value string").write.format("goqueue").mode("append")
    written.option("kafka.bootstrap.servers", servers).save(topic)
    read = spark.read.format("goqueue").option("kafka.bootstrap.servers", servers).load(topic)
    (directory / "read").write_text(str(read.select("value").distinct().count()))


if __name__ == "__main__":
    kind, servers, topic, directory = sys.argv[1:]
    executors = {
        "stream": "local[2]",
        "job": f"local-cluster[1,{TASKS},1024]",
        "wheel": "local-cluster[2,1,1024]",
    }
    master = executors[kind]
    options = {"spark.local.dir": f"{directory}/scratch", "spark.sql.shuffle.partitions": str(TASKS)}
    spark = session("sink", master, options)
    Path(directory, "started").write_text(spark.sparkContext.applicationId)
    {"stream": stream, "job": job, "wheel": wheel}[kind](spark, servers, topic, Path(directory))
