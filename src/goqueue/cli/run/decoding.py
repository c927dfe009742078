"""Values that name a schema, as JSON: asked of the registry once for each schema, decoded here."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from goqueue.cli.exits import CommandFailed
from goqueue.client import Admin, HttpRefused
from goqueue.records.schema_framing import LATEST, PREFIX_BYTES, message_indexes, named_schema

REFERENCES_MAX = 1000
PROTOBUF = "PROTOBUF"
NOT_FOUND = 404
SELF = "default.proto"

Decode = Callable[[bytes], Any]


class Decoder:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._decoders: dict[int, Decode | None] = {}
        """None: the registry has no such schema, or its values could be endless."""

    async def text(self, value: bytes, headers: Sequence[tuple[str, bytes | None]]) -> str | None:
        """None: it names no schema that the registry knows. CommandFailed: it is not what its schema says."""
        try:
            schema_id, is_framed = named_schema(value, headers)
        except ValueError:
            return None
        if schema_id == LATEST:
            return None
        if schema_id not in self._decoders:
            self._decoders[schema_id] = await self._made(schema_id)
        decode = self._decoders[schema_id]
        if decode is None:
            return None
        try:
            decoded = decode(value[PREFIX_BYTES:] if is_framed else value)
        except Exception as error:  # noqa: BLE001  whatever the libraries raise on bytes of strangers
            words = f"a value is not what schema {schema_id} says: {error}"
            raise CommandFailed(f"{words}\n  leave out --decode to see it as it is") from None
        return json.dumps(decoded, ensure_ascii=False, default=_shown)

    async def _made(self, schema_id: int) -> Decode | None:
        try:
            found = await self._admin.schema_by_id(schema_id, serialized=True)
        except HttpRefused as refused:
            if refused.status != NOT_FOUND:
                raise
            return None
        kind = found.schema_type or "AVRO"
        if kind == "JSON":
            return json.loads
        references = await self._references(found.references or ())
        return _protobuf(found.schema, references) if kind == PROTOBUF else _avro(found.schema, references)

    async def _references(self, wanted: Sequence[Any]) -> dict[str, str]:
        """By the name that refers to them, what they rest on first."""
        found: dict[str, str] = {}
        waiting = [(each, False) for each in reversed(wanted)]
        while waiting:
            reference, is_ready = waiting.pop()
            if reference.name in found:
                continue
            if len(found) + len(waiting) > REFERENCES_MAX:
                raise CommandFailed("a schema refers to too many others")
            schema = await self._admin.schema(reference.subject, reference.version, serialized=True)
            if is_ready or not schema.references:
                found[reference.name] = schema.schema
            else:
                waiting += [(reference, True), *((each, False) for each in schema.references)]
        return found


def _shown(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else str(value)


def _avro(text: str, references: dict[str, str]) -> Decode | None:
    from io import BytesIO

    import fastavro

    known: dict[str, Any] = {}
    for each in references.values():
        fastavro.parse_schema(json.loads(each), named_schemas=known)
    schema = fastavro.parse_schema(json.loads(text), named_schemas=known)
    if _is_endless(schema, known, set()):
        return None
    return lambda payload: fastavro.schemaless_reader(BytesIO(payload), schema, None)


def _is_endless(schema: Any, known: dict[str, Any], seen: set[str]) -> bool:
    """Whether it has an array whose items take no bytes: ten bytes of a stranger could say a billion of them."""
    if isinstance(schema, str):
        if schema not in known or schema in seen:
            return False
        seen.add(schema)
        return _is_endless(known[schema], known, seen)
    if isinstance(schema, list):
        return any(_is_endless(each, known, seen) for each in schema)
    if schema["type"] == "array" and _takes_nothing(schema["items"], known, frozenset()):
        return True
    if not isinstance(schema["type"], str) or schema["type"] in known:
        return _is_endless(schema["type"], known, seen)
    inner = [schema.get("items"), schema.get("values"), *(each["type"] for each in schema.get("fields", ()))]
    return any(each is not None and _is_endless(each, known, seen) for each in inner)


def _takes_nothing(schema: Any, known: dict[str, Any], within: frozenset[str]) -> bool:
    if isinstance(schema, list):  # it says which of them
        return False
    if isinstance(schema, str):
        if schema not in known or schema in within:
            return schema == "null" or schema in within
        return _takes_nothing(known[schema], known, within | {schema})
    if schema["type"] == "fixed":
        return not schema["size"]
    if schema["type"] in ("record", "error"):
        return all(_takes_nothing(each["type"], known, within) for each in schema["fields"])
    return _takes_nothing(schema["type"], known, within)


def _protobuf(text: str, references: dict[str, str]) -> Decode:
    from google.protobuf import json_format, message_factory

    from goqueue.records.protobuf_files import encoded_file, installed_file, message_at, pool_of

    files = [*(encoded_file(name, each) for name, each in references.items()), encoded_file(SELF, text)]
    of_schema = pool_of(files, installed_file).FindFileByName(SELF)

    def decode(payload: bytes) -> Any:
        indexes, at = message_indexes(payload)
        message = message_factory.GetMessageClass(message_at(of_schema, indexes))()
        message.ParseFromString(payload[at:])
        return json_format.MessageToDict(message, preserving_proto_field_name=True)

    return decode
