"""What a job says: a line of progress for a person at a terminal, notes, tables, and a summary at the end."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, TextIO

INTERVAL_S = 0.2
CLEAR = "\r\x1b[K"
CELL_CHARS_MAX = 80


class Teller:
    """Answers go to stdout, all else to stderr. As JSON the answers are one object, which `end` writes."""

    def __init__(self, form: str = "table", out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._form = form
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._next_s = 0.0
        self._answers: dict[str, Any] = {}

    def progress(self, text: str) -> None:
        if self._err.isatty() and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + INTERVAL_S
            self._err.write(f"{CLEAR}{text}")
            self._err.flush()

    def note(self, text: str) -> None:
        self.clear()
        self._err.write(f"goqueue: {text}\n")
        self._err.flush()

    def clear(self) -> None:
        if self._err.isatty():
            self._err.write(CLEAR)

    def rows(self, name: str, rows: Sequence[Mapping[str, Any]], *, nothing: str = "") -> None:
        """Many things of a kind, under a heading."""
        self._answers[name] = [plain(row) for row in rows]
        if self._form != "table":
            return
        self.clear()
        if rows:
            self._out.write(f"\n{name.replace('_', ' ').capitalize()}\n" + table(rows))
        elif nothing:
            self._out.write(f"{nothing}\n")

    def facts(self, sentence: str, facts: Mapping[str, Any]) -> None:
        """What was done: a sentence for a person, facts for a program."""
        self._answers |= plain(facts)
        if self._form == "table":
            self.clear()
            self._out.write(f"{sentence}\n")

    def end(self) -> None:
        if self._form == "json" and self._answers:
            self._out.write(json.dumps(self._answers, indent=2, ensure_ascii=False) + "\n")
        self._out.flush()


class Totals:
    """What has gone through, and how fast."""

    def __init__(self) -> None:
        self.records = 0
        self.bytes: int | None = 0
        """None: what some of them take is not known."""
        self._began_s = time.monotonic()

    def add(self, records: int, size_bytes: int | None) -> None:
        """Of no records nobody need know how many bytes they are."""
        self.records += records
        if records:
            self.bytes = None if self.bytes is None or size_bytes is None else self.bytes + size_bytes

    def facts(self) -> dict[str, Any]:
        seconds = time.monotonic() - self._began_s
        a_second = round(self.records / seconds) if seconds else 0
        return {"records": self.records, "bytes": self.bytes, "seconds": round(seconds, 3), "rows_per_second": a_second}

    def __str__(self) -> str:
        facts = self.facts()
        how_large = "" if self.bytes is None else f" {size(self.bytes)},"
        what = "message" if self.records == 1 else "messages"
        return f"{self.records:,} {what},{how_large} {facts['seconds']:.1f} s, {facts['rows_per_second']:,} a second"


def size(size_bytes: float) -> str:
    shown, unit = float(size_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if shown < 1024 or unit == "TiB":
            break
        shown /= 1024
    return f"{size_bytes:.0f} B" if unit == "B" else f"{shown:.1f} {unit}"


def plain(value: Any) -> Any:
    """As JSON can say it."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="replace")
    return value


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    titles = list(rows[0])
    cells = [[cell(row[title]) for title in titles] for row in rows]
    heads = [title.replace("_", " ").upper() for title in titles]
    widths = [max(map(len, texts)) for texts in zip(heads, *cells)]
    numbers = [all(isinstance(row[title], int | float | None) for row in rows) for title in titles]
    lines = [
        "  ".join(
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(texts, widths, numbers)
        ).rstrip()
        for texts in (heads, *cells)
    ]
    return "\n".join([*lines, ""])


def cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    text = str(plain(value))
    # What somebody published must not drive a terminal.
    text = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
    return text if len(text) <= CELL_CHARS_MAX else f"{text[: CELL_CHARS_MAX - 3]}..."
