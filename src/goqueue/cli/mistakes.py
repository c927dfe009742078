"""Mistakes on the command line, in plain words: what was meant, perhaps, and what cannot be said together."""

import re
from argparse import Action, ArgumentError, ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from goqueue.cli.exits import EXIT_USAGE, complain

_QUOTED = re.compile(r"'([^']*)'")


class Parser(ArgumentParser):
    """Complains in our words, and says where help is."""

    def error(self, message: str) -> NoReturn:
        flags = [name for action in self._actions for name in action.option_strings]
        complain(f"goqueue: {in_plain_words(message, flags)}\n  see: {self.prog} --help", EXIT_USAGE)
        raise SystemExit(EXIT_USAGE)


class StoreOnce(Action):
    """A flag that takes one value: the second would silently win over the first."""

    def __call__(
        self,
        parser: ArgumentParser,  # noqa: ARG002  argparse's signature
        namespace: Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        said: set[str] = namespace.__dict__.setdefault("_said", set())
        if option_string is not None and self.dest in said:
            raise ArgumentError(None, f"{option_string} can be said only once")
        said.add(self.dest)
        setattr(namespace, self.dest, values)


def in_plain_words(message: str, flags: Sequence[str]) -> str:
    """`flags`: those that the command knows."""
    for pattern, words in _WORDS:
        if found := re.fullmatch(pattern, message):
            return words(found.groups(), flags)
    return message


def _no_choice(parts: Sequence[str], _flags: Sequence[str]) -> str:
    what, said, listed = parts
    choices = _QUOTED.findall(listed)
    if what == "COMMAND":
        return f"there is no command {said!r}{did_you_mean(said, choices)}"
    return f"{_flag(what)} cannot be {said!r}{did_you_mean(said, choices) or ': it can be ' + ', '.join(choices)}"


def _exclusive(parts: Sequence[str], _flags: Sequence[str]) -> str:
    one, other = map(_flag, parts)
    return f"{one} and {other} cannot be said together"


def _unknown(parts: Sequence[str], flags: Sequence[str]) -> str:
    said = parts[0].split()[0]
    if said.startswith("-"):
        return f"there is no flag {said}{did_you_mean(said.partition('=')[0], flags)}"
    return f"{parts[0]!r} is too much: nothing was expected here"


def _one_of(parts: Sequence[str], _flags: Sequence[str]) -> str:
    return f"say one of {', '.join(_flag(name) for name in parts[0].split())}"


def _missing(parts: Sequence[str], _flags: Sequence[str]) -> str:
    names = [_flag(name) for name in parts[0].split(", ")]
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} missing"


_WORDS: tuple[tuple[str, Callable[[Sequence[str], Sequence[str]], str]], ...] = (
    (r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", _no_choice),
    (r"argument (\S+): not allowed with argument (\S+)", _exclusive),
    (r"unrecognized arguments: (.*)", _unknown),
    (r"one of the arguments (.*) is required", _one_of),
    (r"the following arguments are required: (.*)", _missing),
    (r"argument (\S+): (.*)", lambda parts, _: f"{_flag(parts[0])}: {parts[1]}"),
)
"""What argparse says, and what we say instead."""


def _flag(name: str) -> str:
    """Of several spellings, the one that says most."""
    return name.rpartition("/")[2]


def did_you_mean(said: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(said, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
