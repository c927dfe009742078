"""docs/cli.md, made from the same table as the parser and its help."""

from collections.abc import Iterator

from goqueue.cli.commands import GLOBAL_ARGS, GROUPS, PURPOSE
from goqueue.cli.commands.every import COMMANDS
from goqueue.cli.exits import EXIT_CODES
from goqueue.cli.table import OUTPUTS, Arg, Command

INTRODUCTION = f"""# The command line

<!-- Made by `goqueue reference` from src/goqueue/cli/commands/; a test compares. -->

{PURPOSE} `goqueue COMMAND --help` says the same as this page.

```bash
goqueue serve --dev --data-dir data
goqueue topic create orders -p 6 -r 168h
goqueue produce orders -m 'three apples' -k customer-7
goqueue consume orders --from-beginning
```

- The server: `--server` and `--context` take precedence over `GOQUEUE_SERVER`, `GOQUEUE_CONTEXT` and
  `GOQUEUE_API_KEY`. These take precedence over the current context of `~/.goqueue/config.yaml` (mode 0600). Without
  any of them it is `http://127.0.0.1:8080`.
- Durations are `168h`, `1h30m`, `500ms`; sizes `10GiB`; times RFC 3339 (`2026-11-16T10:00:00Z`) or relative to now
  (`-2h`, `+10m`).
- Answers go to stdout, everything else to stderr. Colours and progress are for terminals; `NO_COLOR` switches colours
  off.
- `-o json` and `-o yaml` print everything that the server answered, under the names of [http.md](http.md). `consume`
  and `produce` write one JSON object a line.
- `-o name` prints only the names of topics, groups and contexts, one a line.
- A command that asks one question over http takes about 0.13 s of CPU:
  [how](adr/0071-one-question-needs-no-event-loop.md).
- A command that destroys something asks you first. If there is nobody to ask, it refuses, unless you give `--force` or
  `--yes`.
- Completion works for the names of topics, groups and contexts, too: `source <(goqueue completion bash)`, likewise
  zsh; in fish `goqueue completion fish | source`.
"""


def reference_page() -> str:
    return "\n".join([INTRODUCTION, *_exit_codes(), *_shared(), *_commands()])


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield "| code | meaning |\n|---|---|"
    for code, meaning in EXIT_CODES.items():
        yield f"| {code} | {meaning} |"
    yield ""


def _shared() -> Iterator[str]:
    yield "## Flags of all commands that ask a server\n"
    yield from _table(GLOBAL_ARGS)


def _table(args: tuple[Arg, ...]) -> Iterator[str]:
    yield "| argument | meaning |\n|---|---|"
    for arg in args:
        yield f"| {_written(arg)} | {_escaped(arg.help)}{', needed' if arg.is_required else ''} |"
    yield ""


def _written(arg: Arg) -> str:
    if not arg.is_flag:
        name = f"[{arg.metavar}]" if arg.is_optional else arg.metavar
        return f"`{name}`"
    value = f" {arg.metavar}" if arg.takes_value else ""
    return ", ".join(f"`{_escaped(name + value)}`" for name in arg.names)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _commands() -> Iterator[str]:
    seen = set()
    for command in COMMANDS:
        group = command.words.split()[0]
        if group in GROUPS and group not in seen:
            seen.add(group)
            yield f"## goqueue {group}\n"
            yield f"{_sentence(GROUPS[group])}\n"
        yield from _command(command, "###" if group in GROUPS else "##")


def _command(command: Command, level: str) -> Iterator[str]:
    yield f"{level} goqueue {command.words}\n"
    yield f"{_sentence(command.summary)}\n"
    if command.about:
        yield f"{command.about}\n"
    if args := (*command.args, *command.more_args()):
        yield from _table(args)
    if command.outputs not in ((), OUTPUTS):
        yield f"Shapes (`-o`): {', '.join(command.outputs)}.\n"
    if command.examples:
        yield "\n".join(["```bash", *command.examples, "```", ""])


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
