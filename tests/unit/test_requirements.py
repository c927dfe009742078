"""What is installed is pinned, and each thing we chose has its line of why."""

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

from goqueue.cli.extras import MODULES, extra_of

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PIN = re.compile(r"([a-z0-9-]+)==[0-9][\w.]*")
CHOSEN_TOOLS = {
    "axe-core-python",
    "boto3",
    "fastapi",
    "faststream",
    "grimp",
    "hypothesis",
    "import-linter",
    "kio",
    "mypy",
    "promql-parser",
    "pytest",
    "pytest-xdist",
    "pyyaml",
    "ruff",
    "schemathesis",
    "setuptools",
    "types-protobuf",
    "types-pyyaml",
    "zensical",
}


def requirement_lines(name: str) -> list[str]:
    text = (ROOT / "requirements" / name).read_text("utf-8")
    return [line.partition("#")[0].strip() for line in text.splitlines() if line.partition("#")[0].strip()]


def pinned(name: str) -> set[str]:
    return {match[1] for line in requirement_lines(name) if (match := PIN.fullmatch(line))}


def names(requirements: Iterable[str]) -> set[str]:
    """Without those that name other extras of our own."""
    return {re.split(r"[<>=\[]", requirement)[0] for requirement in requirements} - {"goqueue"}


def declared() -> set[str]:
    return names(PROJECT["dependencies"])


def extras() -> set[str]:
    return names(chain.from_iterable(PROJECT["optional-dependencies"].values()))


@pytest.mark.parametrize("name", ["run.txt", "dev.txt"])
def test_every_requirement_is_pinned(name: str) -> None:
    assert [line for line in requirement_lines(name) if not PIN.fullmatch(line)] in ([], ["-r run.txt"])


def test_what_the_package_declares_is_what_we_pin() -> None:
    node = declared() | names(PROJECT["optional-dependencies"]["server"])
    assert node <= pinned("run.txt")
    assert extras() - node <= pinned("dev.txt")
    assert pinned("run.txt").isdisjoint(pinned("dev.txt"))
    assert CHOSEN_TOOLS <= pinned("run.txt") | pinned("dev.txt")


def test_all_is_every_extra() -> None:
    """But for the Java that most machines have."""
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert everything == f"goqueue[{','.join(sorted(PROJECT['optional-dependencies'].keys() - {'all', 'spark-java'}))}]"


def test_the_command_line_knows_what_each_extra_brings() -> None:
    """By the names that are imported: that is what Python says when one is missing."""
    imported: dict[str, set[str]] = {}
    for module, distributions in packages_distributions().items():
        for distribution in distributions:
            imported.setdefault(re.sub("[-_.]+", "-", distribution).lower(), set()).add(module)
    for name in chain.from_iterable(names(PROJECT["optional-dependencies"][extra]) for extra in MODULES):
        assert any(extra_of(module) for module in imported[name]), f"goqueue.cli.extras lacks {name}"


def test_every_choice_has_its_reason() -> None:
    decision = (ROOT / "docs" / "adr" / "0003-dependencies.md").read_text("utf-8")
    assert [name for name in sorted(declared() | extras() | CHOSEN_TOOLS) if f"`{name}`" not in decision] == []
