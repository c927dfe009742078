"""JSON Schema: what a schema pins down becomes a type; what it leaves open stays JSON, as text."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import msgspec
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    TimestampType,
)

from goqueue.spark.formats.registry import SchemaText
from goqueue.spark.formats.shapes import Convert, Misfit, Path, Shape, Unsupported, list_of, map_of, struct_of

INT64_MAX = (1 << 63) - 1


class JsonFormat:
    def __init__(self, schema: SchemaText) -> None:
        self._document = msgspec.json.decode(schema.text)
        self._others = {each.name: msgspec.json.decode(each.text) for each in schema.dependencies}
        self._path = Path()
        self.shape = self._of(self._document, self._document)

    def decode(self, payload: bytes, writer: SchemaText, is_framed: bool) -> Any:  # noqa: ARG002
        try:
            return msgspec.json.decode(payload)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise Misfit(f"not JSON: {error}") from None

    def _of(self, schema: Any, home: Any) -> Shape:
        """`home`: the document that its references are about."""
        if not isinstance(schema, dict):
            return _ANY
        if "$ref" in schema:
            return self._of_reference(schema["$ref"], home)
        if "allOf" in schema:
            return self._of(_merged(schema, lambda one: self._resolved(one, home)), home)
        choices = schema.get("oneOf") or schema.get("anyOf")
        if choices:
            left = [one for one in choices if one != {"type": "null"}]
            return self._of(left[0], home) if len(left) == 1 else _ANY
        return self._of_kind(_kind(schema), schema, home)

    def _of_kind(self, kind: str | None, schema: Any, home: Any) -> Shape:
        match kind:
            case "object":
                return self._of_object(schema, home)
            case "array":
                return _checked(list, "an array", list_of(self._of(schema.get("items"), home)))
            case "string":
                return _STRINGS.get(schema.get("format", ""), _TEXT)
        return _PLAIN.get(kind, _ANY)

    def _of_object(self, schema: Any, home: Any) -> Shape:
        if schema.get("properties"):
            fields = [(name, self._of(inner, home)) for name, inner in schema["properties"].items()]
            return _checked(dict, "an object", struct_of(fields))
        rest = schema.get("additionalProperties")
        return _checked(dict, "an object", map_of(self._of(rest, home))) if isinstance(rest, dict) else _ANY

    def _of_reference(self, reference: str, home: Any) -> Shape:
        self._path.enter(f"$ref {reference}")
        target, its_home = self._look_up(reference, home)
        shape = self._of(target, its_home)
        self._path.leave()
        return shape

    def _resolved(self, schema: Any, home: Any) -> Any:
        return self._look_up(schema["$ref"], home)[0] if isinstance(schema, dict) and "$ref" in schema else schema

    def _look_up(self, reference: str, home: Any) -> tuple[Any, Any]:
        name, _, pointer = reference.partition("#")
        if name:
            home = next(
                (one for known, one in self._others.items() if name == known or name.endswith(f"/{known}")), None
            )
        found = home
        for step in filter(None, pointer.split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            raise Unsupported(f"$ref {reference} leads nowhere")
        return found, home


def _kind(schema: Any) -> str | None:
    """The one type that is not null. None: it is open."""
    said = schema.get("type")
    if isinstance(said, list):
        left = [one for one in said if one != "null"]
        if set(left) == {"integer", "number"}:
            return "number"
        return left[0] if len(left) == 1 else None
    if said is not None:
        return str(said)
    if "properties" in schema:
        return "object"
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return "string" if values and all(isinstance(one, str) for one in values) else None


def _merged(schema: Any, resolve: Callable[[Any], Any]) -> Any:
    made = {name: value for name, value in schema.items() if name != "allOf"}
    properties = dict(made.get("properties", {}))
    for part in schema["allOf"]:
        found = resolve(part)
        if isinstance(found, dict):
            properties |= found.get("properties", {})
            made = {**found, **made}
    return {**made, "properties": properties} if properties else made


def _checked(kind: type, name: str, shape: Shape) -> Shape:
    inner = shape.convert

    def convert(value: Any) -> Any:
        if type(value) is not kind:
            raise Misfit(f"{_shown(value)} is not {name}")
        return value if inner is None else inner(value)

    return Shape(shape.type, convert)


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else f"{text[:40]}..."


def _integer(value: Any) -> int:
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or abs(value) > INT64_MAX:
        raise Misfit(f"{_shown(value)} is not an integer of 64 bits")
    return value


def _number(value: Any) -> float:
    if type(value) is not int and type(value) is not float:
        raise Misfit(f"{_shown(value)} is not a number")
    return float(value)


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise Misfit(f"{_shown(value)} is not true or false")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise Misfit(f"{_shown(value)} is not a string")
    return value


def _date(value: Any) -> date:
    try:
        return date.fromisoformat(_text(value))
    except ValueError:
        raise Misfit(f"{_shown(value)} is not a date") from None


def _moment(value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(value))
        return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # by its zone it may be of the year 0 or 10000
        raise Misfit(f"{_shown(value)} is not a date and time") from None


def _as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _shape(type_: Any, convert: Convert) -> Shape:
    return Shape(type_, convert)


_ANY = _shape(StringType(), _as_json)
_TEXT = _shape(StringType(), _text)
_STRINGS = {"date": _shape(DateType(), _date), "date-time": _shape(TimestampType(), _moment)}
_PLAIN: dict[str | None, Shape] = {
    "integer": _shape(LongType(), _integer),
    "number": _shape(DoubleType(), _number),
    "boolean": _shape(BooleanType(), _boolean),
}
