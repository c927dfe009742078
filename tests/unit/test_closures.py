"""No function inside a function holds itself: such a closure, and all that it holds, is left to the cycle collector."""

import ast
from pathlib import Path

import goqueue

SOURCE = Path(goqueue.__file__).parent
NOT_ON_THE_LOOP = {"spark", "cli"}
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if not NOT_ON_THE_LOOP & set(path.relative_to(SOURCE).parts)]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def self_holding(tree: ast.AST) -> list[str]:
    """Inner functions that name themselves, or another that leads back to them."""
    found = []
    for outer in ast.walk(tree):
        if isinstance(outer, Function):
            inner = {each.name: each for each in ast.walk(outer) if isinstance(each, Function) and each is not outer}
            uses = {name: _named_in(each) & inner.keys() for name, each in inner.items()}
            found += [f"{outer.name}.{name}" for name in inner if name in _reached(name, uses)]
    return found


def _named_in(function: Function) -> set[str]:
    return {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def _reached(name: str, uses: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    ahead = [*uses[name]]
    while ahead:
        each = ahead.pop()
        if each not in seen:
            seen.add(each)
            ahead += uses[each]
    return seen


def test_no_closure_holds_itself() -> None:
    found = {path.relative_to(SOURCE): self_holding(ast.parse(path.read_text("utf-8"))) for path in FILES}
    assert {path: names for path, names in found.items() if names} == {}, "use goqueue.model.again.Again"


def test_closures_that_hold_themselves_are_found() -> None:
    one = "def f():\n def g(): soon(g)\n g()\n"
    two = "def f():\n def g(): soon(h)\n def h(): soon(g)\n g()\n"
    none = "def f():\n def g(): soon(h)\n def h(): pass\n g()\n"
    assert [self_holding(ast.parse(text)) for text in (one, two, none)] == [["f.g"], ["f.g", "f.h"], []]
