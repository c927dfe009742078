"""Which records came with a trace of their producer: from record to trace, and from trace to records. Bounded: the
oldest are forgotten.
"""

from collections.abc import Iterable, Iterator

from goqueue.telemetry.trace_ids import Spot, TraceParent

CAPACITY = 100_000


class Parents:
    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self._by_spot: dict[Spot, TraceParent] = {}
        """In the order in which they were found."""
        self._by_trace: dict[str, list[Spot]] = {}

    def __len__(self) -> int:
        return len(self._by_spot)

    @property
    def traces(self) -> int:
        return len(self._by_trace)

    def add(self, spot: Spot, parent: TraceParent) -> None:
        if spot in self._by_spot:
            return
        if len(self._by_spot) >= self.capacity:
            self._drop(next(iter(self._by_spot)))
        self._by_spot[spot] = parent
        self._by_trace.setdefault(parent.trace_id, []).append(spot)

    def get(self, spot: Spot) -> TraceParent | None:
        return self._by_spot.get(spot)

    def spots(self, trace_id: str) -> list[Spot]:
        """In the order in which they were found; none: it is no trace of a producer, or forgotten."""
        return list(self._by_trace.get(trace_id, ()))

    def of(self, spots: Iterable[Spot]) -> Iterator[tuple[Spot, TraceParent]]:
        for spot in spots:
            parent = self._by_spot.get(spot)
            if parent is not None:
                yield spot, parent

    def forget_topic(self, topic: str) -> None:
        for spot in [spot for spot in self._by_spot if spot.topic == topic]:
            self._drop(spot)

    def _drop(self, spot: Spot) -> None:
        trace_id = self._by_spot.pop(spot).trace_id
        spots = self._by_trace[trace_id]
        spots.remove(spot)
        if not spots:
            del self._by_trace[trace_id]
