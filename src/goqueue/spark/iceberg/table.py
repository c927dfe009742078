"""The table of one topic, as the driver keeps it: each micro-batch becomes one commit, however often it is repeated.

A commit, step by step; what a kill -9 between two steps leaves is done again or recognised, never there twice:

1. The table is loaded. Its state says how far it is, in offsets of the topic.
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
from pyiceberg.table.metadata import TableMetadata
from pyspark.sql import DataFrame, SparkSession

from goqueue.model.table_options import KEY
from goqueue.model.table_options import Part as Field
from goqueue.spark.errors import SparkError
from goqueue.spark.formats.plan import Decoding, fields_of, make_format, subjects_of
from goqueue.spark.formats.registry import Registry
from goqueue.spark.iceberg.catalogs import Catalogs
from goqueue.spark.iceberg.checkpoints import is_behind
from goqueue.spark.iceberg.columns import DEAD, OWN, VALUE, Named, held, iceberg_schema, named, renamed, spec_of
from goqueue.spark.iceberg.files import as_bytes, from_bytes, target_of
from goqueue.spark.iceberg.rows import RESULT_DDL, Plan, Told, read_told, write_rows
from goqueue.spark.iceberg.settings import APPEND, DEAD_LETTERS, NAMESPACE, UPSERT, TableSettings
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
        self.table_id = ""
        """Of the table that was opened: one that was dropped and made again has another."""
        self.reached: dict[int, int] = {}
        """How far the table was for its query. What lies before, the query does not read again."""
        self._catalogs = catalogs
        self._server = server

    @property
    def catalog(self) -> Catalog:
        return self._catalogs.open(self.settings.catalog)

    # -- the tables

    def load(self, decoding: Decoding | None) -> tuple[Table, State]:
        """Made if there is none. SparkError: it belongs to another topic, or cannot be kept in this mode."""
        name = self.settings.name
        table = self._found(name, self._columns(None, decoding)[1], self.settings.partition)
        state = owned_by(table, name, self.settings)
        if self._replaces:
            check_replaces(table, state, name)
        self.positions = state.positions
        return table, state

    def open(self) -> None:
        """Made if there is none, with what a killed run has left open. SparkError: it cannot be."""
        with self.lock:
            table, state = self.load(self.decoding())
            self.table_id = str(table.metadata.table_uuid)
            self.reached = state.positions
            self._settle(state)

    def _found(self, name: str, columns: pa.Schema, partition: tuple[Field, ...] = ()) -> Table:
        identifier = (NAMESPACE, name)
        try:
            return self.catalog.load_table(identifier)
        except NoSuchTableError:
            pass
        schema = iceberg_schema(columns)
        spec = spec_of(partition, schema, self.settings.topic)
        first = State(topic=self.settings.topic, topic_id=self.settings.topic_id, mode=self.settings.mode)
        properties = PROPERTIES | written(first)
        try:
            return self.catalog.create_table(identifier, schema=schema, partition_spec=spec, properties=properties)
        except TableAlreadyExistsError:
            return self.catalog.load_table(identifier)

    def dead_letters(self) -> Table:
        """Made if there is none. SparkError: it belongs to another topic."""
        name = f"{self.settings.name}{DEAD_LETTERS}"
        table = self._found(name, DEAD)
        owned_by(table, name, self.settings)
        return table

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
            meant: State | None = None
            for is_last in tries():
                decoding = self.decoding()
                table, state = self.load(decoding)
                if self.table_id and str(table.metadata.table_uuid) != self.table_id:
                    raise SparkError(
                        f"table {NAMESPACE}.{self.settings.name} was made anew: it is written from the start"
                    )
                if is_behind(state.positions, self.reached):
                    raise SparkError(
                        f"table {NAMESPACE}.{self.settings.name} was put back to an older state: it is written from"
                        " there"
                    )
                self.reached = state.positions
                self._settle(state)
                if files is not None and state == meant:  # it was committed, and the answer was lost
                    self.counts = self.counts.plus(files.counts)
                    return
                transaction = table.transaction()
                plan = self._planned(table, transaction, state, decoding)
                grounds = self._grounds(transaction, plan)
                if files is None or files.grounds != grounds:
                    files = self._written(batch, plan, grounds, transaction)
                if not files.ends:
                    return  # all of it is in the table, or there was nothing
                meant = state.after(query, number, files.ends, files.dead, self.settings.mode)
                try:
                    commit(transaction, files, meant)
                except Exception:  # whatever became of it, the table tells
                    if is_last:
                        raise
                    continue
                self.counts, self.positions = self.counts.plus(files.counts), meant.positions
                self.reached = meant.positions
                self._settle(meant)
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
        fields = held(fields_of(make_format(kind, latest).shape))
        return Decoding(
            self._server, kind, self.settings.subject, {topic: latest}, fields, "permissive", None, Part.STREAM
        )

    def _columns(self, table: TableMetadata | None, decoding: Decoding | None) -> tuple[list[Named], pa.Schema]:
        """Of the value, and all columns that the table needs."""
        fields = VALUE if decoding is None else arrow_schema(decoding.fields)
        names = named(iceberg_schema(OWN), fields) if table is None else named(table.schema(), fields, table.spec())
        return names, _joined(OWN, renamed(fields, names))

    def _evolve(self, transaction: Transaction, decoding: Decoding | None) -> list[Named]:
        names, columns = self._columns(transaction.table_metadata, decoding)
        with transaction.update_schema() as change:
            change.union_by_name(columns)
        return names

    def _settle(self, state: State) -> None:
        """Adds the files of dead letters that the state names, unless they are there."""
        if not state.dead:
            return
        done = msgspec.structs.replace(state, offsets={})
        for is_last in tries():
            letters = self.dead_letters()
            if owned_by(letters, letters.name()[-1], self.settings).has_letters_of(state):
                return
            # Whoever has thrown the table of dead letters away, and its files with it, does not want them back.
            files = [path for path in state.dead if letters.io.new_input(path).exists()]
            try:
                with letters.transaction() as transaction:
                    if files:
                        transaction.add_files(files, told(done), check_duplicate_files=False)
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


def owned_by(table: Table, name: str, settings: TableSettings) -> State:
    """SparkError: nobody of ours has made it, or it has the rows of another topic."""
    found = read_state(table.properties)
    if found is None:
        raise SparkError(f"table {NAMESPACE}.{name} was not made by this service: rename it, then one is made")
    if (found.topic, found.topic_id) != (settings.topic, settings.topic_id):
        raise SparkError(
            f"table {NAMESPACE}.{name} has the rows of topic {found.topic} with id {found.topic_id},"
            f" not of {settings.topic} with id {settings.topic_id}: rename or drop it, then a new one is made"
        )
    return found


def check_replaces(table: Table, state: State, name: str) -> None:
    """Of an upsert table. SparkError: it was made for another mode, and rows of a key would stay that are replaced."""
    anew = "rename or drop it, then a new one is made"
    schema = table.schema()
    by = [schema.find_column_name(field.source_id) or "" for field in table.spec().fields]
    others = [column for column in by if column != KEY]
    if others:
        raise SparkError(
            f"table {NAMESPACE}.{name} is divided by {others[0]}, and table.mode=upsert needs one that is divided by"
            f" {KEY} alone: {anew}"
        )
    if state.mode == APPEND and state.offsets:
        raise SparkError(f"table {NAMESPACE}.{name} has a row for each message, not for each key: {anew}")


def _joined(*schemas: pa.Schema) -> pa.Schema:
    return pa.schema([field for schema in schemas for field in schema])
