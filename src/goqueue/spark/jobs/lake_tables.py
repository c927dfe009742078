"""How the archive of one topic lies on disk: as plain Parquet, or as a table of Delta or Iceberg.

Each writes a batch of a streaming query so that the same batch, when it comes again after a crash, is there once.
"""

from hashlib import sha256
from typing import Protocol

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from goqueue.spark.jobs.running import EXIT_USAGE, JobFailed

BATCH, DATE = "batch", "date"
QUERY_CHARS = 12

_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_PACKAGES: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "delta": (
        "io.delta:delta-spark_{}_2.13",
        {"4.0": "4.4.0", "4.1": "4.4.0", "4.2": "4.4.0"},
        {
            "spark.sql.extensions": _DELTA_EXTENSION,
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    "iceberg": ("org.apache.iceberg:iceberg-spark-runtime-{}_2.13", {"4.0": "1.11.0", "4.1": "1.12.0"}, {}),
}
"""Each Spark has packages of its own, and the newest often has none yet: their name, their version by Spark, and what
else Spark is to be told when it starts."""
_QUERY, _NUMBER = "goqueue-query", "goqueue-batch"
"""In the summary of an Iceberg snapshot: which batch it is."""


class Table(Protocol):
    """Of one topic. `path` is its directory, with the scheme of its file system before it."""

    def check(self) -> None:
        """JobFailed: this Spark cannot, and what to do. Its own words about a missing package help nobody."""

    def exists(self) -> bool: ...

    def write(self, rows: DataFrame, query: str, number: int) -> bool:
        """False: this batch is there already, and nothing was read of `rows`."""

    def read(self) -> DataFrame: ...

    def stream(self, files_per_trigger: int) -> DataFrame:
        """What is there and what will come, the oldest first."""


class ParquetTable:
    """`date=DAY/batch=QUERY-NUMBER/*.parquet`: a batch has directories of its own, which it overwrites."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path

    def check(self) -> None:
        return

    def exists(self) -> bool:
        return True  # as its directory does: it is nothing more

    def write(self, rows: DataFrame, query: str, number: int) -> bool:
        name = f"{query[:QUERY_CHARS]}-{number:09d}"
        writer = rows.withColumn(BATCH, f.lit(name)).write.mode("overwrite")
        writer.option("partitionOverwriteMode", "dynamic").partitionBy(DATE, BATCH).parquet(self._path)
        return True

    def read(self) -> DataFrame:
        rows = self._spark.read.parquet(self._path)
        if has_typed_values(rows):  # whose fields may have become more from one day to the next
            return self._spark.read.option("mergeSchema", "true").parquet(self._path)
        return rows

    def stream(self, files_per_trigger: int) -> DataFrame:
        found = self._spark.read.parquet(self._path).schema
        reader = self._spark.readStream.schema(found).option("maxFilesPerTrigger", files_per_trigger)
        return reader.parquet(self._path)


class DeltaTable:
    """Delta remembers the last number of each query itself, and drops what comes again."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path

    def check(self) -> None:
        extensions = self._spark.conf.get("spark.sql.extensions", "") or ""
        if not _has_class(self._spark, _DELTA_EXTENSION) or _DELTA_EXTENSION not in extensions:
            raise JobFailed(advice("delta", self._spark.version), EXIT_USAGE)

    def exists(self) -> bool:
        delta = self._spark.sparkContext._jvm.io.delta.tables.DeltaTable  # type: ignore[union-attr]  # noqa: SLF001
        return bool(delta.isDeltaTable(self._spark._jsparkSession, self._path))  # noqa: SLF001  no other way from Python

    def write(self, rows: DataFrame, query: str, number: int) -> bool:
        if not self.exists():  # first without data, so that a run that is killed leaves a table of Delta or nothing
            _none_of(rows).write.format("delta").partitionBy(DATE).save(self._path)
        before = self._version()
        writer = rows.write.format("delta").mode("append").option("mergeSchema", "true")
        writer.option("txnAppId", query).option("txnVersion", number).save(self._path)
        return self._version() != before

    def read(self) -> DataFrame:
        return self._spark.read.format("delta").load(self._path)

    def stream(self, files_per_trigger: int) -> DataFrame:
        reader = self._spark.readStream.format("delta").option("maxFilesPerTrigger", files_per_trigger)
        return reader.load(self._path)

    def _version(self) -> int:
        delta = self._spark.sparkContext._jvm.io.delta.tables.DeltaTable  # type: ignore[union-attr]  # noqa: SLF001
        table = delta.forPath(self._spark._jsparkSession, self._path)  # noqa: SLF001
        (last,) = DataFrame(table.history(1), self._spark).select("version").collect()
        return int(last["version"])


class IcebergTable:
    """A table of a Hadoop catalog: all of it is in its directory. Its snapshots say which batches it has."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        root, _, name = path.rpartition("/")
        catalog = f"goqueue_{sha256(root.encode()).hexdigest()[:QUERY_CHARS]}"
        self._settings = {
            f"spark.sql.catalog.{catalog}": _ICEBERG_CATALOG,
            f"spark.sql.catalog.{catalog}.type": "hadoop",
            f"spark.sql.catalog.{catalog}.warehouse": root,
            f"spark.sql.catalog.{catalog}.cache-enabled": "false",  # other processes write too
        }
        self._name = f"{catalog}.`{name}`"

    def check(self) -> None:
        if not _has_class(self._spark, _ICEBERG_CATALOG):
            raise JobFailed(advice("iceberg", self._spark.version), EXIT_USAGE)
        for key, value in self._settings.items():
            self._spark.conf.set(key, value)

    def exists(self) -> bool:
        return self._spark.catalog.tableExists(self._name)

    def write(self, rows: DataFrame, query: str, number: int) -> bool:
        if not self.exists():
            empty = _none_of(rows).writeTo(self._name).partitionedBy(f.col(DATE))
            empty.tableProperty("write.spark.accept-any-schema", "true").create()
        last = self._last_number(query)
        if last is not None and last >= number:
            return False
        if last is None and number > 0:
            rows = self._missing(rows)
        writer = rows.writeTo(self._name).option("mergeSchema", "true")
        noted = writer.option(f"snapshot-property.{_QUERY}", query).option(f"snapshot-property.{_NUMBER}", str(number))
        noted.append()
        return True

    def read(self) -> DataFrame:
        return self._spark.table(self._name)

    def stream(self, files_per_trigger: int) -> DataFrame:
        if self._snapshots().where("parent_id IS NULL").isEmpty():
            raise JobFailed(
                "snapshots of this Iceberg table were expired, and a stream of it would leave out what they added:"
                " read it as a batch, with lake_then_tail()",
                EXIT_USAGE,
            )
        reader = self._spark.readStream.option("streaming-max-files-per-micro-batch", files_per_trigger)
        return reader.table(self._name)

    def _snapshots(self) -> DataFrame:
        return self._spark.table(f"{self._name}.snapshots")

    def _last_number(self, query: str) -> int | None:
        """None: it has written nothing, or its snapshots were expired."""
        numbers = self._snapshots().where(f.col("summary")[_QUERY] == query)
        last = numbers.agg(f.max(f.col("summary")[_NUMBER].cast("bigint"))).first()
        return None if last is None else last[0]

    def _missing(self, rows: DataFrame) -> DataFrame:
        """Those that lie behind what the table has of their partition: batches come in the order of offsets."""
        ends = self.read().groupBy("partition").agg(f.max("offset").alias("last_offset"))
        known = rows.join(f.broadcast(ends), "partition", "left")
        return known.where("last_offset IS NULL OR offset > last_offset").select(*rows.columns)


TABLES: dict[str, type[ParquetTable | DeltaTable | IcebergTable]] = {
    "parquet": ParquetTable,
    "delta": DeltaTable,
    "iceberg": IcebergTable,
}


def has_typed_values(rows: DataFrame) -> bool:
    return dict(rows.dtypes)["value"] != "binary"


def settings_of(format: str, spark: str) -> dict[str, str]:
    """What a Spark of this version is to be started with for tables of this format."""
    package, versions, more = _PACKAGES[format]
    line = _line(spark)
    return {"spark.jars.packages": f"{package.format(line)}:{versions.get(line, 'VERSION')}", **more}


def advice(format: str, spark: str) -> str:
    """To whom has started a Spark without them."""
    _, versions, _ = _PACKAGES[format]
    name = format.capitalize()
    add = " ".join(f"--conf {key}={value}" for key, value in settings_of(format, spark).items())
    if _line(spark) in versions:
        return f"this Spark has no {name}: add it with {add}, or use --format parquet"
    return (
        f"this Spark has no {name}, and for {spark} we know of none, only for {', '.join(versions)}: use one of those,"
        f" or --format parquet; should there be one by now, add it with {add}"
    )


def _line(spark: str) -> str:
    """4.2 of 4.2.1."""
    return ".".join(spark.split(".")[:2])


def _none_of(rows: DataFrame) -> DataFrame:
    """Its columns without a row. Not by a limit: `rows` are counted, once, by what is done with them first."""
    return rows.sparkSession.createDataFrame([], rows.schema)


def _has_class(spark: SparkSession, name: str) -> bool:
    jvm = spark.sparkContext._jvm  # noqa: SLF001  pyspark has no other way to ask
    assert jvm is not None
    try:
        jvm.java.lang.Class.forName(name, False, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    except Py4JJavaError:
        return False
    return True
