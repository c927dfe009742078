"""What a command is, as data: parser, help, completion and the reference in docs/ are all made from it."""

from collections.abc import Callable
from typing import Any, NamedTuple

ASKS = "asking.ask"
OUTPUTS = ("table", "json", "yaml")
OUTPUTS_OF_NAMES = (*OUTPUTS, "name")
"""Of lists: only the names, one a line."""


class Arg(NamedTuple):
    """One argument. With dashes it is a flag, without it is told by its place."""

    names: tuple[str, ...]
    help: str
    metavar: str = ""
    """Empty: it takes no value, it is on or off."""
    kind: Callable[[str], Any] = str
    default: Any = None
    choices: tuple[str, ...] = ()
    is_repeated: bool = False
    is_required: bool = False
    is_optional: bool = False
    """Of one without dashes: it may be left out."""
    one_of: str = ""
    """At most one of those with the same word here."""
    dest: str = ""
    names_of: str = ""
    """What it names, if a shell can complete it: topics, groups or contexts."""
    is_absent_by_default: bool = False
    """Not said is not the same as any value."""
    fields: tuple[str, ...] = ()
    """Of the operation that its command asks for, if not one of its own name; several, if its value has parts."""

    @property
    def is_flag(self) -> bool:
        return self.names[0].startswith("-")

    @property
    def takes_value(self) -> bool:
        return not self.is_flag or bool(self.metavar)

    @property
    def name(self) -> str:
        return self.dest or self.names[-1].lstrip("-").replace("-", "_")


class Shown(NamedTuple):
    """A column."""

    title: str
    value: str
    """A field of what is listed, or a text with fields in braces."""
    is_number: bool = False


class Asks(NamedTuple):
    """One operation, which is all that a command does; its arguments are fields of it."""

    operation: str
    """Module and name under goqueue.wire.rest.operations."""
    rows: str = ""
    """The field of the reply that is shown as a table; neither this nor `says`: all fields are shown."""
    columns: tuple[Shown, ...] = ()
    nothing: str = "nothing found"
    """Said where there are no rows."""
    silent: str = ""
    """The field of the reply with the nodes that did not answer."""
    says: str = ""
    """What was done, as a sentence with fields of the reply in braces."""
    keeps: tuple[str, ...] = ()
    """The fields that a program is given then; empty: all."""


class Command(NamedTuple):
    words: str
    """As one types it: `topic create`."""
    summary: str
    run: str
    """Module and function under goqueue.cli.run."""
    args: tuple[Arg, ...] = ()
    more_args: Callable[[], tuple[Arg, ...]] = tuple
    """Those that cost time to find out; asked for only where somebody looks."""
    about: str = ""
    """More, under the summary."""
    examples: tuple[str, ...] = ()
    outputs: tuple[str, ...] = OUTPUTS
    """Empty: it says nothing that could have another shape."""
    is_remote: bool = True
    """It asks a node: --server and the like mean something."""
    needs_loop: bool = False
    """It does several things at once, or tidies up at Ctrl-C. The others ask one thing after the other, and start
    faster without an event loop."""
    is_watched: bool = False
    """It shows how things are, and may do so again and again: --watch."""
    asks: Asks | None = None
    """Of one whose `run` is ASKS."""


def flag(*names: str, help: str, **more: Any) -> Arg:
    return Arg(names, help, **more)


def place(name: str, help: str, **more: Any) -> Arg:
    return Arg((name,), help, metavar=name.upper(), **more)


def watch_args(duration: Callable[[str], int]) -> tuple[Arg, ...]:
    return (
        flag("-w", "--watch", help="show it again and again, until Ctrl-C"),
        flag("--every", metavar="TIME", kind=duration, help="how often, with --watch (default 2s)"),
    )


def output_arg(outputs: tuple[str, ...]) -> Arg:
    return flag(
        "-o",
        "--output",
        help=f"shape of what is shown (default {outputs[0]})",
        metavar="|".join(outputs),
        choices=outputs,
        is_absent_by_default=True,
    )
