"""The script for zsh."""

from collections.abc import Iterator

from goqueue.cli.commands import GROUPS
from goqueue.cli.commands.every import COMMANDS
from goqueue.cli.completion import NAMES, first_flags, flags, places, quoted, takes_file, top, under
from goqueue.cli.table import Arg


def zsh() -> str:
    valued = "|".join(name for arg in first_flags() for name in arg.names)
    return "\n".join(
        [
            "#compdef goqueue",
            "# zsh completion for goqueue; made by: goqueue completion zsh",
            *_names(),
            "_goqueue() {",
            "    local program=${words[1]} route",
            "    local -a menu",
            "    # what stands before the command is passed over",
            "    while (( CURRENT > 2 )) && [[ ${words[2]} == -* ]]; do",
            f"        if [[ ${{words[2]}} == ({valued}) ]]; then",
            "            (( CURRENT == 3 )) && break",
            "            words=(${words[1]} ${words[4,-1]}); (( CURRENT -= 2 ))",
            "        else",
            "            words=(${words[1]} ${words[3,-1]}); (( CURRENT -= 1 ))",
            "        fi",
            "    done",
            "    if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then",
            *_menu(top(), 8),
            "        return",
            "    fi",
            "    if [[ ${words[2]} == -* ]]; then",
            "        _arguments \\",
            *_flags(first_flags(), 12),
            "            '--help[show help]' '--version[show the version]'",
            "        return",
            "    fi",
            "    route=${words[2]}",
            "    shift words; (( CURRENT -= 1 ))",
            '    case "$route" in',
            *_groups(),
            "    esac",
            '    case "$route" in',
            *_commands(),
            "    esac",
            "}",
            'if [[ "$funcstack[1]" == _goqueue ]]; then _goqueue "$@"; else compdef _goqueue goqueue; fi',
            "",
        ]
    )


def _names() -> Iterator[str]:
    for kind, asks in NAMES.items():
        yield f"_goqueue_{kind}() {{"
        yield "    local -a found"
        yield f'    found=("${{(@f)$(_call_program {kind} $program {asks} 2>/dev/null)}}")'
        yield f"    compadd -a found  # {kind}"
        yield "}"


def _menu(menu: dict[str, str], indent: int) -> Iterator[str]:
    yield f"{' ' * indent}menu=("
    for word, summary in menu.items():
        yield f"{' ' * indent}    {quoted(f'{word}:{summary}')}"
    yield f"{' ' * indent})"
    yield f"{' ' * indent}_describe command menu"


def _groups() -> Iterator[str]:
    for group in GROUPS:
        yield f"        {group})"
        yield "            if (( CURRENT == 2 )); then"
        yield from _menu(under(group), 16)
        yield "                return"
        yield "            fi"
        yield '            route="$route ${words[2]}"'
        yield "            shift words; (( CURRENT -= 1 )) ;;"


def _commands() -> Iterator[str]:
    for command in COMMANDS:
        yield f'        "{command.words}")'
        yield "            _arguments -S \\"
        yield from _flags(flags(command), 16)
        for arg in places(command):
            yield f"                {quoted(f':{arg.metavar.lower()}:{_value(arg)}')} \\"
        yield "                '--help[show help]' ;;"


def _flags(known: list[Arg], indent: int) -> Iterator[str]:
    for arg in known:
        for name in arg.names:
            yield f"{' ' * indent}{quoted(_flag(name, arg))} \\"


def _flag(name: str, arg: Arg) -> str:
    about = arg.help.replace("[", "(").replace("]", ")").replace(":", "\\:")
    if not arg.takes_value:
        return f"*{name}[{about}]"
    return f"*{name}[{about}]:{arg.metavar.replace(':', ' ')}:{_value(arg)}"


def _value(arg: Arg) -> str:
    if arg.choices:
        return f"({' '.join(arg.choices)})"
    if arg.names_of:
        return f"_goqueue_{arg.names_of}"
    return "_files" if takes_file(arg) else " "
