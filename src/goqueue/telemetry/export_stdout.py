"""Spans to the standard output, for whoever collects that."""

import sys
from collections.abc import Sequence
from typing import BinaryIO

from goqueue.telemetry.export_lines import lines_of
from goqueue.telemetry.spans import Span


class StdoutSink:
    name = "stdout"

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = sys.stdout.buffer if stream is None else stream

    def write(self, spans: Sequence[Span]) -> None:
        self._stream.write(lines_of(spans))
        self._stream.flush()

    def close(self) -> None:
        """It is not ours."""
