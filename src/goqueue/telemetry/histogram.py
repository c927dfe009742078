"""How long things took, as counts by bucket: what Prometheus makes quantiles of. It costs a search among 13 numbers."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from goqueue.telemetry.trace_ids import Spot

LATENCY_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
VALIDATION_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05)
SLOW_S = 0.025
"""What took longer is worth an example."""


class Example(NamedTuple):
    """One of those that were slow: a journey tells the rest."""

    spot: Spot
    seconds: float
    at_ms: int


class Histogram:
    """Invariant: `counts` has one more than `bounds`, for what is above them all; each is counted in one of them."""

    __slots__ = ("bounds", "counts", "examples", "total")

    def __init__(self, bounds: Sequence[float] = LATENCY_S) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        """In seconds."""
        self.examples: dict[int, Example] = {}
        """The last of each bucket that is slow."""

    def observe(self, seconds: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += times
        self.total += seconds * times

    def keep_example(self, example: Example) -> None:
        self.examples[bisect_left(self.bounds, example.seconds)] = example

    def add(self, other: "Histogram") -> None:
        """All that the other has seen; both have the same bounds."""
        self.counts = [own + more for own, more in zip(self.counts, other.counts, strict=True)]
        self.total += other.total
        self.examples.update(other.examples)

    def copied(self) -> "Histogram":
        made = Histogram(self.bounds)
        made.add(self)
        return made

    @property
    def count(self) -> int:
        return sum(self.counts)
