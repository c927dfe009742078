"""Avro schemas and values for tests."""

import json
from io import BytesIO
from typing import Any

import fastavro

from goqueue.spark.formats.registry import SchemaText


def avro(document: Any, schema_id: int = 1) -> SchemaText:
    return SchemaText(schema_id, "AVRO", json.dumps(document))


def record(*fields: tuple[str, Any]) -> Any:
    return {"type": "record", "name": "Row", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def written(document: Any, value: Any) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(document), value)
    return out.getvalue()
