"""From messages to rows of a table, on executors: values are decoded, what cannot be goes to the dead letters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from goqueue.model.errors import InvalidWish
from goqueue.records.wishes import DELAY_MS, DELIVER_AT, NOW, read_wishes
from goqueue.spark.errors import told_in_one_line
from goqueue.spark.formats.plan import ERROR, Column, Decoding
from goqueue.spark.formats.plan import VALUE as BAD_VALUE
from goqueue.spark.formats.typed import Typing
from goqueue.spark.iceberg.columns import DEAD, OWN, VALUE, Named
from goqueue.spark.iceberg.files import Files, Target, as_bytes
from goqueue.spark.read.columns import known_columns

SOURCE = ("key", "value", "topic", "partition", "offset", "timestamp", "headers", "priority")
"""What is read of a topic."""
RESULT = pa.schema([("told", pa.binary())])
RESULT_DDL = "told binary"
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999. A record may have a time beyond, but no file of a table can."""


@dataclass(frozen=True)
class Plan:
    """Of one micro-batch, for its tasks."""

    data: Target
    dead: Target | None
    """Only where values are decoded, some of them cannot be."""
    offsets: Mapping[int, int]
    """What lies before is in the table already."""
    decoding: Decoding | None = None
    names: Sequence[Named] = ()
    files: Sequence[bytes] = ()
    """All that the table has, where rows of them may be replaced."""


@dataclass
class Seen:
    """What a task has met of a partition."""

    next_offset: int = 0
    rows: int = 0
    bad: int = 0


class Told(msgspec.Struct, array_like=True):
    """What a task tells the driver: one file of one of the tables, or what it has seen, by partition."""

    data: bytes = b""
    dead: str = ""
    gone: str = ""
    """A file whose rows are in new ones."""
    seen: dict[int, tuple[int, int, int]] = {}


def write_rows(batches: Iterator[pa.RecordBatch], plan: Plan) -> Iterator[pa.RecordBatch]:
    """For mapInArrow."""
    with told_in_one_line():
        seen: dict[int, Seen] = {}
        data, dead = Files(plan.data), None if plan.dead is None else Files(plan.dead)
        for good, bad in table_rows(noted(new_rows(batches, plan.offsets), seen), plan, seen):
            yield from tell(Told(data=as_bytes(file)) for file in data.add(good))
            if dead is not None and bad is not None:
                yield from tell(Told(dead=file.file_path) for file in dead.add(bad))
        yield from tell(Told(data=as_bytes(file)) for file in data.finish())
        yield from told_at_the_end(dead, seen)


def tell(what: Any) -> Iterator[pa.RecordBatch]:
    for one in what:
        yield pa.RecordBatch.from_arrays([pa.array([msgspec.msgpack.encode(one)], pa.binary())], schema=RESULT)


def read_told(results: DataFrame) -> list[Told]:
    """On the driver, when all tasks are done."""
    return [msgspec.msgpack.decode(bytes(row["told"]), type=Told, strict=False) for row in results.collect()]


def told_at_the_end(dead: Files | None, seen: dict[int, Seen]) -> Iterator[pa.RecordBatch]:
    if dead is not None:
        yield from tell(Told(dead=file.file_path) for file in dead.finish())
    met = {number: (one.next_offset, one.rows, one.bad) for number, one in seen.items()}
    yield from tell([Told(seen=met)])


