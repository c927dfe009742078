"""Files of a table, written by executors: rows are gathered by partition and written when they are many or the last.

What is written is told to the driver as bytes; the driver makes the entries of a manifest of them.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import load_file_io
from pyiceberg.io.pyarrow import ArrowScan, pyarrow_to_schema, write_file
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table import FileScanTask, Table, WriteTask
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.typedef import Record

from goqueue.spark.iceberg.projection import keep_nulls

keep_nulls()

GATHERED_BYTES_MAX = 128 * 1024 * 1024
"""Of one task: its largest partition is written then. As Arrow holds them; as Parquet they take a third or less."""
PARTITION, FORMAT, CONTENT = 3, 2, 0
"""Where these stand in a DataFile."""
NAME_BYTES_MAX = 200
"""Of a directory that is called by the value of a partition. File systems take 255."""
DECIMAL = "decimal"
Values = tuple[Any, ...]
"""Of the fields of a partition."""
Key = tuple[Values, pa.Schema]
"""What goes into one file: rows of one partition, with the same columns."""


class Target(NamedTuple):
    """A table, as an executor has to know it. Plain data, for a task's plan."""

    metadata: str
    properties: dict[str, str]
    """Of its file system: they may hold a login."""

    def opened(self) -> TableMetadata:
        return TableMetadataUtil.parse_raw(self.metadata)


def target_of(table: Table, metadata: TableMetadata) -> Target:
    """`metadata`: as it will be, with the columns that the commit adds. Without the snapshots: tasks need none."""
    bare = metadata.model_copy(
        update={"snapshots": [], "current_snapshot_id": None, "refs": {}, "snapshot_log": [], "metadata_log": []}
    )
    return Target(bare.model_dump_json(), dict(table.io.properties))


class Files:
    """Of one table and one task."""

    def __init__(self, target: Target) -> None:
        self._metadata = target.opened()
        self._io = load_file_io(target.properties, self._metadata.location)
        self._schema, self._spec = self._metadata.schema(), self._metadata.spec()
        self._id, self._numbers = uuid4(), count()
        self._gathered: dict[Key, list[pa.RecordBatch]] = {}
        self._bytes: dict[Key, int] = {}

    def add(self, rows: pa.RecordBatch) -> Iterator[DataFile]:
        if not rows.num_rows:
            return
        for values, some in divided(rows, self._metadata):
            key = values, some.schema
            self._gathered.setdefault(key, []).append(some)
            self._bytes[key] = self._bytes.get(key, 0) + some.nbytes
        while sum(self._bytes.values()) > GATHERED_BYTES_MAX:
            yield from self._write(max(self._bytes, key=self._bytes.__getitem__))

    def finish(self) -> Iterator[DataFile]:
        for key in list(self._gathered):
            yield from self._write(key)

    def _write(self, key: Key) -> Iterator[DataFile]:
        rows, (values, columns) = self._gathered.pop(key), key
        del self._bytes[key]
        schema = pyarrow_to_schema(columns, name_mapping=self._schema.name_mapping, format_version=2)
        fields = [PartitionFieldValue(field, value) for field, value in zip(self._spec.fields, values)]
        place = _Place(fields, self._spec, self._schema) if fields else None
        task = WriteTask(self._id, next(self._numbers), schema, rows, partition_key=place)
        yield from write_file(self._io, self._metadata, iter([task]))

    def read(self, file: DataFile, *columns: str) -> pa.Table:
        """As the table has it now: columns that are newer than the file are null."""
        schema = self._schema.select(*columns) if columns else self._schema
        return ArrowScan(self._metadata, self._io, schema, AlwaysTrue()).to_table([FileScanTask(file)])


class _Place(PartitionKey):
    def to_path(self) -> str:
        """A value that is too long for the name of a directory is its digest there: readers go by the manifest."""
        return "/".join(
            name if len(name) <= NAME_BYTES_MAX else sha256(name.encode()).hexdigest()
            for name in super().to_path().split("/")
        )


def divided(rows: pa.RecordBatch, metadata: TableMetadata) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """By the values of the table's partition. Each row is in one of them, whatever it is equal to: NaN is not to
    itself, and 0.0 is to -0.0."""
    schema, spec = metadata.schema(), metadata.spec()
    if spec.is_unpartitioned():
        yield (), rows
        return
    columns = []
    for field in spec.fields:
        source = schema.find_field(field.source_id)
        if source.name in rows.schema.names:
            columns.append(field.transform.pyarrow_transform(source.field_type)(rows.column(source.name)))
        else:  # the value's schema does not have that column any more
            columns.append(pa.nulls(rows.num_rows))
    names = [str(number) for number in range(len(columns))]
    numbers = pa.array(range(rows.num_rows), pa.int64())
    groups = pa.table([*columns, numbers], [*names, "row"]).group_by(names, use_threads=False)
    found = groups.aggregate([("row", "list")])
    chosen = found.column("row_list").combine_chunks()
    for place, one in enumerate(found.select(names).to_pylist()):
        values = tuple(one[name] for name in names)
        yield values, rows if len(chosen) == 1 else rows.take(chosen[place].values)


def as_bytes(file: DataFile) -> bytes:
    every = (file[number] for number in range(len(file)))
    values: list[Any] = [dict(value) if isinstance(value, Mapping) else value for value in every]  # some are lazy
    values[PARTITION] = [{DECIMAL: str(one)} if isinstance(one, Decimal) else one for one in values_of(file)]
    values[CONTENT], values[FORMAT] = int(file.content), file.file_format.value
    return msgspec.msgpack.encode(values)


def values_of(file: DataFile) -> Values:
    return tuple(file.partition[number] for number in range(len(file.partition)))


def from_bytes(told: bytes, spec_id: int) -> DataFile:
    values = msgspec.msgpack.decode(told, strict=False)
    values[PARTITION] = Record(*(Decimal(one[DECIMAL]) if isinstance(one, dict) else one for one in values[PARTITION]))
    values[CONTENT], values[FORMAT] = DataFileContent(values[CONTENT]), FileFormat(values[FORMAT])
    file = DataFile(*values)
    file.spec_id = spec_id
    return file
