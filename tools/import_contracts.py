"""Contracts for import-linter, so that the whole design is written down once, before every room is built.

The contracts that ship with the tool refuse a name that does not exist yet; these let it wait. A misspelt room
cannot hide behind that: `tests/unit/test_rooms.py` holds every name against the list of layers.
"""

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType

import msgspec
from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.contracts.forbidden import ForbiddenContract

ANY_ROOM = "*"
VALUES = (tuple, Enum, msgspec.Struct, BaseException)


def parse_rows(rows: list[str]) -> dict[str, frozenset[str]]:
    """`"room: other another"` for each room, as a mapping from the room to the rooms that it may enter."""
    table: dict[str, frozenset[str]] = {}
    for row in rows:
        room, _, entered = row.partition(":")
        table[room.strip()] = frozenset(entered.split())
    return table


class RoomsContract(Contract):
    """Direct imports between the rooms of a package, held against a table of who may enter where."""

    type_name = "rooms"

    container = fields.StringField()
    may_enter = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        container = str(self.container)
        table = parse_rows(list(self.may_enter))  # type: ignore[call-overload]  # the field becomes its value
        broken = []
        for importer in sorted(graph.find_descendants(container)):
            room = _room(importer, container)
            allowed = table.get(room, frozenset()) | {room}
            if ANY_ROOM in allowed:
                continue
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                if imported.startswith(f"{container}.") and _room(imported, container) not in allowed:
                    lines = [
                        detail["line_number"]
                        for detail in graph.get_import_details(importer=importer, imported=imported)
                    ]
                    broken.append(f"{importer}:{lines[0]} enters {imported}, which is not in the row of {room}")
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for line in check.metadata["broken"]:
            output.print_error(line)


class EntrancesContract(Contract):
    """A room with few entrances: `importers` enter `room` by the modules that are listed, and by no other."""

    type_name = "entrances"

    importers = fields.StringField()
    room = fields.StringField()
    entrances = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        importers, room = str(self.importers), str(self.room)
        open_ones = {f"{room}.{each}" for each in self.entrances}  # type: ignore[attr-defined]  # as above
        broken = [
            f"{importer} enters {imported}, which is no entrance of {room}"
            for importer in sorted({importers, *graph.find_descendants(importers)})
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if imported.startswith(f"{room}.") and imported not in open_ones
        ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for line in check.metadata["broken"]:
            output.print_error(line)


class ValuesContract(Contract):
    """`importers` take values, constants and functions from `room`, and of its other classes those that are listed."""

    type_name = "values"

    importers = fields.StringField()
    room = fields.StringField()
    classes = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        importers, room = str(self.importers), str(self.room)
        listed = {f"{room}.{each}" for each in self.classes}  # type: ignore[attr-defined]  # as above
        broken = [
            f"{importer} takes {name}, which is no value and not listed"
            for importer in sorted({importers, *graph.find_descendants(importers)})
            for name in _taken(importer, room)
            if name not in listed and not _is_value(name)
        ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for line in check.metadata["broken"]:
            output.print_error(line)


class PlannedForbiddenContract(ForbiddenContract):
    """`forbidden`, in which a module of ours that is not built yet forbids nothing."""

    type_name = "planned_forbidden"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        root_packages = self.session_options["root_packages"]
        for name in ("source_modules", "forbidden_modules"):
            expressions = getattr(self, name)
            setattr(self, name, {each for each in expressions if _is_built(each.expression, graph, root_packages)})
        return super().check(graph, verbose)


def _taken(importer: str, room: str) -> Iterator[str]:
    """The names that a module imports from a room, each with its module."""
    spec = importlib.util.find_spec(importer)
    assert spec is not None, importer
    assert spec.origin is not None, importer
    for node in ast.walk(ast.parse(Path(spec.origin).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if f"{each.name}.".startswith(f"{room}."))
        elif isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{room}."):
            yield from (f"{node.module}.{each.name}" for each in node.names)


def _is_value(name: str) -> bool:
    """False: a module, or a class whose objects do something."""
    module, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(module), last, None)
    if isinstance(found, type):
        return issubclass(found, VALUES) or getattr(found, "_is_protocol", False)
    return found is not None and not isinstance(found, ModuleType)


def _is_built(module: str, graph: ImportGraph, root_packages: list[str]) -> bool:
    is_ours = module.partition(".")[0] in root_packages
    return not is_ours or module in graph.modules


def _room(module: str, container: str) -> str:
    return module.removeprefix(f"{container}.").partition(".")[0]
