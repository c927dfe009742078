"""Spans on their way out of the node, in a thread of their own: whoever receives them may be slow or gone, and the
broker must not notice. What is too much is dropped and counted.
"""

from collections.abc import Callable, Sequence
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Protocol

from goqueue.telemetry.journeys import Note
from goqueue.telemetry.logs import get_logger
from goqueue.telemetry.spans import Span, SpanMaker

FLUSHES_MAX = 30
"""That wait for the receiver: half a minute."""
STOP_S = 5
WAIT_S = 0.5

events = get_logger("telemetry")


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
        self._flushes: Queue[Sequence[Note]] = Queue(FLUSHES_MAX)
        self._stops = Event()
        self._fails = False
        self.exported = 0
        self.failed = 0
        """Spans that the receiver did not take."""
        self.notes_dropped = 0
        """Notes that came while too many waited."""
        self._thread = Thread(target=self._run, name="goqueue-export", daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        return self._sink.name

    @property
    def spans_dropped(self) -> int:
        """Too many for their flush."""
        return self._maker.dropped

    def offer(self, notes: Sequence[Note]) -> None:
        """Never waits."""
        try:
            self._flushes.put_nowait(notes)
        except Full:
            self.notes_dropped += len(notes)

    def _run(self) -> None:
        while not (self._stops.is_set() and self._flushes.empty()):
            try:
                notes = self._flushes.get(timeout=WAIT_S)
            except Empty:
                continue
            self._guarded(lambda notes=notes: self._export(notes))  # type: ignore[misc]
        self._guarded(self._sink.close)

    def _export(self, notes: Sequence[Note]) -> None:
        spans = self._maker.make(notes)
        if not spans:
            return
        try:
            self._sink.write(spans)
        except OSError as error:
            self.failed += len(spans)
            if not self._fails:
                events.warning("spans not exported", exporter=self.name, reason=str(error))
            self._fails = True
        else:
            self.exported += len(spans)
            self._fails = False

    def _guarded(self, call: Callable[[], None]) -> None:
        """A fault of ours, or of a library, costs a flush and not the thread."""
        try:
            call()
        except Exception as error:  # noqa: BLE001
            events.error("export failed", exporter=self.name, exc_info=error)

    def stop(self) -> None:
        """What waits is sent if that can be done soon."""
        self._stops.set()
        self._thread.join(STOP_S)
