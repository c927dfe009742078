"""Machines come and go: whoever kept one, or read one without its coordinator, would tell of a state that is no more.

Services ask their coordinator each time (`peek`), and doors ask services.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import goqueue

HOUSE = Path(goqueue.__file__).parent


def sources(room: str) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((HOUSE / room).rglob("*.py")):
        yield path.relative_to(HOUSE).as_posix(), ast.parse(path.read_text())


def attributes(tree: ast.AST, name: str) -> list[int]:
    return [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == name]


def test_no_door_and_no_service_reads_a_machine_past_its_coordinator() -> None:
    found = [
        f"{name}:{line}"
        for room in ("broker", "doors")
        for name, tree in sources(room)
        for line in attributes(tree, "machine")
    ]
    assert found == []


def test_no_door_peeks() -> None:
    found = [f"{name}:{line}" for name, tree in sources("doors") for line in attributes(tree, "peek")]
    assert found == []


def test_no_service_keeps_what_it_peeked_at() -> None:
    """`self._machine = coordinator.peek()` would outlive the machine."""
    found = []
    for name, tree in sources("broker"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and any(isinstance(target, ast.Attribute) for target in node.targets):
                call = node.value
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "peek":
                    found.append(f"{name}:{node.lineno}")
    assert found == []
