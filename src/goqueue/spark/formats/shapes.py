"""What a value becomes in Spark: a type, and how a decoded value is brought into the form that Arrow takes for it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

Convert = Callable[[Any], Any]


class Misfit(Exception):
    """A value that is not what its schema says. Its path is put together on the way out."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.path: list[str] = []

    def __str__(self) -> str:
        place = "".join(reversed(self.path)).lstrip(".")
        return f"field {place}: {self.args[0]}" if place else str(self.args[0])


class Shape(NamedTuple):
    type: DataType
    convert: Convert | None = None
    """None: it is taken as it is."""


def struct_of(fields: Sequence[tuple[str, Shape]]) -> Shape:
    """From mappings. Whatever else they hold is left out."""
    type_ = StructType([StructField(name, shape.type) for name, shape in fields])
    converts = [(name, shape.convert) for name, shape in fields if shape.convert is not None]
    if not converts:
        return Shape(type_)

    def convert(value: Any) -> Any:
        made = dict(value)
        for name, inner in converts:
            if made.get(name) is not None:
                made[name] = _inside(inner, made[name], f".{name}")
        return made

    return Shape(type_, convert)


def list_of(item: Shape) -> Shape:
    inner = item.convert
    if inner is None:
        return Shape(ArrayType(item.type))

    def convert(value: Any) -> Any:
        return [each if each is None else _inside(inner, each, f"[{number}]") for number, each in enumerate(value)]

    return Shape(ArrayType(item.type), convert)


def map_of(item: Shape) -> Shape:
    inner = item.convert
    type_ = MapType(StringType(), item.type)
    if inner is None:
        return Shape(type_)

    def convert(value: Any) -> Any:
        return {name: each if each is None else _inside(inner, each, f"[{name!r}]") for name, each in value.items()}

    return Shape(type_, convert)


def _inside(convert: Convert, value: Any, step: str) -> Any:
    try:
        return convert(value)
    except Misfit as error:
        error.path.append(step)
        raise


class Path:
    """The types on the way to the one that is looked at: one that is met again stands in itself."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def enter(self, name: str) -> None:
        if name in self._names:
            raise Unsupported(f"{name} holds itself: a column cannot be that deep")
        self._names.append(name)

    def leave(self) -> None:
        self._names.pop()


class Unsupported(Exception):
    """A schema that says what no column can be."""
