"""How far a table is behind its topic, whether or not anybody is writing it."""

from collections.abc import Mapping
from typing import NamedTuple

from goqueue.wire.rest.topics import TopicDetails

MOMENTS_MAX = 512


class Lag(NamedTuple):
    messages: int
    seconds: float
    """How long the oldest message that is missing is known to be there."""


NO_LAG = Lag(0, 0.0)


class Behind:
    """Remembers where the topic ended when it was looked at, as long as the table is not that far."""

    def __init__(self) -> None:
        self._moments: list[tuple[float, dict[int, int]]] = []

    def look(self, details: TopicDetails, positions: Mapping[int, int], now_s: float) -> Lag:
        ends = {int(number): offsets.next for number, offsets in details.partition_offsets.items()}
        begins = {int(number): offsets.earliest for number, offsets in details.partition_offsets.items()}
        at = {number: max(positions.get(number, 0), begins[number]) for number in ends}
        self._moments = [one for one in self._moments if any(end > at.get(number, 0) for number, end in one[1].items())]
        missing = sum(max(0, end - at[number]) for number, end in ends.items())
        if missing and (not self._moments or self._moments[-1][1] != ends):
            self._moments.append((now_s, ends))
        if len(self._moments) > MOMENTS_MAX:
            del self._moments[1::2]  # coarser, and still bounded
        return Lag(missing, now_s - self._moments[0][0] if missing else 0.0)
