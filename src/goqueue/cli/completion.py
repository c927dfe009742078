"""Scripts that complete commands and flags in a shell. They hold the whole table, so that a tab starts no process;
only names of topics, groups and contexts are asked for, where one is due.
"""

from collections.abc import Iterator

from goqueue.cli.commands import GLOBAL_ARGS, GROUPS
from goqueue.cli.commands.every import COMMANDS
from goqueue.cli.parser import args_of
from goqueue.cli.table import Arg, Command, output_arg

NAMES = {
    "topics": "topic list -o name --timeout 2s",
    "groups": "group list -o name --timeout 2s",
    "contexts": "config get-contexts -o name",
}
"""What tells them; nothing, if no node answers."""


def script(shell: str) -> str:
    from goqueue.cli.completion_fish import fish
    from goqueue.cli.completion_zsh import zsh

    return {"bash": bash, "zsh": zsh, "fish": fish}[shell]()


def top() -> dict[str, str]:
    """First words, and what they are for."""
    found: dict[str, str] = {}
    for command in COMMANDS:
        word = command.words.split()[0]
        found.setdefault(word, GROUPS.get(word, command.summary))
    return found


def under(group: str) -> dict[str, str]:
    begin = f"{group} "
    return {each.words.removeprefix(begin): each.summary for each in COMMANDS if each.words.startswith(begin)}


def flags(command: Command) -> list[Arg]:
    return [arg for arg in args_of(command) if arg.is_flag]


def first_flags() -> list[Arg]:
    """Those that may stand before the command."""
    return [output_arg(("table", "json", "yaml")), *GLOBAL_ARGS]


def valued() -> list[str]:
    """Flags that take a value wherever they are known."""
    every = [arg for command in COMMANDS for arg in flags(command)]
    alone = {name for arg in every if not arg.takes_value for name in arg.names}
    return sorted({name for arg in every if arg.takes_value for name in arg.names} - alone)


def takes_file(arg: Arg) -> bool:
    return arg.metavar in ("FILE", "PATH", "DIR")


def places(command: Command) -> list[Arg]:
    return [arg for arg in command.args if not arg.is_flag]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# -- bash


def bash() -> str:
    return "\n".join(
        [
            "# bash completion for goqueue; made by: goqueue completion bash",
            "_goqueue() {",
            '    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
            '    local words="" route="" names="" skip="" place=0 each',
            "    COMPREPLY=()",
            '    for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
            "        # bash takes http://host:1 apart; it is one value all the same",
            '        if [[ $each == : || $each == "=" ]]; then skip=yes; continue; fi',
            '        if [[ -n $skip ]]; then skip=""; continue; fi',
            '        case "$each" in',
            f"            {'|'.join(valued())}) skip=yes ;;",
            "            -*) ;;",
            f'            *) if [[ -z $route || " {" ".join(GROUPS)} " == *" $route "* ]]; then',
            '                   route="${route:+$route }$each"',
            "               else",
            "                   place=$((place + 1))",
            "               fi ;;",
            "        esac",
            "    done",
            '    case "$route $before" in',
            *_bash_values(),
            "        *) [[ -n $skip ]] && return",
            '           case "$route" in',
            *_bash_menus(),
            "           esac",
            "           if [[ $current != -* ]]; then",
            '               case "$route $place" in',
            *_bash_places(),
            "               esac",
            "           fi ;;",
            "    esac",
            '    case "$names" in',
            *(f'        {kind}) words="$("${{COMP_WORDS[0]}}" {asks} 2>/dev/null)" ;;' for kind, asks in NAMES.items()),
            "    esac",
            '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "}",
            "complete -F _goqueue goqueue",
            "",
        ]
    )


def _bash_menus() -> Iterator[str]:
    first = " ".join(name for arg in first_flags() for name in arg.names)
    yield f'               "") words="{" ".join(top())} {first} --help --version" ;;'
    for group in GROUPS:
        yield f'               "{group}") words="{" ".join(under(group))} --help" ;;'
    for command in COMMANDS:
        names = " ".join(name for arg in flags(command) for name in arg.names)
        yield f'               "{command.words}") words="{names} --help" ;;'


def _bash_values() -> Iterator[str]:
    for words, known in (("", first_flags()), *((command.words, flags(command)) for command in COMMANDS)):
        for arg in known:
            pattern = "|".join(f'"{words} {name}"' for name in arg.names)
            if arg.choices:
                yield f'        {pattern}) words="{" ".join(arg.choices)}" ;;'
            elif arg.names_of:
                yield f"        {pattern}) names={arg.names_of} ;;"
            elif takes_file(arg):
                yield f'        {pattern}) COMPREPLY=($(compgen -f -- "$current")); return ;;'


def _bash_places() -> Iterator[str]:
    for command in COMMANDS:
        for number, arg in enumerate(places(command)):
            if arg.choices:
                yield f'                   "{command.words} {number}") words="{" ".join(arg.choices)}" ;;'
            elif arg.names_of:
                yield f'                   "{command.words} {number}") names={arg.names_of} ;;'
