"""The lake: `topic=NAME/date=DAY/batch=QUERY-NUMBER/*.parquet`, where a batch that comes again replaces itself.

A batch of a streaming query has the same rows whenever it is repeated, and a directory of its own for every day that it
touches. So a run that was killed in the middle of a batch leaves at most a part of it behind, which the next run
overwrites. No reader needs a log of ours to see the right files: any tool that reads Parquet does.
"""

import json
import re
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from goqueue.spark.errors import SparkError
from goqueue.spark.jobs.running import EXIT_NOT_FOUND, EXIT_USAGE, JobFailed

OWN = "_goqueue"
"""What begins with an underscore is no data to any reader of Parquet."""
BATCH, DATE = "batch", "date"
QUERY_CHARS = 12
STAGING = ".spark-staging-"
EARLIEST = -2
OWN_COLUMNS = (
    "key", "topic", "partition", "offset", "timestamp", "timestampType", "headers", "_error", "_value"
)  # fmt: skip
"""Of a read whose values are decoded: all but the fields of the value."""

_DELTA = "io.delta.sql.DeltaSparkSessionExtension"


class Lake:
    def __init__(self, spark: SparkSession, root: str, format: str = "parquet") -> None:
        self.spark = spark
        self.root = root.rstrip("/") or root
        self.format = format

    def check_format(self) -> None:
        """Before anything is read: the words of Spark about a missing package help nobody."""
        if self.format == "parquet":
            return
        try:
            self._jvm.java.lang.Class.forName(_DELTA, False, self._jvm.Thread.currentThread().getContextClassLoader())
        except Py4JJavaError:
            raise JobFailed(
                "this Spark has no Delta: add it with --conf spark.jars.packages=io.delta:delta-spark_2.13:VERSION"
                f" --conf spark.sql.extensions={_DELTA}, or use --format parquet",
                EXIT_USAGE,
            ) from None

    # -- places

    def topic_path(self, topic: str) -> str:
        return f"{self.root}/topic={topic}"

    def own_path(self, *names: str) -> str:
        return "/".join((self.root, OWN, *names))

    @property
    def _jvm(self) -> Any:
        return self.spark.sparkContext._jvm  # noqa: SLF001  pyspark has no other way to ask a file system

    def _place(self, path: str) -> tuple[Any, Any]:
        place = self._jvm.org.apache.hadoop.fs.Path(path)
        return place.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration()), place  # noqa: SLF001

    def exists(self, path: str) -> bool:
        files, place = self._place(path)
        return bool(files.exists(place))

    def topics(self) -> list[str]:
        files, place = self._place(self.root)
        if not files.exists(place):
            return []
        names = (entry.getPath().getName() for entry in files.listStatus(place))
        return sorted(name.removeprefix("topic=") for name in names if name.startswith("topic="))

    def sweep(self, topic: str) -> None:
        """Throw away what a killed run was about to write. No reader sees it, but it takes room."""
        files, place = self._place(self.topic_path(topic))
        for entry in files.listStatus(place) if files.exists(place) else ():
            if entry.getPath().getName().startswith(STAGING):
                files.delete(entry.getPath(), True)

    def read_text(self, path: str) -> str | None:
        files, place = self._place(path)
        if not files.exists(place):
            return None
        return "\n".join(row.value for row in self.spark.read.text(path, wholetext=True).collect())

    def write_text(self, path: str, text: str) -> None:
        files, place = self._place(path)
        stream = files.create(place, True)
        stream.write(bytearray(text.encode()))
        stream.close()

    def delete(self, path: str) -> None:
        files, place = self._place(path)
        files.delete(place, True)

    # -- writing

    def write(self, batch: DataFrame, topic: str, query: str, number: int) -> None:
        rows = batch.withColumn(DATE, f.to_date("timestamp"))
        if self.format == "delta":
            # Delta remembers the last number of each application itself, and drops what comes again.
            writer = rows.write.format("delta").mode("append").option("txnAppId", query).option("txnVersion", number)
            writer.partitionBy("topic", DATE).save(self.root)
            return
        name = f"{query[:QUERY_CHARS]}-{number:09d}"
        writer = rows.drop("topic").withColumn(BATCH, f.lit(name)).write.mode("overwrite")
        writer.option("partitionOverwriteMode", "dynamic").partitionBy(DATE, BATCH).parquet(self.topic_path(topic))

    # -- reading

    def read(self, topic: str) -> DataFrame:
        """All that is archived of a topic, with the columns of a read of the topic itself."""
        if self.format != "parquet":
            return self.spark.read.format(self.format).load(self.root).where(f.col("topic") == topic).drop(DATE)
        self.need(topic)
        rows = self.spark.read.parquet(self.topic_path(topic))
        if has_typed_values(rows):  # whose fields may have become more from one day to the next
            rows = self.spark.read.option("mergeSchema", "true").parquet(self.topic_path(topic))
        return self._whole(rows, topic)

    def stream(self, topic: str, files_per_trigger: int) -> DataFrame:
        """The same as a stream of what is there and what will come, the oldest files first."""
        self.need(topic)
        found = self.spark.read.parquet(self.topic_path(topic)).schema
        reader = self.spark.readStream.schema(found).option("maxFilesPerTrigger", files_per_trigger)
        return self._whole(reader.parquet(self.topic_path(topic)), topic)

    def need(self, topic: str) -> None:
        if not self.exists(self.topic_path(topic)):
            has = ", ".join(self.topics()) or "nothing"
            raise JobFailed(f"there is no topic {topic!r} in {self.root}, which has {has}", EXIT_NOT_FOUND)

    def _whole(self, rows: DataFrame, topic: str) -> DataFrame:
        """The name of a topic is no column of its files: read from a directory's name, 007 would become 7."""
        names = [name for name in rows.columns if name not in (DATE, BATCH)]
        at = names.index("partition")
        return rows.select(*names[:at], f.lit(topic).alias("topic"), *names[at:])

    def positions(self, topic: str) -> dict[int, int]:
        """The first offset of each partition that is not archived."""
        if not self.exists(self.topic_path(topic) if self.format == "parquet" else f"{self.root}/_delta_log"):
            return {}
        ends = self.read(topic).groupBy("partition").agg((f.max("offset") + 1).alias("next"))
        return {row["partition"]: row["next"] for row in ends.collect()}


