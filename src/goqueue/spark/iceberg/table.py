"""The table of one topic, as the driver keeps it: each micro-batch becomes one commit, however often it is repeated.

A commit, step by step; what a kill -9 between two steps leaves is done again or recognised, never there twice:

1. The table is loaded. If its state says that it has this batch, nothing is read.
2. Columns that the schema of the value has got since are added, in the transaction of step 4.
3. Executors write files under names that nobody else uses, without the rows that the table has.
4. One transaction: the columns, the files and the new state; one swap in the catalog.
5. If somebody else was faster, or nobody knows what became of it: from step 1 on, with the same files if they fit.
6. Files of dead letters, which the state names, are added to their table. Then Spark writes its checkpoint.
"""

import random
import threading
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec
import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyspark.sql import DataFrame, SparkSession

from goqueue.spark.errors import SparkError
from goqueue.spark.formats.plan import Decoding, fields_of, make_format, subjects_of
from goqueue.spark.formats.registry import Registry
from goqueue.spark.iceberg.catalogs import Catalogs
from goqueue.spark.iceberg.columns import DEAD, OWN, VALUE, Named, iceberg_schema, named, renamed, spec_of
from goqueue.spark.iceberg.files import as_bytes, from_bytes, target_of
from goqueue.spark.iceberg.rows import RESULT_DDL, Plan, Told, read_told, write_rows
from goqueue.spark.iceberg.settings import DEAD_LETTERS, NAMESPACE, UPSERT, TableSettings
from goqueue.spark.iceberg.state import State, read_state, told, written
from goqueue.spark.iceberg.tidy import FILES_MIN, Tidied, tidied
from goqueue.spark.iceberg.upsert import upserted
from goqueue.spark.options import Part
from goqueue.spark.versions import arrow_schema
from goqueue.spark.where import Where

TRIES_MAX = 8
PAUSE_S_MAX = 2.0
PROPERTIES = {
    "format-version": "2",
    # PyIceberg would put a batch that lost a race on top of the one that won it: the same rows twice. We look first.
    "commit.retry.num-retries": "0",
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.parquet.compression-codec": "zstd",
}


class Counts(NamedTuple):
    """What a table has got since the service started."""

    rows: int = 0
    bad: int = 0
    files: int = 0
    commits: int = 0

    def plus(self, other: "Counts") -> "Counts":
        return Counts(*(mine + its for mine, its in zip(self, other)))


class Grounds(NamedTuple):
    """What files are written for: they fit no other table."""

    schema: Schema
    offsets: dict[int, int]
    snapshot: int | None
    """Where rows of other files are replaced."""


class Files(NamedTuple):
    """What the executors have written."""

    data: list[DataFile]
    dead: tuple[str, ...]
    ends: dict[int, int]
    counts: Counts
    gone: list[DataFile]
    """Of the table, whose rows are in `data`."""
    grounds: Grounds


