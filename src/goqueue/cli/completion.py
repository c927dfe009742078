"""Scripts that complete commands and flags in a shell. They hold the whole table, so that a tab starts no process."""

from collections.abc import Iterator

from goqueue.cli.commands import COMMANDS, GROUPS
from goqueue.cli.parser import args_of
from goqueue.cli.table import Arg, Command


def script(shell: str) -> str:
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()


def _top() -> dict[str, str]:
    """First words, and what they are for."""
    found: dict[str, str] = {}
    for command in COMMANDS:
        word = command.words.split()[0]
        found.setdefault(word, GROUPS.get(word, command.summary))
    return found


def _under(group: str) -> dict[str, str]:
    begin = f"{group} "
    return {each.words.removeprefix(begin): each.summary for each in COMMANDS if each.words.startswith(begin)}


def _flags(command: Command) -> list[Arg]:
    return [arg for arg in args_of(command) if arg.is_flag]


def _names(command: Command) -> str:
    names = [name for arg in _flags(command) for name in arg.names]
    return " ".join([*names, *(word for arg in command.args if not arg.is_flag for word in arg.choices)])


# -- bash


def _bash() -> str:
    return "\n".join(
        [
            "# bash completion for goqueue; made by: goqueue completion bash",
            "_goqueue() {",
            '    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words="" path="" each',
            "    COMPREPLY=()",
            '    for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
            "        [[ $each == -* ]] && break",
            '        path="${path:+$path }$each"',
            '        [[ $path == *" "* ]] && break',
            "    done",
            '    case "$path" in',
            *_bash_menus(),
            *_bash_commands(),
            "    esac",
            '    case "${path%% *} $before" in',
            *_bash_choices(),
            "    esac",
            '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "    [[ -z $words || $before == --file || $before == --config || $before == --data-dir ]] &&",
            '        COMPREPLY=($(compgen -f -- "$current"))',
            "}",
            "complete -F _goqueue goqueue",
            "",
        ]
    )


def _bash_menus() -> Iterator[str]:
    yield f'        "") words="{" ".join(_top())} --help --version" ;;'
    for group in GROUPS:
        yield f'        "{group}") words="{" ".join(_under(group))} --help" ;;'


def _bash_commands() -> Iterator[str]:
    for command in COMMANDS:
        pattern = f'"{command.words}"' if " " in command.words else f'"{command.words}"|"{command.words} "*'
        yield f'        {pattern}) words="{_names(command)} --help" ;;'


def _bash_choices() -> Iterator[str]:
    lines: dict[str, str] = {}
    for command in COMMANDS:
        for arg in _flags(command):
            if arg.choices:
                for name in arg.names:
                    lines.setdefault(f"{command.words.split()[0]} {name}", " ".join(arg.choices))
    for pattern, choices in lines.items():
        yield f'        "{pattern}") words="{choices}" ;;'


# -- zsh


def _zsh() -> str:
    return "\n".join(
        [
            "#compdef goqueue",
            "# zsh completion for goqueue; made by: goqueue completion zsh",
            "_goqueue() {",
            '    local path="${words[2]}"',
            "    local -a menu",
            "    if (( CURRENT == 2 )); then",
            *_zsh_menu(_top(), 8),
            "        _describe command menu",
            "        return",
            "    fi",
            '    case "$path" in',
            *_zsh_groups(),
            "    esac",
            '    case "$path" in',
            *_zsh_commands(),
            "    esac",
            "}",
            'if [[ "$funcstack[1]" == _goqueue ]]; then _goqueue "$@"; else compdef _goqueue goqueue; fi',
            "",
        ]
    )


def _zsh_menu(menu: dict[str, str], indent: int) -> Iterator[str]:
    yield f"{' ' * indent}menu=("
    for word, summary in menu.items():
        yield f"{' ' * indent}    {_quoted(f'{word}:{summary}')}"
    yield f"{' ' * indent})"


def _zsh_groups() -> Iterator[str]:
    for group in GROUPS:
        yield f"        {group})"
        yield "            if (( CURRENT == 3 )); then"
        yield from _zsh_menu(_under(group), 16)
        yield "                _describe command menu"
        yield "                return"
        yield "            fi"
        yield '            path="$path ${words[3]}" ;;'


def _zsh_commands() -> Iterator[str]:
    for command in COMMANDS:
        yield f'        "{command.words}")'
        yield "            _arguments \\"
        for arg in _flags(command):
            for name in arg.names:
                yield f"                {_quoted(_zsh_flag(name, arg))} \\"
        words = [word for arg in command.args if not arg.is_flag for word in arg.choices]
        rest = f"*:value:({' '.join(words)})" if words else "*:value:_files"
        yield f"                {_quoted(rest)} ;;"


def _zsh_flag(name: str, arg: Arg) -> str:
    about = arg.help.replace("[", "(").replace("]", ")").replace(":", "\\:")
    value = f":{arg.metavar.replace(':', ' ')}:" if arg.takes_value else ""
    choices = (
        f"({' '.join(arg.choices)})" if arg.choices else "_files" if arg.metavar in ("FILE", "PATH", "DIR") else ""
    )
    return f"*{name}[{about}]{value}{choices if arg.takes_value else ''}"


# -- fish


def _fish() -> str:
    lines = ["# fish completion for goqueue; made by: goqueue completion fish", "complete -c goqueue -f"]
    for word, summary in _top().items():
        lines.append(f"complete -c goqueue -n __fish_use_subcommand -a {word} -d {_quoted(summary)}")
    for group in GROUPS:
        menu = _under(group)
        inside = f"__fish_seen_subcommand_from {group}; and not __fish_seen_subcommand_from {' '.join(menu)}"
        for word, summary in menu.items():
            lines.append(f"complete -c goqueue -n {_quoted(inside)} -a {word} -d {_quoted(summary)}")
    for command in COMMANDS:
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words.split())
        for arg in args_of(command):
            lines += _fish_arg(seen, arg)
    return "\n".join([*lines, ""])


def _fish_arg(seen: str, arg: Arg) -> Iterator[str]:
    begin = f"complete -c goqueue -n {_quoted(seen)}"
    if not arg.is_flag:
        if arg.choices:
            yield f"{begin} -a {_quoted(' '.join(arg.choices))}"
        return
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in arg.names)
    value = ""
    if arg.takes_value:
        value = f" -x -a {_quoted(' '.join(arg.choices))}" if arg.choices else " -r"
        value += " -F" if arg.metavar in ("FILE", "PATH", "DIR") else ""
    yield f"{begin} {names}{value} -d {_quoted(arg.help)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
