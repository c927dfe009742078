"""The lake: a directory `topic=NAME` for each topic, which is Parquet or a table, and beside them what jobs remember.

A batch of a streaming query has the same rows whenever it is repeated, and each kind of table sees to it that it has
them once.
"""

import json
import re
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from goqueue.spark.errors import SparkError
from goqueue.spark.jobs.lake_tables import BATCH, DATE, TABLES, Table, has_typed_values
from goqueue.spark.jobs.running import EXIT_NOT_FOUND, EXIT_USAGE, JobFailed
from goqueue.spark.jobs.served_tables import ServedTable, is_served, served_topics

PARQUET, SERVED = "parquet", "served"
OWN = "_goqueue"
"""What begins with an underscore is no data to any reader of Parquet."""
STAGING = ".spark-staging-"
EARLIEST = -2
OWN_COLUMNS = (
    "key", "topic", "partition", "offset", "timestamp", "timestampType", "headers", "_error", "_value"
)  # fmt: skip
"""Of a read whose values are decoded: all but the fields of the value."""


class Lake:
    def __init__(self, spark: SparkSession, root: str, format: str | None = None) -> None:
        """`format`: of what is written anew; None: as it is, or Parquet. JobFailed: the session cannot reach files."""
        if type(spark).__module__.startswith("pyspark.sql.connect"):
            raise JobFailed(
                "an archive is reached by Spark's JVM, which a program of Spark Connect does not have: give a --master"
                " that is not sc://...",
                EXIT_USAGE,
            )
        self.spark = spark
        self.root = root.rstrip("/") or root
        self.format = format

    def table(self, topic: str, spark: SparkSession | None = None) -> Table:
        """JobFailed: this Spark cannot read such a table, or it has another format than was asked for."""
        found = self._found(topic)
        if found and self.format and found != self.format:
            raise JobFailed(f"the archive of {topic} in {self.root} is {found}, not {self.format}", EXIT_USAGE)
        files, place = self._place(self.topic_path(topic))
        kind = ServedTable if found == SERVED else TABLES[found or self.format or PARQUET]
        table: Table = kind(spark or self.spark, files.makeQualified(place).toString())
        table.check()
        return table

    def _found(self, topic: str) -> str | None:
        path = self.topic_path(topic)
        if self.exists(f"{path}/_delta_log"):
            return "delta"
        if self.exists(f"{path}/metadata"):
            return "iceberg"
        files, place = self._place(f"{path}/{DATE}=*")  # the others make their log before they write
        if files.globStatus(place):
            return PARQUET
        return SERVED if is_served(self.root, topic) else None

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
        archived = [name.removeprefix("topic=") for name in names if name.startswith("topic=")]
        return sorted({*archived, *served_topics(self.root)})

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
        """Whole or not at all: whoever is killed meanwhile finds what was there before."""
        files, place = self._place(path)
        _, new = self._place(f"{path}.new")
        stream = files.create(new, True)
        stream.write(bytearray(text.encode()))
        stream.close()
        rename = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
        gateway: Any = self.spark.sparkContext._gateway  # noqa: SLF001
        how = gateway.new_array(rename, 1)
        how[0] = rename.OVERWRITE
        settings = self.spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(files.getUri(), settings).rename(new, place, how)

    def delete(self, path: str) -> None:
        files, place = self._place(path)
        files.delete(place, True)

    # -- writing

    def write(self, batch: DataFrame, topic: str, query: str, number: int) -> bool:
        """False: this batch is there already."""
        rows = batch.drop("topic").withColumn(DATE, f.to_date("timestamp"))
        return self.table(topic, batch.sparkSession).write(rows, query, number)

    # -- reading

    def read(self, topic: str) -> DataFrame:
        """All that is archived of a topic, with the columns of a read of the topic itself."""
        self.need(topic)
        return self._whole(self.table(topic).read(), topic)

    def stream(self, topic: str, files_per_trigger: int) -> DataFrame:
        """The same as a stream of what is there and what will come, the oldest files first."""
        self.need(topic)
        return self._whole(self.table(topic).stream(files_per_trigger), topic)

    def need(self, topic: str) -> None:
        if self._found(topic) is None:
            has = ", ".join(self.topics()) or "nothing"
            raise JobFailed(f"there is no topic {topic!r} in {self.root}, which has {has}", EXIT_NOT_FOUND)

    def is_served(self, topic: str) -> bool:
        """Whether it is a table that `goqueue pipeline serve` keeps."""
        return self._found(topic) == SERVED

    def check_bytes(self, topic: str) -> None:
        """JobFailed: values were decoded, and those that the topic had are not kept."""
        if not has_typed_values(self.read(topic)):
            return
        kept = (
            "this table has typed columns (table.schema=registry)"
            if self.is_served(topic)
            else "this archive holds typed values (--values)"
        )
        raise JobFailed(f"{kept}, not the bytes that the topic had", EXIT_USAGE)

    def _whole(self, rows: DataFrame, topic: str) -> DataFrame:
        """The name of a topic is no column of its files: read from a directory's name, 007 would become 7."""
        names = [name for name in rows.columns if name not in (DATE, BATCH)]
        at = names.index("partition")
        return rows.select(*names[:at], f.lit(topic).alias("topic"), *names[at:])

    def positions(self, topic: str) -> dict[int, int]:
        """The first offset of each partition that is not archived."""
        if self._found(topic) is None or not self.table(topic).exists():
            return {}
        ends = self.read(topic).groupBy("partition").agg((f.max("offset") + 1).alias("next"))
        return {row["partition"]: row["next"] for row in ends.collect()}


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
