"""Tables that `goqueue pipeline serve` keeps, to jobs that read archives: they have the same columns then."""

import re
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from goqueue.spark.errors import SparkError
from goqueue.spark.jobs.running import EXIT_USAGE, JobFailed

CATALOG = "catalog.db"
_LETTERS = {"_value", "_reason"}
"""What a table of dead letters has beside the columns that all have."""
_RENAMED = {"_key": "key", "_partition": "partition", "_offset": "offset", "_timestamp": "timestamp"}
_ORDER = ("key", "value", "partition", "offset", "timestamp", "timestampType", "headers")
_EMPTY = (
    "key binary, value binary, partition int, offset bigint, timestamp timestamp, timestampType int,"
    " headers array<struct<key: string, value: binary>>"
)


def served_topics(root: str) -> list[str]:
    """Those that the service's own catalog has, in this directory. None, where it is no such directory."""
    path = Path(root.removeprefix("file://"))
    if not (path / CATALOG).exists():
        return []
    from goqueue.spark.iceberg.catalogs import own_catalog
    from goqueue.spark.iceberg.settings import NAMESPACE
    from goqueue.spark.iceberg.state import read_state

    catalog = own_catalog(path)
    states = (read_state(catalog.load_table(name).properties) for name in catalog.list_tables(NAMESPACE))
    return sorted({state.topic for state in states if state is not None})


def is_served(root: str, topic: str) -> bool:
    path = Path(root.removeprefix("file://"))
    if not (path / CATALOG).exists():
        return False
    from goqueue.spark.iceberg.catalogs import own_catalog
    from goqueue.spark.iceberg.settings import NAMESPACE

    return own_catalog(path).table_exists((NAMESPACE, _name(topic)))


def mode_of(root: str, topic: str) -> str:
    """How its rows were put into the table; empty: none were, or a version before did it."""
    from goqueue.spark.iceberg.catalogs import own_catalog
    from goqueue.spark.iceberg.settings import NAMESPACE
    from goqueue.spark.iceberg.state import read_state

    table = own_catalog(Path(root.removeprefix("file://"))).load_table((NAMESPACE, _name(topic)))
    state = read_state(table.properties)
    return "" if state is None else state.mode


def _name(topic: str) -> str:
    return re.sub(r"\W", "_", topic, flags=re.ASCII)


class ServedTable:
    """Read alone: who writes it is the service. Its dead letters are a table too, by their name."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        root, _, name = path.rpartition("/topic=")
        self._spark = spark
        self._root = Path(root.removeprefix("file:"))
        self._name = _name(name)

    def check(self) -> None:
        return

    def exists(self) -> bool:
        return True

    def write(self, rows: DataFrame, query: str, number: int) -> bool:  # noqa: ARG002
        raise JobFailed("goqueue pipeline serve keeps this table: an archive goes to another directory", EXIT_USAGE)

    def read(self) -> DataFrame:
        """All that it has now. Its files are read as they are: none of them has rows that were deleted."""
        from goqueue.spark.iceberg.catalogs import own_catalog
        from goqueue.spark.iceberg.columns import OWN
        from goqueue.spark.iceberg.settings import NAMESPACE

        tasks = list(own_catalog(self._root).load_table((NAMESPACE, self._name)).scan().plan_files())
        if any(task.delete_files for task in tasks):
            raise SparkError(f"table {self._name} has files of deletes, which nobody here writes: compact it first")
        if not tasks:
            return self._spark.createDataFrame([], _EMPTY)
        rows = self._spark.read.option("mergeSchema", "true").parquet(*(task.file.file_path for task in tasks))
        fields = [name for name in rows.columns if name not in OWN.names]
        if set(fields) == _LETTERS:
            column = f.col("_value")
        elif fields == ["value"]:  # a schema may have such a field among others
            column = f.col("value")
        else:
            column = f.struct(*(f.col(f"`{name}`") for name in fields))
        own = {new: f.col(name) for name, new in _RENAMED.items()}
        kept = own | {"value": column, "timestampType": f.lit(0), "headers": f.coalesce("_headers", f.array())}
        return rows.select(*(kept[name].alias(name) for name in _ORDER))

    def stream(self, files_per_trigger: int) -> DataFrame:  # noqa: ARG002
        raise JobFailed("a table of goqueue pipeline serve is read as a batch: use restore or backfill", EXIT_USAGE)
