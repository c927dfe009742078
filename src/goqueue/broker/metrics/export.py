"""Metrics that the node sends by itself, every now and then: the same that a scraper would read. They are read in the
broker's thread, and told in another.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from prometheus_client import Metric

from goqueue.broker.metrics.metrics import Metrics
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.outbox import Outbox

WAITING_MAX = 1
"""Newer ones say all that older ones did."""

Families = Callable[[], Iterable[Metric]]


class MetricsSink(Protocol):
    """Where metrics go. Called by one thread."""

    name: str

    def write(self, families: Iterable[Metric], at_ms: int) -> None:
        """OSError: it cannot be done now."""

    def close(self) -> None: ...


class Reading(NamedTuple):
    at_ms: int
    families: Families


class MetricsExport:
    def __init__(self, metrics: Metrics, clock: Clock, sink: MetricsSink, interval_ms: int) -> None:
        self._metrics = metrics
        self._clock = clock
        self._sink = sink
        self._interval_ms = interval_ms
        self._outbox: Outbox[Reading] = Outbox("metrics", sink.name, WAITING_MAX, self._send, sink.close)
        self._timer: Timer | None = None

    def start(self) -> None:
        self._timer = self._clock.call_after(self._interval_ms, self._tell)

    def _tell(self) -> None:
        self.start()
        self._offer()

    def _offer(self) -> None:
        self._outbox.offer(Reading(self._clock.now_ms(), self._metrics.snapshot()))

    def _send(self, reading: Reading) -> None:
        self._sink.write(reading.families(), reading.at_ms)

    def stop(self) -> None:
        """How it ended is told as well. `flush` waits for it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._offer()

    def flush(self) -> None:
        """Until all is sent, if that can be done soon. In another thread than the broker's."""
        self._outbox.stop()
