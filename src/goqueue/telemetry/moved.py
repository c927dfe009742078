"""Delayed records that became due and have another place since: from the new one back to the first, as ranges."""

from bisect import bisect_right
from typing import NamedTuple

from goqueue.telemetry.journeys import Note
from goqueue.telemetry.trace_ids import Spot

RANGES_MAX = 10_000
"""Of one partition; the oldest are forgotten."""


class Move(NamedTuple):
    new_first: int
    new_last: int
    old_first: int


class Moved:
    def __init__(self) -> None:
        self._moves: dict[tuple[str, int], list[Move]] = {}
        """By partition, in the order of new offsets: they only rise."""

    def add(self, due: Note) -> None:
        """A note of step DUE."""
        first = int(due.detail)
        moves = self._moves.setdefault((due.topic, due.partition), [])
        if moves and first <= moves[-1].new_last:
            return
        moves.append(Move(first, first + due.last - due.first, due.first))
        if len(moves) > RANGES_MAX:
            del moves[0]

    def first(self, spot: Spot) -> Spot:
        """Where a record was kept until it was due; else where it is."""
        moves = self._moves.get(spot[:2])
        if not moves:
            return spot
        position = bisect_right(moves, spot.offset, key=lambda move: move.new_first) - 1
        if position < 0 or moves[position].new_last < spot.offset:
            return spot
        move = moves[position]
        return spot._replace(offset=move.old_first + spot.offset - move.new_first)

    def now(self, spot: Spot) -> Spot | None:
        """Where a delayed record is since it became due; None: it is not known to be elsewhere."""
        for move in reversed(self._moves.get(spot[:2], ())):
            if move.old_first <= spot.offset <= move.old_first + move.new_last - move.new_first:
                return spot._replace(offset=move.new_first + spot.offset - move.old_first)
        return None

    def forget_topic(self, topic: str) -> None:
        for key in [key for key in self._moves if key[0] == topic]:
            del self._moves[key]