class TopicTable:
    def __init__(self, settings: TableSettings, catalogs: Catalogs, server: Where) -> None:
        self.settings = settings
        self.counts, self.tidied = Counts(), Tidied()
        self.positions: dict[int, int] = {}
        """By partition: the first offset that is not in the table, as far as is known here."""
        self.lock = threading.Lock()
        """Whoever commits to the table in this process holds it: of two that commit at once, one has to begin again."""
        self._catalogs = catalogs
        self._server = server

    @property
    def catalog(self) -> Catalog:
        return self._catalogs.open(self.settings.catalog)

    # -- the tables

    def load(self, decoding: Decoding | None) -> tuple[Table, State]:
        """Made if there is none. SparkError: it belongs to another topic."""
        table = self._found(self.settings.name, self._columns(None, decoding)[1])
        state = state_of(table, self.settings)
        if (state.topic, state.topic_id) != (self.settings.topic, self.settings.topic_id):
            raise SparkError(
                f"table {NAMESPACE}.{self.settings.name} has the rows of topic {state.topic} with id {state.topic_id},"
                f" not of {self.settings.topic} with id {self.settings.topic_id}: rename or drop it, then a new one is"
                " made"
            )
        self.positions = state.positions
        return table, state

    def open(self) -> None:
        """Made if there is none, with what a killed run has left open. SparkError: it cannot be."""
        with self.lock:
            self._settle(self.load(self.decoding())[1])

    def _found(self, name: str, columns: pa.Schema) -> Table:
        identifier = (NAMESPACE, name)
        try:
            return self.catalog.load_table(identifier)
        except NoSuchTableError:
            pass
        schema = iceberg_schema(columns)
        is_dead = name.endswith(DEAD_LETTERS)
        spec = spec_of(() if is_dead else self.settings.partition, schema, self.settings.topic)
        first = State(topic=self.settings.topic, topic_id=self.settings.topic_id)
        properties = PROPERTIES | written(first)
        try:
            return self.catalog.create_table(identifier, schema=schema, partition_spec=spec, properties=properties)
        except TableAlreadyExistsError:
            return self.catalog.load_table(identifier)

    def dead_letters(self) -> Table:
        return self._found(f"{self.settings.name}{DEAD_LETTERS}", DEAD)

    def tidy(self, spark: SparkSession, files_min: int = FILES_MIN) -> None:
        """Small files, old snapshots, rows and files: of both tables."""
        with self.lock:
            table, state = self.load(self.decoding())
            done = tidied(spark, table, self.settings.retention_ms, files_min=files_min)
            if self.catalog.table_exists((NAMESPACE, f"{self.settings.name}{DEAD_LETTERS}")):
                letters = self.dead_letters()
                done = done.plus(tidied(spark, letters, self.settings.retention_ms, state.dead, files_min))
            self.tidied = self.tidied.plus(done)

    # -- a micro-batch

    def write(self, batch: DataFrame, query: str, number: int) -> None:
        """For foreachBatch."""
        with self.lock:
            files: Files | None = None
            for is_last in tries():
                decoding = self.decoding()
                table, state = self.load(decoding)
                self._settle(state)
                if state.has(query, number):
                    return
                transaction = table.transaction()
                plan = self._planned(table, transaction, state, decoding)
                grounds = self._grounds(transaction, plan)
                if files is None or files.grounds != grounds:
                    files = self._written(batch, plan, grounds, transaction)
                if not files.ends:
                    return  # all of it is in the table, or there was nothing
                after = state.after(query, number, files.ends, files.dead)
                try:
                    commit(transaction, files, after)
                except Exception:  # whatever became of it, the table tells
                    if is_last:
                        raise
                    continue
                self.counts, self.positions = self.counts.plus(files.counts), after.positions
                self._settle(after)
                return

    def _planned(self, table: Table, transaction: Transaction, state: State, decoding: Decoding | None) -> Plan:
        names = self._evolve(transaction, decoding)
        dead = None
        if decoding is not None or self._replaces:
            letters = self.dead_letters()
            dead = target_of(letters, letters.metadata)
        there = [as_bytes(task.file) for task in table.scan().plan_files()] if self._replaces else []
        target = target_of(table, transaction.table_metadata)
        return Plan(target, dead, state.positions, decoding, names, there)

    @property
    def _replaces(self) -> bool:
        return self.settings.mode == UPSERT

    def _grounds(self, transaction: Transaction, plan: Plan) -> Grounds:
        metadata = transaction.table_metadata
        return Grounds(metadata.schema(), dict(plan.offsets), metadata.current_snapshot_id if self._replaces else None)

    def _written(self, batch: DataFrame, plan: Plan, grounds: Grounds, transaction: Transaction) -> Files:
        """By executors. What a task wrote that was tried again is left to the removal of orphans."""
        write = upserted if self._replaces else appended
        return gathered(read_told(write(batch, plan)), plan, grounds, transaction.table_metadata.default_spec_id)

    def decoding(self) -> Decoding | None:
        """By the latest schema that the registry has now. SparkError: it has none."""
        if not self.settings.is_typed:
            return None
        topic = self.settings.topic
        subjects = subjects_of(topic, self.settings.subject)
        with Registry(self._server) as registry:
            latest = registry.latest(subjects)
        if latest is None:
            raise SparkError(f"table.schema of {topic} is registry, which has no subject {' or '.join(subjects)} yet")
        kind = latest.kind.lower()
        fields = fields_of(make_format(kind, latest).shape)
        return Decoding(
            self._server, kind, self.settings.subject, {topic: latest}, fields, "permissive", None, Part.STREAM
        )

    def _columns(self, table: Schema | None, decoding: Decoding | None) -> tuple[list[Named], pa.Schema]:
        """Of the value, and all columns that the table needs."""
        if decoding is None:
            return [], _joined(OWN, VALUE)
        fields = arrow_schema(decoding.fields)
        names = named(table or iceberg_schema(OWN), fields)
        return names, _joined(OWN, renamed(fields, names))

    def _evolve(self, transaction: Transaction, decoding: Decoding | None) -> list[Named]:
        names, columns = self._columns(transaction.table_metadata.schema(), decoding)
        with transaction.update_schema() as change:
            change.union_by_name(columns)
        return names

    def _settle(self, state: State) -> None:
        """Adds the files of dead letters that the state names, unless they are there."""
        if not state.dead:
            return
        done = msgspec.structs.replace(state, dead=(), offsets={})
        for is_last in tries():
            letters = self.dead_letters()
            known = state_of(letters, self.settings)
            if (known.query, known.batch) == (state.query, state.batch):
                return
            try:
                with letters.transaction() as transaction:
                    transaction.add_files(list(state.dead), told(done), check_duplicate_files=False)
                    transaction.set_properties(written(done))
            except Exception:  # as above
                if is_last:
                    raise
                continue
            return


