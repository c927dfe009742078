"""Rows of typed columns: their names, how they name their schema, and what becomes of bad ones."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from goqueue.spark.errors import SparkError
from goqueue.spark.formats.avro import AvroFormat
from goqueue.spark.formats.plan import Decoding, chosen_columns, columns_of, fields_of, typed_schema
from goqueue.spark.formats.registry import Registry
from goqueue.spark.formats.typed import Typing, raw_schema
from goqueue.spark.options import Options, Part
from goqueue.spark.where import Where
from tests.unit.spark.avro_values import avro, record, written

SERVER = Where("http://127.0.0.1:1")
"""Nobody is there: what is known is not asked for."""

CLASH = record(("id", "string"), ("Offset", "long"), ("_offset", "int"))


def decoding(document: Any = CLASH, bad_rows: str = "permissive") -> Decoding:
    latest = avro(document)
    fields = fields_of(AvroFormat(latest).shape)
    return Decoding(SERVER, "avro", None, {"orders": latest}, fields, bad_rows, None, Part.BATCH)


def test_a_name_of_the_schema_goes_before_ours() -> None:
    assert list(columns_of(decoding()))[:9] == [
        "id", "Offset", "_offset", "key", "topic", "partition", "__offset", "timestamp", "timestampType",
    ]  # fmt: skip
    usual = typed_schema(Options({}, Part.BATCH), decoding())
    assert usual.names[-2:] == ["_error", "_value"]
    assert "headers" not in usual.names
    assert typed_schema(Options({"columns": "__offset,id"}, Part.BATCH), decoding()).names == ["__offset", "id"]
    with pytest.raises(SparkError, match="there is no column 'ide'; did you mean id"):
        typed_schema(Options({"columns": "ide"}, Part.BATCH), decoding())
    with pytest.raises(SparkError, match="'ID' twice, but for upper and lower case"):
        columns_of(decoding(record(("id", "string"), ("ID", "string"))))


def test_a_value_that_is_no_record_is_one_column() -> None:
    assert typed_schema(Options({}, Part.BATCH), decoding("long")).names[:2] == ["value", "key"]


def typed(plan: Decoding, *rows: tuple[bytes | None, dict[str, bytes]]) -> list[dict[str, Any]]:
    columns = chosen_columns(typed_schema(Options({}, Part.BATCH), plan), plan)
    schema = to_arrow_schema(raw_schema(columns, plan, has_error=False), timezone="UTC")
    raw = [
        {
            "value": value,
            "topic": "orders",
            "partition": 1,
            "offset": 7 + number,
            "headers": [{"key": name, "value": text} for name, text in headers.items()],
        }
        for number, (value, headers) in enumerate(rows)
    ]
    batch = pa.RecordBatch.from_pylist(raw, schema=schema)
    with Typing(plan, columns) as typing:
        return [row for made in typing.apply(iter([batch])) for row in made.to_pylist()]


GOOD = written(CLASH, {"id": "a", "Offset": 5, "_offset": 6})
FRAME = b"\0\0\0\0\1"


def test_rows_are_typed_however_they_name_their_schema() -> None:
    rows = typed(decoding(), (FRAME + GOOD, {}), (GOOD, {"schema-id": b"1"}), (GOOD, {}), (None, {}))
    assert [(row["id"], row["Offset"], row["__offset"]) for row in rows] == [
        ("a", 5, 7), ("a", 5, 8), ("a", 5, 9), (None, None, 10),
    ]  # fmt: skip
    assert {(row["_error"], row["_value"]) for row in rows} == {(None, None)}


def test_bad_rows_are_kept_with_their_reason_or_end_the_query() -> None:
    rows = typed(decoding(), (FRAME + GOOD, {}), (b"\0\0\0\0\1\xff", {}), (GOOD, {"schema-id": b"x"}))
    assert [row["id"] for row in rows] == ["a", None, None]
    assert rows[1]["_value"] == b"\0\0\0\0\1\xff"
    assert rows[1]["_error"].startswith("does not fit schema 1: no value of schema 1")
    assert rows[2]["_error"] == "header schema-id is b'x', but must be the id of a schema"
    with pytest.raises(SparkError, match="topic orders, partition 1, offset 8: does not fit schema 1"):
        typed(decoding(bad_rows="failfast"), (FRAME + GOOD, {}), (b"\0\0\0\0\1\xff", {}))


def test_a_value_that_no_column_can_hold_costs_its_row_only() -> None:
    document = record(("when", {"type": "long", "logicalType": "timestamp-micros"}))
    good, bad = written(document, {"when": 0}), written(document, {"when": 2**62})
    rows = typed(decoding(document), (good, {}), (bad, {}))
    assert [row["_error"] is None for row in rows] == [True, False]


def test_a_record_may_have_one_field_that_is_called_value() -> None:
    document = record(("value", "string"))
    (row,) = typed(decoding(document), (FRAME + written(document, {"value": "a"}), {}))
    assert (row["value"], row["_error"]) == ("a", None)


def test_an_id_that_no_schema_can_have_costs_its_row_only() -> None:
    """Bytes that only look as if they began with one. To ask the registry would end the query: it refuses such ids."""
    rows = typed(decoding(), (b"\0\xff\xff\xff\xff", {}), (b"x", {"schema-id": b"9999999999"}))
    assert [row["_error"] for row in rows] == [
        "there is no schema 4294967295 in the registry", "there is no schema 9999999999 in the registry",
    ]  # fmt: skip


def test_a_schema_that_was_not_there_is_asked_for_again_by_the_next_task(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(Registry, "_ask", lambda self, question: asked.append(question))
    document = decoding()
    for _ in range(2):
        typed(document, (b"\0\0\0\x03\xe7", {}), (b"\0\0\0\x03\xe7", {}))
    assert len(asked) == 2, "once by each"
