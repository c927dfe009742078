"""Spans to a file that is turned over when it is full: traces.jsonl, then traces.jsonl.1, and so on; the oldest go."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from goqueue.telemetry.export_lines import lines_of
from goqueue.telemetry.spans import Span


class FileSink:
    name = "file"

    def __init__(self, path: Path, bytes_max: int, files_max: int) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._files_max = files_max
        """With the one that is written to."""
        self._file: BinaryIO | None = None

    def write(self, spans: Sequence[Span]) -> None:
        lines = lines_of(spans)
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab")
        if self._file.tell() and self._file.tell() + len(lines) > self._bytes_max:
            self._turn_over()
        self._file.write(lines)
        self._file.flush()

    def _turn_over(self) -> None:
        self.close()
        for number in range(self._files_max - 1, 0, -1):
            older = self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))
        self._file = self._path.open("wb")

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
