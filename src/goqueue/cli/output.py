"""What a command shows: a table for a person, JSON or YAML for a program. Colours only where a person looks."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TextIO
from unicodedata import combining, east_asian_width

import msgspec

from goqueue.node.environment import COLOUR_VARIABLE, client_environment

CELL_CHARS_MAX = 200
GAP = "  "
BOLD, GREEN, YELLOW, RED, PLAIN = "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
GOOD = frozenset(("ok", "pass", "Stable", "completed", "done", "yes", "up"))
MIDDLING = frozenset(("warn", "Rebalancing", "pending", "running", "stopped"))
BAD = frozenset(("fail", "error", "failed", "Dead", "no", "down"))


class Column(NamedTuple):
    title: str
    value: Callable[[Any], Any]
    is_number: bool = False
    is_name: bool = False


def column(title: str, name: str, *, is_number: bool = False) -> Column:
    return Column(title, lambda item: getattr(item, name), is_number)


def number(title: str, name: str) -> Column:
    return column(title, name, is_number=True)


class Output:
    def __init__(self, form: str, stream: TextIO | None = None) -> None:
        self.form = form
        self._stream = stream or sys.stdout
        self._is_coloured = self._stream.isatty() and not client_environment().get(COLOUR_VARIABLE)

    @property
    def is_for_a_person(self) -> bool:
        return self.form == "table"

    def rows(self, items: Sequence[Any], columns: Sequence[Column], *, nothing: str = "nothing found") -> None:
        """Many things of a kind."""
        if self.form == "name":
            named = next(each for each in columns if each.is_name)
            for item in items:
                self.line(safe(named.value(item)))
        elif not self.is_for_a_person:
            self.data([plain(item) for item in items])
        elif items:
            self.table([each.title for each in columns], _cells(items, columns), [each.is_number for each in columns])
        else:
            print(nothing, file=sys.stderr)

    def facts(self, item: Any, shown: Mapping[str, Any] | None = None) -> None:
        """One thing, as names and values. `shown`: what a person wants to know of it."""
        if not self.is_for_a_person:
            self.data(plain(item))
            return
        facts = shown if shown is not None else {name: timed(name, value) for name, value in plain(item).items()}
        width = max(map(width_of, facts), default=0)
        for name, value in facts.items():
            self.line(f"{self._paint(BOLD, padded(f'{name}:', width + 1))} {self._mood(cell(value))}")

    def done(self, sentence: str, item: Any) -> None:
        """Something was done: a sentence for a person, facts for a program."""
        if self.is_for_a_person:
            self.line(sentence)
        else:
            self.data(plain(item))

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[str]], are_numbers: Sequence[bool]) -> None:
        widths = [max(map(width_of, texts)) for texts in zip(titles, *rows)]
        self.line(self._paint(BOLD, _aligned(titles, widths, are_numbers)))
        for row in rows:
            cells = _padded(row, widths, are_numbers)
            self.line(GAP.join(self._mood(text) for text in cells).rstrip())

    def heading(self, text: str) -> None:
        if self.is_for_a_person:
            self.line(f"\n{self._paint(BOLD, text)}")

    def data(self, item: Any) -> None:
        if self.form == "yaml":
            import yaml

            self._stream.write(yaml.safe_dump(item, sort_keys=False, allow_unicode=True))
        else:
            self.line(json.dumps(item, indent=2, ensure_ascii=False))

    def line(self, text: str) -> None:
        self._stream.write(f"{text}\n")

    def raw(self, content: bytes) -> None:
        """Bytes as they are, for a program to read."""
        self._stream.flush()
        self._stream.buffer.write(content)

    def flush(self) -> None:
        self._stream.flush()

    def _mood(self, text: str) -> str:
        word = text.strip()
        colour = GREEN if word in GOOD else YELLOW if word in MIDDLING else RED if word in BAD else ""
        return self._paint(colour, text) if colour else text

    def _paint(self, colour: str, text: str) -> str:
        return f"{colour}{text}{PLAIN}" if self._is_coloured else text


def plain(item: Any) -> Any:
    return msgspec.to_builtins(item)


def cell(value: Any) -> str:
    if value is None or value is msgspec.UNSET:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        text = ", ".join(f"{name}={cell(each)}" for name, each in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        text = ", ".join(map(cell, value))
    else:
        text = str(value)
    text = safe(text)
    return text if len(text) <= CELL_CHARS_MAX else f"{text[: CELL_CHARS_MAX - 3]}..."


def timed(field: str, value: Any) -> Any:
    """What a person wants to see of a field: some operations tell times in milliseconds."""
    if field.endswith(("_at", "at_ms")) and type(value) is int:
        from goqueue.model.moments import format_moment  # not before it is needed: datetime takes its time

        return format_moment(value)
    return value


def safe(text: str) -> str:
    """What somebody published must not drive a terminal: what does not print is shown by its number."""
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def width_of(text: str) -> int:
    """In columns of a terminal: Chinese letters and most pictures take two, accents that follow a letter none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def padded(text: str, width: int, *, to_the_right: bool = False) -> str:
    gap = " " * (width - width_of(text))
    return gap + text if to_the_right else text + gap


def size(size_bytes: int) -> str:
    shown, unit = float(size_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if shown < 1024 or unit == "TiB":
            break
        shown /= 1024
    return f"{size_bytes} B" if unit == "B" else f"{shown:.1f} {unit}"


def count(number_of: int, what: str) -> str:
    return f"{number_of:,} {what}{'' if number_of == 1 else 's'}"


def _cells(items: Iterable[Any], columns: Sequence[Column]) -> list[list[str]]:
    return [[cell(each.value(item)) for each in columns] for item in items]


def _padded(texts: Sequence[str], widths: Sequence[int], are_numbers: Sequence[bool]) -> list[str]:
    return [padded(text, width, to_the_right=is_number) for text, width, is_number in zip(texts, widths, are_numbers)]


def _aligned(texts: Sequence[str], widths: Sequence[int], are_numbers: Sequence[bool]) -> str:
    return GAP.join(_padded(texts, widths, are_numbers)).rstrip()
