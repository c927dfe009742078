"""Avro values, walked in their binary form: each type becomes a function that passes over one value of it.

Nothing is decoded that need not be, nothing is built, and every loop is bounded by the bytes that are there.
"""

from collections.abc import Callable
from typing import Any

from goqueue.broker.schemas.formats.avro_names import Names
from goqueue.broker.schemas.formats.parsed import DEPTH_MAX, Allowance

STEPS_MAX = 10_000
STEPS_PER_BYTE_MAX = 16
"""What takes no bytes costs nothing to claim: a record of records of records that hold nothing, an array of nulls."""
VARINT_BITS_MAX = 63

Walk = Callable[["_Value", int, int], int]
"""Bytes, position, depth: the position behind the value. Raises _Fault."""


class _Value(bytes):
    """The bytes of one value, and how many steps may still be taken to pass over it."""

    steps_left = 0

    def take(self, steps: int) -> None:
        self.steps_left -= steps
        if self.steps_left < 0:
            raise _Fault("too many fields or items that take no bytes: it would take too long to check")


class _Fault(Exception):
    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.path: list[str] = []


def walker(names: Names) -> Callable[[bytes, Allowance | None], str | None]:
    """Says what is wrong with a value, if anything."""
    walk = _Walkers(names).of(names.root)

    def fault(payload: bytes, allowance: Allowance | None) -> str | None:
        value = _Value(payload)
        most = STEPS_MAX + STEPS_PER_BYTE_MAX * len(payload)
        value.steps_left = most if allowance is None else min(most, allowance.left)
        given = value.steps_left
        try:
            end = walk(value, 0, 0)
        except _Fault as error:
            place = "".join(reversed(error.path)).lstrip(".")
            return f"{f'field {place}' if place else 'the value'}: {error}"
        finally:
            if allowance is not None:
                allowance.left -= given - max(value.steps_left, 0)
        if end != len(payload):
            return f"the value: {len(payload) - end} bytes are left behind it"
        return None

    return fault


class _Walkers:
    """One for each type, made once: a recursive one uses itself."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._made: dict[int, list[Walk]] = {}

    def of(self, schema: Any) -> Walk:
        kind, said = self._names.look_up(schema)
        if kind in _PLAIN:
            return _PLAIN[kind]
        if kind == "fixed":
            return _fixed(int(said["size"]))
        if kind == "enum":
            return _enum(len(said["symbols"]))
        made = self._made.get(id(said))
        if made is not None:
            return made[0] if made else _later(made)
        made = self._made[id(said)] = []
        match kind:
            case "record":
                walk = _record([(field["name"], self.of(field["type"])) for field in said["fields"]])
            case "array":
                walk = _blocks(self.of(said["items"]))
            case "map":
                walk = _blocks(_entry(self.of(said["values"])))
            case _:
                walk = _union([self.of(branch) for branch in said])
        made.append(walk)
        return walk


def _later(made: list[Walk]) -> Walk:
    def walk(data: _Value, at: int, depth: int) -> int:
        return made[0](data, at, depth)

    return walk


def _varint(data: bytes, at: int) -> tuple[int, int]:
    shift = number = 0
    while True:
        if at >= len(data):
            raise _Fault("the bytes end in the middle of a number")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
        if shift > VARINT_BITS_MAX:
            raise _Fault("a number of more than 64 bits")


def _walk_null(data: _Value, at: int, depth: int) -> int:  # noqa: ARG001
    return at


def _walk_boolean(data: _Value, at: int, depth: int) -> int:  # noqa: ARG001
    if at >= len(data):
        raise _Fault("the bytes end before the boolean")
    if data[at] > 1:
        raise _Fault(f"{data[at]} is no boolean")
    return at + 1


def _walk_int(data: _Value, at: int, depth: int) -> int:  # noqa: ARG001
    number, at = _varint(data, at)
    if not -(1 << 31) <= number < 1 << 31:
        raise _Fault(f"{number} is no int of 32 bits")
    return at


def _walk_long(data: _Value, at: int, depth: int) -> int:  # noqa: ARG001
    return _varint(data, at)[1]


def _fixed(size: int) -> Walk:
    def walk(data: _Value, at: int, depth: int) -> int:  # noqa: ARG001
        if at + size > len(data):
            raise _Fault(f"{size} bytes are needed, {len(data) - at} are left")
        return at + size

    return walk


def _walk_bytes(data: _Value, at: int, depth: int) -> int:  # noqa: ARG001
    size, at = _varint(data, at)
    if size < 0 or at + size > len(data):
        raise _Fault(f"a length of {size}, {len(data) - at} bytes are left")
    return at + size


def _walk_string(data: _Value, at: int, depth: int) -> int:
    end = _walk_bytes(data, at, depth)
    _, at = _varint(data, at)
    try:
        data[at:end].decode()
    except UnicodeDecodeError as error:
        raise _Fault(f"not UTF-8: {error.reason}") from None
    return end


def _enum(symbols: int) -> Walk:
    def walk(data: _Value, at: int, depth: int) -> int:  # noqa: ARG001
        number, at = _varint(data, at)
        if not 0 <= number < symbols:
            raise _Fault(f"symbol {number} of an enum with {symbols}")
        return at

    return walk


def _record(fields: list[tuple[str, Walk]]) -> Walk:
    def walk(data: _Value, at: int, depth: int) -> int:
        if depth > DEPTH_MAX:
            raise _Fault(f"nested more than {DEPTH_MAX} levels deep")
        data.take(len(fields))
        for name, walk_field in fields:
            try:
                at = walk_field(data, at, depth + 1)
            except _Fault as error:
                error.path.append(f".{name}")
                raise
        return at

    return walk


def _entry(walk_value: Walk) -> Walk:
    def walk(data: _Value, at: int, depth: int) -> int:
        return walk_value(data, _walk_string(data, at, depth), depth)

    return walk


def _blocks(walk_item: Walk) -> Walk:
    def walk(data: _Value, at: int, depth: int) -> int:
        if depth > DEPTH_MAX:
            raise _Fault(f"nested more than {DEPTH_MAX} levels deep")
        number = 0
        while True:
            count, at = _varint(data, at)
            if not count:
                return at
            if count < 0:  # then the size of the block follows
                count = -count
                _, at = _varint(data, at)
            for _ in range(count):
                before = at
                try:
                    at = walk_item(data, at, depth + 1)
                except _Fault as error:
                    error.path.append(f"[{number}]")
                    raise
                number += 1
                if at == before:
                    data.take(1)

    return walk


def _union(branches: list[Walk]) -> Walk:
    def walk(data: _Value, at: int, depth: int) -> int:
        if depth > DEPTH_MAX:
            raise _Fault(f"nested more than {DEPTH_MAX} levels deep")
        number, at = _varint(data, at)
        if not 0 <= number < len(branches):
            raise _Fault(f"branch {number} of a union with {len(branches)}")
        return branches[number](data, at, depth + 1)

    return walk


_PLAIN: dict[str, Walk] = {
    "null": _walk_null,
    "boolean": _walk_boolean,
    "int": _walk_int,
    "long": _walk_long,
    "float": _fixed(4),
    "double": _fixed(8),
    "bytes": _walk_bytes,
    "string": _walk_string,
}
