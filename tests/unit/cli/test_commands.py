"""The table of commands: everything in it can be run, is explained, and stands in docs/cli.md as it is."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from goqueue.cli.commands import COMMANDS, GROUPS
from goqueue.cli.completion import script
from goqueue.cli.main import main
from goqueue.cli.parser import args_of, joined, parse
from goqueue.cli.reference import reference_page
from goqueue.cli.run.runners import runner
from goqueue.cli.table import Command

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"
GOQUEUE = Path(sys.executable).with_name("goqueue")
WANTED = """serve, topic list|create|describe|alter|trim|purge|delete, produce, consume,
group list|describe|delete|offsets|reset-offsets, dlq list|show|redrive|purge, delay list|cancel|reschedule,
schedule list|set|delete, replay, trace list|get|search|stats, why, top, schema list|register|get|check|delete|config,
cluster info|health|nodes, config view|get-contexts|use-context|set-context|delete-context,
pipeline archive|restore|replay|backfill|reconcile|report|dlq|run,
bench produce|consume|queue|latency, doctor, repair, version,
completion, reference"""


def names(command: Command) -> str:
    return command.words


def test_all_commands_are_there() -> None:
    wanted = set()
    for entry in WANTED.replace("\n", " ").split(","):
        first, _, rest = entry.strip().partition(" ")
        wanted |= {f"{first} {word}" for word in rest.split("|")} if rest else {first}
    assert {command.words for command in COMMANDS} == wanted


@pytest.mark.parametrize("command", COMMANDS, ids=names)
def test_a_command_can_be_run_and_is_explained(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    if command.run != "bench.run":  # imports the load, which is an extra
        assert callable(runner(command.run))
    with pytest.raises(SystemExit) as stopped:
        main([*command.words.split(), "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: goqueue {command.words} ")
    for arg in args_of(command):
        assert arg.help
        for name in arg.names:
            assert (name if arg.is_flag else arg.metavar) in shown
    for example in command.examples:
        assert example in shown


@pytest.mark.parametrize("command", COMMANDS, ids=names)
def test_examples_can_be_parsed(command: Command) -> None:
    for example in command.examples:
        line = re.sub(r".*\| |^source <\(|\)$| >.*", "", example)
        words = shlex.split(line)
        assert words[0] == "goqueue"
        assert parse(words[1:]).command == command


def test_the_page_is_what_the_table_says() -> None:
    assert PAGE.read_text("utf-8") == reference_page(), "make it anew with: goqueue reference > docs/cli.md"


def test_times_may_begin_with_a_dash() -> None:
    given = joined(["consume", "t", "--from-time", "-2h", "-n", "5"])
    assert given == ["consume", "t", "--from-time=-2h", "-n", "5"]
    assert parse(["topic", "create", "t", "-r", "-1"]).retention == -1
    assert joined(["topic", "list", "-o", "json"]) == ["topic", "list", "-o", "json"]


def test_flags_of_all_commands_may_stand_before_and_behind() -> None:
    for words in (["-o", "json", "-s", "x", "topic", "list"], ["topic", "list", "-o", "json", "-s", "x"]):
        given = parse(words)
        assert (given.output, given.server) == ("json", "x")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_flag_is_in_every_script(shell: str) -> None:
    text = script(shell)
    for word in {word for command in COMMANDS for word in command.words.split()} | GROUPS.keys():
        assert word in text
    for command in COMMANDS:
        for arg in args_of(command):
            for name in arg.names if arg.is_flag else ():
                assert (name.lstrip("-") if shell == "fish" else name) in text