def has_typed_values(rows: DataFrame) -> bool:
    return dict(rows.dtypes)["value"] != "binary"


def as_archived(rows: DataFrame) -> DataFrame:
    """Decoded values are one column `value` again, so that a schema may have fields with any names: `offset`, `date`.

    A message's own column has underscores before its name where the schema has a field of that name.
    """
    own = {}
    for name in OWN_COLUMNS:
        alike = [each for each in rows.columns if each.lstrip("_") == name.lstrip("_") and len(each) >= len(name)]
        own[name] = alike[-1]  # the fields come first
    fields = [name for name in rows.columns if name not in own.values()]
    value = f.col("value") if fields == ["value"] else f.struct(*(f.col(f"`{name}`") for name in fields))
    others = [f.col(f"`{found}`").alias(name.replace("_value", "bad_value").lstrip("_")) for name, found in own.items()]
    return rows.select(value.alias("value"), *others)


def starting_offsets(topic: str, partitions: int, positions: dict[int, int]) -> str:
    """The option startingOffsets: where each partition goes on, those that are not known from their beginning."""
    return json.dumps({topic: {str(number): positions.get(number, EARLIEST) for number in range(partitions)}})


def query_id_of(spark: SparkSession) -> str:
    """Of the streaming query whose batch this thread is writing: the same after every restart from its checkpoint."""
    found = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not found or not re.fullmatch(r"[0-9a-f-]{36}", found):
        raise SparkError("this is no batch of a streaming query")
    return str(found).replace("-", "")