def tries() -> Iterator[bool]:
    """Whether it is the last one. Between two of them, writers that are in each other's way are spread."""
    for number in range(TRIES_MAX):
        yield number == TRIES_MAX - 1
        time.sleep(random.uniform(0, min(PAUSE_S_MAX, 0.05 * 2**number)))  # noqa: S311  nobody must guess it


def appended(batch: DataFrame, plan: Plan) -> DataFrame:
    return batch.mapInArrow(partial(write_rows, plan=plan), RESULT_DDL)


def gathered(results: Iterable[Told], plan: Plan, grounds: Grounds, spec_id: int) -> Files:
    data, dead, gone = [], [], set()
    seen: list[tuple[int, tuple[int, int, int]]] = []
    for one in results:
        if one.data:
            data.append(from_bytes(one.data, spec_id))
        if one.dead:
            dead.append(one.dead)
        if one.gone:
            gone.add(one.gone)
        seen += one.seen.items()
    ends: dict[int, int] = {}
    for partition, met in seen:
        ends[partition] = max(ends.get(partition, 0), met[0])
    rows, bad = (sum(met[at] for _, met in seen) for at in (1, 2))
    before = [file for file in (from_bytes(each, spec_id) for each in plan.files) if file.file_path in gone]
    return Files(data, tuple(sorted(dead)), ends, Counts(rows - bad, bad, len(data), 1), before, grounds)


def commit(transaction: Transaction, files: Files, state: State) -> None:
    """One swap in the catalog: rows and state are there together, or neither is."""
    snapshot = transaction.update_snapshot(snapshot_properties=told(state))
    # A snapshot also where no row is left: a commit without one is not refused when somebody else was faster.
    with snapshot.overwrite() if files.gone else snapshot.fast_append() as change:
        for file in files.gone:
            change.delete_data_file(file)
        for file in files.data:
            change.append_data_file(file)
    transaction.set_properties(written(state))
    transaction.commit_transaction()


def state_of(table: Table, settings: TableSettings) -> State:
    """SparkError: nobody of ours has made it."""
    found = read_state(table.properties)
    if found is None:
        raise SparkError(f"table {NAMESPACE}.{settings.name} was not made by this service: rename it, then one is made")
    return found


def _joined(*schemas: pa.Schema) -> pa.Schema:
    return pa.schema([field for schema in schemas for field in schema])
