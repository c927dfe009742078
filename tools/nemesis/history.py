"""What clients asked and what they were told, with times: all that a checker knows.

A history is a file of JSON lines, two for each operation: one when it begins, one when it ends. An operation that has
no second line was never answered. `fail` means that it surely has not happened, `unknown` that it may have, also later.
All times of one machine are of one clock that no step changes, so that processes can be compared.
"""

import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TextIO

OK, FAIL, UNKNOWN = "ok", "fail", "unknown"
NEVER = math.inf


class Operation(NamedTuple):
    process: str
    """One thread of control: it waits for an answer before it asks again, unless its workload says otherwise."""
    what: str
    asked: Mapping[str, Any]
    began: float
    ended: float
    """NEVER: there was no answer."""
    outcome: str
    answer: Mapping[str, Any]

    @property
    def is_ok(self) -> bool:
        return self.outcome == OK


def kind_of(what: str, asked: Mapping[str, Any]) -> str:
    door = asked.get("door")
    return f"{what} ({door})" if door else what


class Fault(NamedTuple):
    """A promise that was broken."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class Window(NamedTuple):
    """A time in which something was done to nodes, and a while after it: some promises are weaker then."""

    begin: float
    end: float
    what: str = ""
    ahead_s: float = 0.0
    """By how much the clock of a node was wrong."""

    def touches(self, begin: float, end: float) -> bool:
        return self.begin <= end and begin <= self.end


class Asking:
    """An operation that has begun. It is answered once; whoever does not is told `unknown`."""

    def __init__(self, book: "Book", number: int, kind: str, began: float) -> None:
        self._book, self._number, self._kind, self._began = book, number, kind, began
        self._is_open = True

    def ok(self, **answer: Any) -> None:
        self._end(OK, answer)
        self._book.note_served(self._kind, self._began)

    def fail(self, why: object = "") -> None:
        self._end(FAIL, {"why": str(why)[:200]})

    def unknown(self, why: object = "") -> None:
        self._end(UNKNOWN, {"why": str(why)[:200]})

    def _end(self, outcome: str, answer: Mapping[str, Any]) -> None:
        if self._is_open:
            self._is_open = False
            self._book.write({"id": self._number, "type": outcome, "at": self._book.now(), "answer": answer})


class Book:
    """Writes a history; threads may share it. Lines are flushed at once: whoever writes may be killed."""

    def __init__(self, file: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self.now = now
        """Seconds of the one clock of this history; a simulation has one of its own."""
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._served: dict[str, float] = {}

    def begin(self, process: str, what: str, **asked: Any) -> Asking:
        number, began = next(self._numbers), self.now()
        line = {"id": number, "type": "invoke", "at": began, "process": process, "what": what}
        self.write(line | {"asked": asked})
        return Asking(self, number, kind_of(what, asked), began)

    def note_served(self, kind: str, began: float) -> None:
        with self._lock:
            self._served[kind] = max(began, self._served.get(kind, began))

    def unserved_since(self, at: float) -> list[str]:
        """Kinds of operations that were ok before, and none that began since then."""
        with self._lock:
            return sorted(kind for kind, began in self._served.items() if began < at)

    def write(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, separators=(",", ":")) + "\n"
        with self._lock:
            self._file.write(text)
            self._file.flush()


def read_history(lines: Iterable[str]) -> list[Operation]:
    """In the order in which they began. A torn last line is an answer that was not written."""
    begun: dict[int, dict[str, Any]] = {}
    ended: dict[int, dict[str, Any]] = {}
    for line in _whole_lines(lines):
        (begun if line["type"] == "invoke" else ended)[line["id"]] = line
    found = []
    for number, first in begun.items():
        last = ended.get(number, {"type": UNKNOWN, "at": NEVER, "answer": {}})
        found.append(
            Operation(
                first["process"],
                first["what"],
                first["asked"],
                first["at"],
                last["at"],
                last["type"],
                last["answer"],
            )
        )
    return sorted(found, key=lambda operation: operation.began)


def _whole_lines(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            return


def read_histories(folder: Path) -> list[Operation]:
    """Of all processes that wrote into it."""
    found: list[Operation] = []
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("r", encoding="utf-8") as file:
            found += read_history(file)
    return sorted(found, key=lambda operation: operation.began)
