"""How fast messages come and go in each lane: measured between one look and the next."""

from typing import NamedTuple

from goqueue.machines.deliveries.commands import Measure, Place
from goqueue.model.lag import LaneStats, Rates
from goqueue.model.lanes import LANES

SECOND_MS = 1000
WINDOW_MS_MIN = 1000
"""Looks that follow each other faster see the same rates."""

_NONE: Rates = (0.0,) * LANES


class _Look(NamedTuple):
    at_ms: int
    arrived: tuple[int, ...]
    served: tuple[int, ...]
    enqueue_rate: Rates = _NONE
    dequeue_rate: Rates = _NONE


class LaneRates:
    def __init__(self) -> None:
        self._looks: dict[Place, _Look] = {}
        """Bounded by the number of places: who drops a group says `forget`."""

    def look(self, place: Place, measure: Measure, now_ms: int) -> LaneStats:
        before = self._looks.get(place)
        if before is None or now_ms < before.at_ms:
            before = self._looks[place] = _Look(now_ms, measure.arrived, measure.served)
        elif now_ms - before.at_ms >= WINDOW_MS_MIN:
            seconds = (now_ms - before.at_ms) / SECOND_MS
            before = self._looks[place] = _Look(
                now_ms,
                measure.arrived,
                measure.served,
                _rates(before.arrived, measure.arrived, seconds),
                _rates(before.served, measure.served, seconds),
            )
        return LaneStats(measure.ready, measure.leased, before.enqueue_rate, before.dequeue_rate)

    def forget(self, group_id: str) -> None:
        for place in [place for place in self._looks if place.group_id == group_id]:
            del self._looks[place]


def _rates(before: tuple[int, ...], now: tuple[int, ...], seconds: float) -> Rates:
    """A count that fell was begun anew."""
    return tuple(max(0, new - old) / seconds for old, new in zip(before, now, strict=True))
