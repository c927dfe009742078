"""A driver of its own, for tests that kill it: `sink_driver.py stream|job|speculation servers topic directory`."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from pyspark import TaskContext
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


SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "100ms",
}
SPECULATED = 4
"""Tasks, on two executors with a core each."""


def speculation(spark: SparkSession, servers: str, topic: str, directory: Path) -> None:
    """The first attempt at the first task writes its rows and then hangs, so that Spark begins a second one."""
    done = str(directory / "second-attempt")

    def rows(task: int) -> Iterator[tuple[str]]:
        context = TaskContext.get()
        assert context is not None
        for number in range(JOB_ROWS):
            yield (f"{task}-{number}",)
        if task == 0 and context.attemptNumber() == 0:
            while True:  # until it is killed
                threading.Event().wait(1)
        if task == 0:
            Path(done).write_text(goqueue.__file__)

    tasks = spark.sparkContext.parallelize(range(SPECULATED), SPECULATED)
    written = spark.createDataFrame(tasks.flatMap(rows), "value string").write.format("goqueue").mode("append")
    written.option("kafka.bootstrap.servers", servers).save(topic)
    read = spark.read.format("goqueue").option("kafka.bootstrap.servers", servers).load(topic)
    (directory / "read").write_text(str(read.select("value").distinct().count()))


if __name__ == "__main__":
    kind, servers, topic, directory = sys.argv[1:]
    executors = {
        "stream": "local[2]",
        "job": f"local-cluster[1,{TASKS},1024]",
        "speculation": "local-cluster[2,1,1024]",
    }
    master = executors[kind]
    options = {"spark.local.dir": f"{directory}/scratch", "spark.sql.shuffle.partitions": str(TASKS)}
    options |= SPECULATION if kind == "speculation" else {}
    spark = session("sink", master, options)
    Path(directory, "started").write_text(spark.sparkContext.applicationId)
    {"stream": stream, "job": job, "speculation": speculation}[kind](spark, servers, topic, Path(directory))
