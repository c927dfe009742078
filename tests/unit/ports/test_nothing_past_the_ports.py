"""ADR 0002 in the code: what a simulation must hold in its hand is asked for through ports, and nowhere else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src" / "goqueue"
FREE = ("ports", "testing", "cli", "spark")
"""The ports themselves, tests, and programs at the edge that no simulation runs."""
DICE = {"random", "secrets", "uuid.uuid1", "uuid.uuid4", "os.urandom", "os.getrandom"}
DICE_WORDS = {name.rpartition(".")[2] for name in DICE}
SOCKETS = {"create_server", "create_connection", "open_connection", "start_server", "create_datagram_endpoint"}
OWN_SOCKETS = ("client/grpc", "doors/grpc")
"""grpcio opens its sockets itself, in C."""


def sources(*words: str) -> Iterator[tuple[str, ast.AST]]:
    """Files that hold one of the words, which not many do."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.split("/")[0] not in FREE:
            text = path.read_text("utf-8")
            if any(word in text for word in words):
                yield name, ast.parse(text)


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Modules, names taken from them, and attributes of modules, as dotted names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.lineno, f"{node.value.id}.{node.attr}"


def dice_in(tree: ast.AST) -> list[tuple[int, str]]:
    return [(line, name) for line, name in imported(tree) if name in DICE]


def sockets_in(tree: ast.AST) -> list[tuple[int, str]]:
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [(call.lineno, call.attr) for call in calls if isinstance(call, ast.Attribute) and call.attr in SOCKETS]


def test_ids_secrets_and_jitter_come_from_the_dice_that_were_passed_in() -> None:
    assert {name: found for name, tree in sources(*DICE_WORDS) if (found := dice_in(tree))} == {}


@pytest.mark.parametrize(
    "line",
    ["import secrets", "from random import Random", "from uuid import uuid4", "import os; os.urandom(4)"],
)
def test_dice_of_ones_own_are_found(line: str) -> None:
    assert dice_in(ast.parse(line))


def test_connections_are_made_and_taken_through_the_network_that_was_passed_in() -> None:
    found = {name: sockets_in(tree) for name, tree in sources(*SOCKETS) if not name.startswith(OWN_SOCKETS)}
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_sockets_that_are_opened_past_the_port_are_found() -> None:
    assert sockets_in(ast.parse("async def f(loop): await loop.create_server(g, 'h', 1)"))
