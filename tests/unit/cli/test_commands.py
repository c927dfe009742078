"""The table of commands: everything in it can be run, is explained, and stands in docs/cli.md as it is."""

import re
import shlex
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from goqueue.cli.commands import GROUPS, HOMES, commands_beginning, commands_meant
from goqueue.cli.commands.every import COMMANDS
from goqueue.cli.completion import script
from goqueue.cli.main import main
from goqueue.cli.parser import args_of, joined, parse
from goqueue.cli.reference import reference_page
from goqueue.cli.run.asking import operation_of
from goqueue.cli.run.runners import runner
from goqueue.cli.table import ASKS, Command

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"
GOQUEUE = Path(sys.executable).with_name("goqueue")
WANTED = """serve, topic list|create|describe|alter|trim|purge|pause|resume|compact|delete, produce, consume,
group list|describe|delete|offsets|settle|reset-offsets|pause|resume|fork|forks|compare|promote,
dlq list|show|redrive|stop|discard|purge,
delay list|cancel|reschedule, schedule list|set|run|pause|resume|delete, replay, trace list|get|search|stats, why, top,
schema list|register|get|check|delete|config,
cluster info|health|status|nodes|partitions|events|elect|recover|ready|dev,
user create|list|change|delete, key create|list|rotate|delete, acl create|list|delete, quota set|list|describe|delete,
tenant create|list|describe|update|suspend|activate|disable|delete|quotas|usage, audit,
admin reset|rekey, config view|get-contexts|use-context|set-context|delete-context,
pipeline serve|status|archive|restore|backfill|reconcile|report|dlq,
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


def test_a_word_leads_to_its_commands() -> None:
    words = dict.fromkeys(each.words.split()[0] for each in COMMANDS)
    assert list(HOMES) == list(words)
    for word in words:
        assert commands_beginning(word) == tuple(each for each in COMMANDS if each.words.split()[0] == word)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("topic list", "topic"),
        ("-s http://a:1 --output json topic list", "topic"),
        ("--server=http://a:1 topic list", "topic"),
        ("-s topic group list", "group"),
        ("tpoic list", ""),
        ("--help topic", ""),
        ("", ""),
    ],
)
def test_the_first_word_says_which_commands_are_meant(line: str, word: str) -> None:
    assert commands_meant(line.split()) == (commands_beginning(word) if word else COMMANDS)


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


ASKING = [command for command in COMMANDS if command.asks is not None]


def _fields_named(text: str) -> set[str]:
    """In braces, or the whole of it."""
    return set(re.findall(r"{(\w+)}", text)) or {text}


@pytest.mark.parametrize("command", ASKING, ids=names)
def test_a_command_that_is_one_operation_names_what_that_takes_and_gives(command: Command) -> None:
    asks = command.asks
    assert asks is not None
    operation = operation_of(asks.operation)
    said = {name for arg in command.args for name in arg.fields or (arg.name,)}
    assert said <= operation.places.keys()
    needed = {field.encode_name for kind in (operation.path_type, operation.body_type) if kind for field in needs(kind)}
    assert needed <= {operation.places[name].name for name in said}
    reply = operation.reply
    if asks.rows:
        (reply,) = get_args(get_type_hints(reply)[asks.rows])
    told = {field.encode_name for field in fields(reply)}
    shown = {name for column in asks.columns for name in _fields_named(column.value)}
    assert shown | set(asks.keeps) | (_fields_named(asks.says) if asks.says else set()) <= told


def needs(kind: type[Struct]) -> list[FieldInfo]:
    return [field for field in fields(kind) if field.required]


def test_only_commands_that_ask_for_an_operation_are_run_as_such() -> None:
    assert [each.words for each in COMMANDS if each.run == ASKS and each.asks is None] == []


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
    given = joined(["consume", "t", "--from-time", "-2h", "-n", "5"], COMMANDS)
    assert given == ["consume", "t", "--from-time=-2h", "-n", "5"]
    assert parse(["topic", "create", "t", "-r", "-1"]).retention == -1
    assert joined(["topic", "list", "-o", "json"], COMMANDS) == ["topic", "list", "-o", "json"]


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
