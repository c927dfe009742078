"""The golden file: what every stored thing looks like in every format that was ever written. Lines are added and never
changed; `python -m tools.golden` adds those of today's code.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from goqueue.records import formats
from tests.golden.files import file_samples
from tests.golden.samples import Sample, audit, fact_samples, journeys

FORMATS = {**formats.FORMATS, "checkpoint": 2}
"""Spark's checkpoints are not in the data directory, so that `format.json` says nothing of them."""
GOLDEN = Path(__file__).with_name("stored.jsonl")

Types = dict[str, list[str]]
"""Of a stored value and of those in it, by where they are: the fields in their order, or the values of an enum."""


class Line(NamedTuple):
    kind: str
    tag: str
    version: int
    """The format of its kind in which it was first written."""
    value: Any
    """In words."""
    types: Types
    keys: list[str]
    """Under which it lies in its ledger."""
    hex: str
    """Empty: a tombstone."""

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.tag}-{self.version}"


class NotGolden(Exception):
    """Says what is wrong with a changed format."""


def read_lines() -> list[Line]:
    if not GOLDEN.exists():
        return []
    return [Line(**json.loads(line)) for line in GOLDEN.read_text("utf-8").splitlines()]


def newest(lines: Iterable[Line]) -> dict[tuple[str, str], Line]:
    return {(line.kind, line.tag): line for line in sorted(lines, key=lambda line: line.version)}


def samples() -> list[Sample]:
    return [*fact_samples(), journeys(), audit(), *file_samples()]


def line_of(sample: Sample) -> Line:
    """As this version writes it."""
    return Line(
        sample.kind,
        sample.tag,
        FORMATS[sample.kind],
        words(sample.value),
        types_of(type(sample.value)),
        [repr(key) for key in sample.keys],
        sample.encode().hex(),
    )


def words(value: Any) -> Any:
    """Plain data that can be read, and compared with what another version made of the same bytes."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return repr(value)
    if isinstance(value, msgspec.Struct):
        return {name: words(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: words(each) for name, each in zip(value._fields, value, strict=True)}
    if isinstance(value, Mapping):
        return {str(name): words(each) for name, each in value.items()}
    return [words(each) for each in value] if isinstance(value, list | tuple) else value


def types_of(made: type) -> Types:
    """Empty: a file, whose fields are nobody's but its own."""
    found: Types = {}
    if issubclass(made, msgspec.Struct):
        _spell(made, "", found)
    return found


def _spell(made: Any, path: str, found: Types) -> str:
    """Without names of classes: these may change."""
    if isinstance(made, type) and issubclass(made, Enum):
        found[path] = sorted(str(each.value) for each in made)
        return "enum"
    if isinstance(made, type) and (issubclass(made, msgspec.Struct) or hasattr(made, "_fields")):
        found[path] = []
        found[path] = [f"{name}: {_spell(each, f'{path}/{name}', found)}" for name, each in _fields(made)]
        return "object"
    if get_origin(made) in (Union, UnionType):
        return " | ".join(_spell(each, path, found) for each in get_args(made))
    if get_args(made):
        inner = [_spell(each, f"{path}[{place}]", found) for place, each in enumerate(get_args(made))]
        return f"{get_origin(made).__name__}[{', '.join(inner)}]"
    return "..." if made is ... else str(made.__name__)


def _fields(made: Any) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(made)
    for name in made.__struct_fields__ if issubclass(made, msgspec.Struct) else made._fields:
        yield name, hints[name]


def broken_rules(before: Types, now: Types) -> list[str]:
    """Fields may be added at the end, and values to an enum; nothing may go, move or become another type."""
    broken = []
    for path, old in before.items():
        new, where = now.get(path), path or "it"
        if new is None:
            broken.append(f"{where} is gone")
        elif old and ": " not in old[0]:
            broken += [f"{where} cannot be {value} any more" for value in old if value not in new]
        elif new[: len(old)] != old:
            broken.append(f"{where} had the fields {old} and now begins with {new[: len(old)]}")
    return broken


def new_lines() -> list[Line]:
    """What the golden file lacks. NotGolden: something was changed that must not be."""
    known = read_lines()
    last = newest(known)
    highest = {kind: max((line.version for line in known if line.kind == kind), default=0) for kind in FORMATS}
    made, wrong = [], []
    for line in map(line_of, samples()):
        before = last.get((line.kind, line.tag))
        if before is not None and before._replace(version=line.version) == line:
            continue
        rules = broken_rules(before.types, line.types) if before is not None else []
        if rules:
            wrong += [f"{line.kind} {line.tag}: {rule}" for rule in rules]
        elif line.version <= highest[line.kind]:
            what = "is changed" if before is not None else "is new"
            wrong.append(f"{line.kind} {line.tag} {what}: raise {line.kind!r} in goqueue/records/formats.py")
        made.append(line)
    if wrong:
        raise NotGolden("\n".join(sorted(set(wrong))))
    return made


def add_lines() -> list[Line]:
    made = new_lines()
    with GOLDEN.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line._asdict(), ensure_ascii=False) + "\n" for line in made)
    return made
