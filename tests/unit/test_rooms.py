"""The room rules of pyproject.toml: they agree with each other, and each of them can fail."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_type_hints

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.view.ports import named_parameters
from goqueue.broker.view.rules import OF_NODE, RULES
from tools.import_contracts import ANY_ROOM, parse_rows

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
LAYERS = [layer.strip("()") for layer in next(each["layers"] for each in CONTRACTS if each["type"] == "layers")]
ROWS = parse_rows(next(each["may_enter"] for each in CONTRACTS if each["type"] == "rooms"))


def lint(package_root: Path) -> str:
    """What import-linter says to our contracts over another package called goqueue."""
    result = subprocess.run(
        [
            Path(sys.executable).with_name("lint-imports"),
            "--no-logo",
            "--no-cache",
            "--config",
            ROOT / "pyproject.toml",
        ],
        env=os.environ | {"PYTHONPATH": f"{package_root}{os.pathsep}{ROOT}", "COLUMNS": "200"},
        cwd=package_root,
        capture_output=True,
        text=True,
        check=False,
    )
    return result.stdout + result.stderr


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A package with every room of the design, each of them empty but for a service, a value and a door with it."""
    for name in [
        "",
        *LAYERS,
        "doors/kafka",
        "doors/http",
        "broker/broker",
        "broker/gate",
        "machines/machine",
        "replica/standing",
    ]:
        room = tmp_path / "goqueue" / name
        room.mkdir(parents=True)
        (room / "__init__.py").touch()
    (tmp_path / "goqueue/broker/broker/__init__.py").write_text("class Broker: ...\nclass Place(tuple): ...\n")
    (tmp_path / "goqueue/doors/kafka/__init__.py").write_text("from goqueue.broker.broker import Place\n")
    return tmp_path


def test_every_room_has_a_row_and_every_name_is_a_room() -> None:
    assert list(ROWS) == LAYERS
    named = {room for row in ROWS.values() for room in row} - {ANY_ROOM}
    for contract in CONTRACTS:
        modules = [*contract.get("source_modules", []), *contract.get("forbidden_modules", [])]
        named |= {module.removeprefix("goqueue.") for module in modules if module.startswith("goqueue.")}
    assert named <= set(LAYERS)


def test_rows_open_downwards_only() -> None:
    for room, entered in ROWS.items():
        below = LAYERS[LAYERS.index(room) + 1 :]
        assert entered <= {*below, ANY_ROOM}


def test_every_room_that_exists_is_in_the_design() -> None:
    built = {path.parent.name for path in (ROOT / "src" / "goqueue").glob("*/__init__.py")}
    assert built <= set(LAYERS)


def test_a_house_that_keeps_the_rules_passes(house: Path) -> None:
    assert f"{len(CONTRACTS)} kept, 0 broken" in lint(house)


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("model", "import goqueue.records", "Rooms open downwards only"),
        ("attic", "", "Rooms open downwards only"),
        ("doors", "import goqueue.storage", "A room enters only the rooms of its row"),
        ("storage", "import goqueue.wire", "A room enters only the rooms of its row"),
        ("machines", "import time", "Pure rooms know no clock"),
        ("wire", "def now():\n    import asyncio", "Pure rooms know no clock"),
        ("doors/kafka", "import goqueue.doors.http", "Doors do not know each other"),
        ("doors/http", "import goqueue.broker.broker", "Doors get services from their view"),
        ("doors/http", "from goqueue.broker.broker import Broker", "Doors get services from their view"),
        ("doors/http", "import goqueue.machines.machine", "Doors know the commands of machines"),
        ("doors/http", "import goqueue.replica.standing", "Doors know a replica and not how it is kept"),
        ("client", "import goqueue.storage", "Client, Spark and integrations ship without the server"),
        ("spark", "import goqueue.node", "Client, Spark and integrations ship without the server"),
    ],
)
def test_each_rule_bites(house: Path, module: str, line: str, broken: str) -> None:
    room = house / "goqueue" / module
    room.mkdir(exist_ok=True)
    (room / "__init__.py").write_text(line)
    verdicts = [text for text in lint(house).splitlines() if text.startswith(broken)]
    assert [verdict.split()[-1] for verdict in verdicts[:1]] == ["BROKEN"]


def test_the_apis_use_what_the_rules_of_their_views_name() -> None:
    """Seen here without a request, so that whoever gives the broker another service or method finds it at once."""
    hints = get_type_hints(Broker)
    assert {*hints, "leases", "transaction_list"} == {*RULES, *OF_NODE, "audit"}, "the audit trail has its own port"
    unknown = set()
    for file in (ROOT / "src/goqueue/doors").rglob("*.py"):
        for service, name in re.findall(r"(?<!goqueue\.)\bbroker\.([a-z_]+)\.([a-z_]+)", file.read_text("utf-8")):
            rules = RULES.get(service)
            if rules is None or (service, name) == ("topics", "image"):
                continue
            named = {*rules.free, *rules.whole, *rules.lists, *rules.pages, *rules.parts}
            method, words = getattr(hints.get(service), name, None), tuple(rules.words.get(name, {}).items())
            if name not in named and not (callable(method) and any(named_parameters(method, words).visits)):
                unknown.add(f"{service}.{name}")
    assert unknown == set(), "say in goqueue.broker.view.rules what they tell, and of whom"
