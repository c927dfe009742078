"""Spans on their way out of the node."""

from collections.abc import Sequence
from typing import Protocol

from goqueue.telemetry.journeys import Note
from goqueue.telemetry.outbox import Outbox
from goqueue.telemetry.spans import Span, SpanMaker

FLUSHES_MAX = 30
"""That wait for the receiver: half a minute."""


class Sink(Protocol):
    """Where spans go. Called by one thread."""

    name: str

    def write(self, spans: Sequence[Span]) -> None:
        """OSError: it cannot be done now."""

    def close(self) -> None: ...


class Exporting:
    def __init__(self, maker: SpanMaker, sink: Sink) -> None:
        self._maker = maker
        self._sink = sink
        self.exported = 0
        self.failed = 0
        """Spans that the receiver did not take."""
        self.notes_dropped = 0
        """Notes that came while too many waited."""
        self._outbox: Outbox[Sequence[Note]] = Outbox("spans", sink.name, FLUSHES_MAX, self._export, sink.close)

    @property
    def name(self) -> str:
        return self._sink.name

    @property
    def spans_dropped(self) -> int:
        """Too many for their flush."""
        return self._maker.dropped

    def offer(self, notes: Sequence[Note]) -> None:
        """Never waits."""
        if not self._outbox.offer(notes):
            self.notes_dropped += len(notes)

    def _export(self, notes: Sequence[Note]) -> None:
        spans = self._maker.make(notes)
        if not spans:
            return
        try:
            self._sink.write(spans)
        except OSError:
            self.failed += len(spans)
            raise
        self.exported += len(spans)

    def stop(self) -> None:
        """What waits is sent if that can be done soon."""
        self._outbox.stop()
