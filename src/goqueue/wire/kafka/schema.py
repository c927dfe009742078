"""Reads a message class as a schema: what its annotations say, as plain data for the two compilers."""

import re
from functools import cache
from struct import calcsize
from typing import Annotated, Any, NamedTuple, get_args, get_origin

from msgspec import NODEFAULT
from msgspec.structs import fields as struct_fields

from goqueue.wire.kafka.notation import Message

FIXED = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "bool": "?",
    "uuid": "16s",
}
"""Kinds of one size, and their `struct` codes."""
KINDS = {*FIXED, "string", "bytes", "records"}
FIXED_BYTES = {kind: calcsize(f">{code}") for kind, code in FIXED.items()}

_SPAN = r"\d+(?:\+|-\d+)?"
_NOTE = re.compile(
    rf"(?P<versions>{_SPAN})?(?: ?null (?P<null>{_SPAN}))?(?: ?tag (?P<tag>\d+))?(?P<ignorable> ?ignorable)?"
)
_FOREVER = 2**15
"""Beyond the largest version that an int16 can name."""


class Span(NamedTuple):
    """An inclusive range of versions."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


NEVER = Span(1, 0)


class Field(NamedTuple):
    name: str
    kind: str
    """One of KINDS, or "message"."""
    message: type[Message] | None
    """The class, if the kind is "message"."""
    is_array: bool
    versions: Span
    null_versions: Span
    tag: int | None
    is_ignorable: bool
    default: Any
    """A value, or the class whose empty instance is the default."""


@cache
def fields_of(message: type[Message]) -> tuple[Field, ...]:
    return tuple(_field(info.name, info.type, info.default, info.default_factory) for info in struct_fields(message))


def has_records(message: type[Message]) -> bool:
    return any(f.kind == "records" or (f.message is not None and has_records(f.message)) for f in fields_of(message))


def least_bytes(message: type[Message], version: int, is_flexible: bool) -> int:
    """The size of the smallest such message: what an array of n of them needs at the very least is n times this."""
    untagged = (f for f in fields_of(message) if version in f.versions and f.tag is None)
    return sum(_least_bytes(field, version, is_flexible) for field in untagged) + is_flexible


def _least_bytes(field: Field, version: int, is_flexible: bool) -> int:
    if field.is_array or field.kind in {"bytes", "records"}:
        return 1 if is_flexible else 4
    if field.kind == "string":
        return 1 if is_flexible else 2
    if field.message is None:
        return FIXED_BYTES[field.kind]
    return 1 if version in field.null_versions else least_bytes(field.message, version, is_flexible)


def element_bytes(field: Field, version: int, is_flexible: bool) -> int:
    """The size of the smallest element of an array field."""
    return _least_bytes(field._replace(is_array=False, null_versions=NEVER), version, is_flexible)


def _field(name: str, annotation: Any, default: Any, default_factory: Any) -> Field:
    notes, inner = _peel(annotation)
    is_nullable = type(None) in get_args(inner)
    if is_nullable:
        (inner,) = (part for part in get_args(inner) if part is not type(None))
        notes, inner = _peel(inner, notes)
    is_array = get_origin(inner) is list
    if is_array:
        (inner,) = get_args(inner)
        notes, inner = _peel(inner, notes)
    kind = next((note for note in notes if note in KINDS), "message")
    text = next((note for note in notes if note not in KINDS), "")
    found = _NOTE.fullmatch(text)
    assert found, f"{name}: cannot read {text!r}"
    versions = _span(found["versions"], Span(0, _FOREVER))
    tag = None if found["tag"] is None else int(found["tag"])
    is_absent_when_none = tag is not None and kind == "message" and not is_array
    return Field(
        name=name,
        kind=kind,
        message=inner if kind == "message" else None,
        is_array=is_array,
        versions=versions,
        null_versions=_span(found["null"], versions if is_nullable and not is_absent_when_none else NEVER),
        tag=tag,
        is_ignorable=bool(found["ignorable"]),
        default=default_factory if default is NODEFAULT else default,
    )


def _peel(annotation: Any, notes: tuple[str, ...] = ()) -> tuple[tuple[str, ...], Any]:
    """What is written beside a type, and the type."""
    if get_origin(annotation) is not Annotated:
        return notes, annotation
    return (*notes, *annotation.__metadata__), annotation.__origin__


def _span(text: str | None, otherwise: Span) -> Span:
    if text is None:
        return otherwise
    first, _, last = text.removesuffix("+").partition("-")
    return Span(int(first), _FOREVER if text.endswith("+") else int(last or first))
