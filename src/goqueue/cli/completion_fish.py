"""The script for fish."""

from collections.abc import Iterator

from goqueue.cli.commands import GROUPS
from goqueue.cli.commands.every import COMMANDS
from goqueue.cli.completion import NAMES, first_flags, flags, places, quoted, takes_file, top, under, valued
from goqueue.cli.table import Arg

HEAD = f"""# fish completion for goqueue; made by: goqueue completion fish
# What was typed so far: the command, and how many words that are no flags come after it.
function __goqueue_typed
    set -l route
    set -l place 0
    set -l skip no
    for each in (commandline -opc)[2..]
        if test $skip = yes
            set skip no
        else if contains -- $each {" ".join(valued())}
            set skip yes
        else if string match -q -- '-*' $each
            continue
        else if test -z "$route"; or contains -- "$route" {" ".join(GROUPS)}
            set route (string trim "$route $each")
        else
            set place (math $place + 1)
        end
    end
    echo $route
    echo $place
end
function __goqueue_at
    set -l typed (__goqueue_typed)
    test "$typed[1]" = "$argv[1]"; and test (count $argv) -eq 1 -o "$typed[2]" = "$argv[2]"
end
complete -c goqueue -f"""


def fish() -> str:
    lines = [HEAD]
    for word, summary in top().items():
        lines.append(f"complete -c goqueue -n '__goqueue_at \"\"' -a {word} -d {quoted(summary)}")
    lines.append("complete -c goqueue -n '__goqueue_at \"\"' -l version -d 'show the version'")
    lines.append("complete -c goqueue -l help -s h -d 'show help'")
    lines += [_flag('__goqueue_at ""', arg) for arg in first_flags()]
    for group in GROUPS:
        for word, summary in under(group).items():
            lines.append(f"complete -c goqueue -n '__goqueue_at {group}' -a {word} -d {quoted(summary)}")
    for command in COMMANDS:
        lines += [_flag(f'__goqueue_at "{command.words}"', arg) for arg in flags(command)]
        lines += _places(command.words, places(command))
    return "\n".join([*lines, ""])


def _places(words: str, known: list[Arg]) -> Iterator[str]:
    for number, arg in enumerate(known):
        if arg.choices or arg.names_of:
            at = quoted(f'__goqueue_at "{words}" {number}')
            yield f"complete -c goqueue -n {at} -a {quoted(_candidates(arg))}"


def _flag(at: str, arg: Arg) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in arg.names)
    value = ""
    if arg.takes_value:
        value = " -r -F" if takes_file(arg) else f" -x -a {quoted(_candidates(arg))}"
    return f"complete -c goqueue -n {quoted(at)} {names}{value} -d {quoted(arg.help)}"


def _candidates(arg: Arg) -> str:
    if arg.names_of:
        return f"(goqueue {NAMES[arg.names_of]} 2>/dev/null)"
    return " ".join(arg.choices)
