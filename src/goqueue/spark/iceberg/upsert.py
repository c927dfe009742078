"""`table.mode = upsert`: the last row of each key. Files with a key of the batch are written anew without its rows.

Copy-on-write: PyIceberg writes no files of deletes, and every reader understands whole files. All rows of one partition
of the table go to one task, which alone looks at the files of that partition.
"""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.metadata import TableMetadata
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from goqueue.spark.errors import told_in_one_line
from goqueue.spark.iceberg.files import Files, Values, as_bytes, divided, from_bytes, values_of
from goqueue.spark.iceberg.rows import (
    RESULT_DDL,
    Plan,
    Seen,
    Told,
    letters,
    new_rows,
    noted,
    table_rows,
    tell,
    told_at_the_end,
)

PLACE = "place"
NO_KEY = "it has no key, and rows of this table are known by theirs"


def upserted(batch: DataFrame, plan: Plan) -> DataFrame:
    """What the tasks tell."""
    schema = StructType([*batch.schema.fields, StructField(PLACE, StringType())])
    rows = batch.mapInArrow(partial(placed, plan=plan), schema)
    return rows.repartition(PLACE).mapInArrow(partial(upsert_rows, plan=plan), RESULT_DDL)


def placed(batches: Iterator[pa.RecordBatch], plan: Plan) -> Iterator[pa.RecordBatch]:
    """With the partition of the table that each belongs to, as a text."""
    with told_in_one_line():
        metadata = plan.data.opened()
        for batch in new_rows(batches, plan.offsets):
            for values, rows in _by_key(batch, metadata):
                yield rows.append_column(PLACE, pa.repeat(pa.scalar(repr(values)), rows.num_rows))


def _by_key(batch: pa.RecordBatch, metadata: TableMetadata) -> Iterator[tuple[Values, pa.RecordBatch]]:
    names = batch.schema.names
    renamed = batch.rename_columns(["_key" if name == "key" else name for name in names])
    for values, rows in divided(renamed, metadata):
        yield values, rows.rename_columns(names)


def upsert_rows(batches: Iterator[pa.RecordBatch], plan: Plan) -> Iterator[pa.RecordBatch]:
    """For mapInArrow."""
    with told_in_one_line():
        seen: dict[int, Seen] = {}
        data, dead = Files(plan.data), None if plan.dead is None else Files(plan.dead)
        gathered: list[pa.RecordBatch] = []
        deleted: list[pa.RecordBatch] = []
        places: set[str] = set()
        fresh = _with_values(noted(batches, seen), deleted, places)
        for with_key, keyless in _keyed(fresh):
            for good, bad in table_rows(iter([with_key]), plan, seen):
                gathered.append(good)
                if bad is not None and dead is not None:
                    yield from tell(Told(dead=file.file_path) for file in dead.add(bad))
            if keyless.num_rows and dead is not None:
                reasons = pa.repeat(pa.scalar(NO_KEY), keyless.num_rows)
                bad = letters(keyless, keyless.column("value"), reasons, seen)
                yield from tell(Told(dead=file.file_path) for file in dead.add(bad))
        rows, keys = last_of_each_key(gathered, deleted)
        if len(keys):
            yield from _replaced(data, plan, places, keys)
            for batch in rows.to_batches() if rows is not None else ():
                yield from tell(Told(data=as_bytes(file)) for file in data.add(batch))
            yield from tell(Told(data=as_bytes(file)) for file in data.finish())
        yield from told_at_the_end(dead, seen)


def _with_values(
    batches: Iterator[pa.RecordBatch], deleted: list[pa.RecordBatch], places: set[str]
) -> Iterator[pa.RecordBatch]:
    """Tombstones are noted: they replace a row by none."""
    for batch in batches:
        places.update(pc.unique(batch.column(PLACE)).to_pylist())
        is_there = pc.is_valid(batch.column("value"))
        gone = batch.filter(pc.and_(pc.invert(is_there), pc.is_valid(batch.column("key"))))
        if gone.num_rows:
            deleted.append(gone)
        yield batch.filter(pc.or_(is_there, pc.is_null(batch.column("key")))).drop_columns([PLACE])


def _keyed(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    for batch in batches:
        has_key = pc.is_valid(batch.column("key"))
        yield batch.filter(has_key), batch.filter(pc.invert(has_key))


def last_of_each_key(gathered: list[pa.RecordBatch], deleted: list[pa.RecordBatch]) -> tuple[pa.Table | None, pa.Array]:
    """The rows to be there, and all keys whose rows are not any more. By offset: a key has one partition."""
    some = [pa.Table.from_batches([each]) for each in gathered if each.num_rows]
    rows = pa.concat_tables(some) if some else None
    parts = []
    if rows is not None:
        numbers = pa.array(range(rows.num_rows), pa.int64())
        parts.append(pa.table({"key": rows.column("_key"), "offset": rows.column("_offset"), "row": numbers}))
    for gone in deleted:
        none = pa.nulls(gone.num_rows, pa.int64())
        parts.append(pa.table({"key": gone.column("key"), "offset": gone.column("offset"), "row": none}))
    if not parts:
        return None, pa.array([], pa.binary())
    every = pa.concat_tables(parts).sort_by("offset")
    every = every.append_column("at", pa.array(range(every.num_rows), pa.int64()))
    last = every.take(every.group_by("key").aggregate([("at", "max")]).column("at_max").combine_chunks())
    keys = last.column("key").combine_chunks()
    return None if rows is None else rows.take(last.column("row").drop_null()), keys


def _replaced(data: Files, plan: Plan, places: set[str], keys: pa.Array) -> Iterator[pa.RecordBatch]:
    """Rows of other keys, of those files that hold one of these."""
    for told in plan.files:
        file = from_bytes(told, 0)
        if repr(values_of(file)) not in places:
            continue
        if not pc.any(_is_one_of(data.read(file, "_key"), keys)).as_py():
            continue
        rows = data.read(file)
        left = rows.filter(pc.invert(_is_one_of(rows, keys)))
        for batch in left.to_batches():
            yield from tell(Told(data=as_bytes(each)) for each in data.add(batch))
        yield from tell([Told(gone=file.file_path)])


def _is_one_of(rows: pa.Table, keys: pa.Array) -> pa.ChunkedArray:
    column = rows.column("_key")
    return pc.is_in(column, keys.cast(column.type))