def new_rows(batches: Iterator[pa.RecordBatch], offsets: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
    """Without those that the table has."""
    for batch in batches:
        left = batch
        for number in pc.unique(batch.column("partition")).to_pylist():
            if offsets.get(number, 0):
                is_other = pc.not_equal(left.column("partition"), number)
                left = left.filter(pc.or_(is_other, pc.greater_equal(left.column("offset"), offsets[number])))
        if left.num_rows:
            yield left


def table_rows(
    fresh: Iterator[pa.RecordBatch], plan: Plan, seen: dict[int, Seen]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
    """Rows of the table, and of the dead letters."""
    if plan.decoding is None:
        value = VALUE.field(0).with_name(plan.names[0].column) if plan.names else VALUE.field(0)
        for batch in fresh:
            columns = [*own_columns(batch), batch.column("value")]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema([*OWN, value])), None
        return
    with Typing(plan.decoding, typed_columns(plan.decoding)) as typing:
        for batch in typing.apply(fresh):
            is_bad = pc.is_valid(batch.column(ERROR))
            good = _good(batch.filter(pc.invert(is_bad)), plan)
            if not pc.any(is_bad).as_py():
                yield good, None
                continue
            bad = batch.filter(is_bad)
            yield good, letters(bad, bad.column(BAD_VALUE), bad.column(ERROR), seen)


def letters(bad: pa.RecordBatch, values: pa.Array, reasons: pa.Array, seen: dict[int, Seen]) -> pa.RecordBatch:
    counts = pc.value_counts(bad.column("partition"))
    for number, count in zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist()):
        seen[number].bad += count
    return pa.RecordBatch.from_arrays([*own_columns(bad), values, reasons], schema=DEAD)


def _good(batch: pa.RecordBatch, plan: Plan) -> pa.RecordBatch:
    columns = dict(zip(OWN.names, own_columns(batch)))
    columns |= {one.column: batch.column(_inner(one.field)) for one in plan.names}
    return pa.RecordBatch.from_pydict(columns)


def typed_columns(decoding: Decoding) -> list[Column]:
    """The fields under names that no message's own column has."""
    known = known_columns(decoding.part)
    own = [Column(name, known[name].type, raw=name) for name in SOURCE if name not in ("value", "topic")]
    fields = [Column(_inner(one.name), one.dataType, field=one.name) for one in decoding.fields.fields]
    from pyspark.sql.types import BinaryType, StringType

    return [*fields, *own, Column(ERROR, StringType(), raw=ERROR), Column(BAD_VALUE, BinaryType(), raw=BAD_VALUE)]


def _inner(field_name: str) -> str:
    return f"value.{field_name}"


def own_columns(batch: pa.RecordBatch) -> list[pa.Array]:
    headers = batch.column("headers")
    moments = batch.column("timestamp")
    return [
        batch.column("partition"),
        batch.column("offset"),
        _of_the_calendar(moments.cast(OWN.field("_timestamp").type)),
        batch.column("key"),
        headers.cast(OWN.field("_headers").type),
        batch.column("priority"),
        _deliveries(headers, moments),
    ]


def _of_the_calendar(moments: pa.Array) -> pa.Array:
    """Null, where they are beyond it."""
    numbers = moments.cast(pa.int64())
    is_there = pc.and_(pc.greater_equal(numbers, FIRST_US), pc.less_equal(numbers, LAST_US))
    return moments if pc.all(is_there).as_py() is True else pc.if_else(is_there, moments, None)


def _deliveries(headers: pa.Array, moments: pa.Array) -> pa.Array:
    """When each shall be delivered, if it says so: few do."""
    type_ = OWN.field("_deliver_at").type
    names = headers.flatten().field("key") if len(headers) else pa.array([], pa.string())
    if not pc.any(pc.is_in(names, pa.array([DELIVER_AT, DELAY_MS], pa.string()))).as_py():
        return pa.nulls(len(headers), type_)
    times_ms = pc.divide(moments.cast(pa.int64()), 1000).to_pylist()
    found = [_delivery(pairs, time_ms or 0) for pairs, time_ms in zip(headers.to_pylist(), times_ms)]
    return pa.array([None if each is None else each * 1000 for each in found], pa.int64()).cast(type_)


def _delivery(pairs: Any, time_ms: int) -> int | None:
    try:
        wishes = read_wishes([(each["key"], each["value"]) for each in pairs or ()], time_ms)
    except InvalidWish:
        return None
    return None if wishes.deliver_at_ms == NOW else wishes.deliver_at_ms


def noted(batches: Iterator[pa.RecordBatch], seen: dict[int, Seen]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        keys = pa.table({name: batch.column(name) for name in ("partition", "offset")})
        totals = keys.group_by("partition").aggregate([("offset", "max"), ("offset", "count")])
        for row in totals.to_pylist():
            one = seen.setdefault(row["partition"], Seen())
            one.next_offset = max(one.next_offset, row["offset_max"] + 1)
            one.rows += row["offset_count"]
        yield batch
