"""The command: its words, its exit codes, and that asking for help is cheap. Running nodes are in acceptance."""

import asyncio
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from goqueue.cli.main import main
from goqueue.node.settings import SPECS
from goqueue.testing import broker
from tests.unit.testing.loops import in_loop

GOQUEUE = Path(sys.executable).with_name("goqueue")


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_is_that_of_the_installed_package(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"goqueue {version('goqueue')}\n"


def test_no_command_shows_the_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "serve" in capsys.readouterr().err


def test_every_setting_has_a_flag_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["serve", "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    for spec in SPECS:
        assert f"{spec.flag} " in shown
        assert spec.variable in "".join(shown.split())


def test_a_shortened_flag_is_not_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["serve", "--segment-b", "1MiB"])
    assert stopped.value.code == 2
    assert "--segment-b" in capsys.readouterr().err


def test_bad_settings_are_listed_for_a_person(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOQUEUE_LOG_LEVEL", "loud")
    assert main(["serve", "--segment-bytes", "1", "--retention-ms", "-2"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "goqueue: these settings cannot be used:"
    assert [line.split()[0] for line in lines[1:]] == ["GOQUEUE_LOG_LEVEL", "--segment-bytes", "--retention-ms"]


LIGHT = re.compile(
    r"goqueue(\.cli(\.(main|call|exits|mistakes|parser|table|values|commands(\.\w+)?|run(\.runners)?|bench(\.arguments)?))?)?"
    r"|goqueue\.model(\.errors)?"
    r"|goqueue\.spark(\.jobs(\.(table|words))?)?"
)
"""What help may need of ours. A start takes 100 ms at most, and `import` is what could change that."""
HEAVY = {"asyncio", "dataclasses", "email", "http", "importlib.metadata", "inspect", "json", "logging", "socket", "ssl"}


@pytest.mark.parametrize("command", [["--help"], ["topic", "--help"], ["topic", "create", "--help"]])
def test_help_loads_nothing_heavy(command: list[str]) -> None:
    loaded = _loaded_by(command)
    assert {name for name in loaded if name.startswith("goqueue") and not LIGHT.fullmatch(name)} == set()
    roots = {name.partition(".")[0] for name in loaded} - {"goqueue"}
    assert roots <= sys.stdlib_module_names, "no library before a command runs"
    assert loaded & HEAVY == set()


@pytest.mark.parametrize("command", [["serve", "--help"], ["bench", "produce", "--help"]])
def test_help_of_what_has_settings_loads_no_node(command: list[str]) -> None:
    heavy = {"aiokafka", "asyncio", "confluent_kafka", "logging", "socket", "structlog", "tomllib", "uvloop"}
    assert _loaded_by(command) & heavy == set()


SLOW = {
    *("asyncio", "logging", "random", "ssl"),
    *("anyio", "certifi", "httpcore", "httpx", "rich", "structlog", "yaml"),
    *("goqueue.node.settings", "goqueue.ports.network", "goqueue.wire.rest.groups", "goqueue.wire.rest.schemas"),
}


@pytest.mark.parametrize("question", [["topic", "list"], ["-o", "json", "topic", "list"]])
@in_loop
async def test_a_question_to_a_node_loads_what_it_needs(question: list[str]) -> None:
    async with broker(http=True) as b:
        await b.create_topic("orders")
        loaded = await asyncio.to_thread(_loaded_by, [*question, "--server", b.http])
    assert "goqueue.wire.rest.operations.infrastructure" in loaded, "it was asked"
    assert loaded & SLOW == set()
    assert {name for name in loaded if name.startswith("goqueue.cli.commands.")} == {"goqueue.cli.commands.topics"}


@in_loop
async def test_a_question_goes_to_the_next_of_several_nodes() -> None:
    async with broker(http=True) as b:
        await b.create_topic("orders")
        told = await asyncio.to_thread(_told_by, ["topic", "list", "-o", "name", "-s", f"127.0.0.1:1,{b.http}"])
    assert (told.stdout, told.stderr, told.returncode) == ("orders\n", "", 0)


def _told_by(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([GOQUEUE, *command], capture_output=True, text=True, check=False)


def _loaded_by(command: list[str]) -> set[str]:
    """Beyond what Python itself loads at its start."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "from goqueue.cli.main import main\n"
        f"try: main({command})\n"
        "except SystemExit: pass\n"
        "print(*sorted(set(sys.modules) - before), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stderr.split())
