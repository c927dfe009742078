"""Avro: schemas are read by `fastavro`, which knows what a schema may say; values are walked here, since a decoder
neither names the field that is wrong nor stops at an array of a billion nulls.
"""

from typing import Any

import fastavro
import msgspec
from fastavro.schema import SchemaParseException, UnknownType

from goqueue.broker.schemas.formats.avro_names import Names, check_fields, check_types
from goqueue.broker.schemas.formats.avro_resolution import mismatches
from goqueue.broker.schemas.formats.avro_values import walker
from goqueue.broker.schemas.formats.parsed import TURN_BYTES_MAX, Allowance, Dependencies, compact, decode_json, digest
from goqueue.model.schemas import InvalidSchema

PLAIN = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))


class AvroSchema:
    turn_bytes_max = TURN_BYTES_MAX

    def __init__(self, text: str, dependencies: Dependencies = ()) -> None:
        document = _document(text)
        named: dict[str, Any] = {}
        for each in dependencies:
            _parse(_document(each.text), named, f"the schema {each.name!r}")
        self.text = compact(document)
        self.fingerprint = digest(self.text)
        self.names = Names(_parse(document, named, "the schema"), named)
        check_types(self.names)
        check_fields(self.names)
        self._walk = walker(self.names)

    @property
    def normalized(self) -> str:
        return compact(_simplified(msgspec.json.decode(self.text)), is_sorted=True)

    @property
    def serialized(self) -> str:
        return self.text

    def cannot_read(self, older: "AvroSchema") -> list[str]:
        return mismatches(self.names, older.names)

    def fault(
        self,
        payload: bytes,
        is_framed: bool,  # noqa: ARG002  it says nothing more
        allowance: Allowance | None = None,
    ) -> str | None:
        return self._walk(payload, allowance)


def _document(text: str) -> Any:
    if text.strip() in PLAIN:
        return text.strip()
    return decode_json(text, "the schema")


def _parse(document: Any, named: dict[str, Any], what: str) -> Any:
    try:
        return fastavro.parse_schema(document, named, expand=False, _write_hint=False)
    except UnknownType as error:
        raise InvalidSchema(f"{what} is no Avro schema: there is no type {error.name!r}") from None
    except (SchemaParseException, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidSchema(f"{what} is no Avro schema: {error}") from None


def _simplified(schema: Any) -> Any:
    """Without what changes nothing: {"type": "string"} is "string", and a documentation is no part of a type."""
    if isinstance(schema, list):
        return [_simplified(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.keys() == {"type"}:
        return _simplified(schema["type"])
    return {name: _simplified(value) if name != "default" else value for name, value in schema.items()}
