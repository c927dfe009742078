"""From the table of commands to argparse."""

import re
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from goqueue.cli.commands import GLOBAL_ARGS, GROUPS, PURPOSE, commands_meant
from goqueue.cli.exits import EXIT_USAGE, complain
from goqueue.cli.mistakes import Parser, StoreOnce
from goqueue.cli.table import Arg, Command, output_arg, watch_args
from goqueue.cli.values import duration_ms

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_BEGINS_LIKE_A_NUMBER = re.compile(r"-[0-9]")


def args_of(command: Command) -> tuple[Arg, ...]:
    """Its own, and those that it shares with others."""
    shared = GLOBAL_ARGS if command.is_remote else ()
    args = (*command.args, *command.more_args())
    own = {name for arg in args for name in arg.names}
    shown: tuple[Arg, ...] = (output_arg(command.outputs),) if command.outputs else ()
    if command.is_watched:
        shown += watch_args(duration_ms)
    return (*args, *(arg for arg in (*shown, *shared) if own.isdisjoint(arg.names)))


def make_parser(arguments: Sequence[str], commands: Sequence[Command]) -> ArgumentParser:
    """Only the command that `arguments` mean gets its flags: the others would cost time and say nothing."""
    parser: ArgumentParser = Parser(prog="goqueue", description=PURPOSE, allow_abbrev=False)
    parser.set_defaults(command=None, refuse=parser.error, show_help=parser.format_help)
    parser.add_argument("--version", dest="is_version", action="store_true", help="show the version")
    for arg in (output_arg(("table", "json", "yaml")), *GLOBAL_ARGS):
        _add(parser, arg)
    menus: dict[str, _SubParsersAction[ArgumentParser]] = {
        "": parser.add_subparsers(title="commands", metavar="COMMAND")
    }
    for command in commands:
        group, _, word = command.words.rpartition(" ")
        if group not in menus:
            menus[group] = _add_group(menus[""], group)
        _add_command(menus[group], word, command, is_wanted={*command.words.split()} <= {*arguments})
    return parser


def _add_group(menu: "_SubParsersAction[ArgumentParser]", group: str) -> "_SubParsersAction[ArgumentParser]":
    parser = menu.add_parser(group, help=GROUPS[group], description=_sentence(GROUPS[group]), allow_abbrev=False)
    parser.set_defaults(refuse=parser.error, show_help=parser.format_help)
    return parser.add_subparsers(title="commands", metavar="COMMAND")


def _add_command(menu: "_SubParsersAction[ArgumentParser]", word: str, command: Command, *, is_wanted: bool) -> None:
    parser = menu.add_parser(
        word,
        help=command.summary.replace("%", "%%"),
        description="\n\n".join(filter(None, (_sentence(command.summary), command.about))),
        epilog="examples:\n" + "\n".join(f"  {line}" for line in command.examples) if command.examples else None,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=command, refuse=parser.error, show_help=parser.format_help)
    if not is_wanted:
        return
    groups: dict[str, Any] = {}
    for arg in args_of(command):
        if arg.one_of and arg.one_of not in groups:
            groups[arg.one_of] = parser.add_mutually_exclusive_group(required=arg.is_required)
        _add(groups[arg.one_of] if arg.one_of else parser, arg)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _add(parser: Any, arg: Arg) -> None:
    more: dict[str, Any] = {"help": arg.help.replace("%", "%%")}
    if arg.is_flag:
        more["dest"] = arg.name
        more["default"] = SUPPRESS if arg.is_absent_by_default else arg.default
        if arg.is_required and not arg.one_of:
            more["required"] = True
    elif arg.is_repeated:
        more["nargs"] = "*" if arg.is_optional else "+"
    elif arg.is_optional:
        more["nargs"] = "?"
    if not arg.takes_value:
        parser.add_argument(*arg.names, action="store_true", **{**more, "default": False})
        return
    if arg.is_flag and arg.is_repeated:
        more |= {"action": "append", "default": []}
    elif arg.is_flag and not arg.is_absent_by_default:  # settings may be overruled by who calls with more of them
        more["action"] = StoreOnce
    if arg.choices:
        more["choices"] = arg.choices
    parser.add_argument(*arg.names, type=arg.kind, metavar=arg.metavar, **more)


def joined(arguments: Sequence[str], commands: Sequence[Command]) -> list[str]:
    """`--from-time -2h` as `--from-time=-2h`: argparse takes what begins with a dash for a flag, even there."""
    wanting = {name for command in commands for arg in command.args if arg.takes_value for name in arg.names}
    found: list[str] = []
    for each in arguments:
        if found and found[-1] in wanting and found[-1].startswith("-") and _BEGINS_LIKE_A_NUMBER.match(each):
            last = found.pop()
            found.append(f"{last}={each}" if last.startswith("--") else f"{last}{each}")
        else:
            found.append(each)
    return found


def parse(arguments: Sequence[str]) -> Namespace:
    commands = commands_meant(arguments)
    given, rest = make_parser(arguments, commands).parse_known_args(joined(arguments, commands))
    if rest:
        given.refuse(f"unrecognized arguments: {' '.join(rest)}")  # by the command, which knows its flags
    return given


def show_help(given: Namespace) -> int:
    return complain(given.show_help().rstrip(), EXIT_USAGE)
