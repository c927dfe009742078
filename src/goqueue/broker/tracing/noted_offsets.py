"""The offsets that many notes are about, as few runs: pages of them in order, and whether one is among them."""

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import groupby

from goqueue.model.ranges import Range, merge


class NotedOffsets:
    def __init__(self, ranges: Iterable[range]) -> None:
        """All ranges of one step begin at a multiple of it, as samples do."""
        by_step: dict[int, list[Range]] = {}
        for each in ranges:
            if each:
                by_step.setdefault(each.step, []).append((each[0] // each.step, each[-1] // each.step))
        self._runs = {step: merge(runs) for step, runs in by_step.items()}
        """By step, in units of it."""

    def __contains__(self, offset: int) -> bool:
        return any(offset % step == 0 and _is_in(runs, offset // step) for step, runs in self._runs.items())

    def following(self, first: int) -> Iterator[int]:
        """In order, from `first` on."""
        each_step = (_multiples(runs, step, first) for step, runs in self._runs.items())
        return (offset for offset, _ in groupby(heapq.merge(*each_step)))


def _is_in(runs: list[Range], number: int) -> bool:
    place = bisect_right(runs, number, key=lambda run: run[0]) - 1
    return place >= 0 and number <= runs[place][1]


def _multiples(runs: list[Range], step: int, first: int) -> Iterator[int]:
    least = -(-first // step)
    for begin, last in runs:
        yield from range(max(begin, least) * step, (last + 1) * step, step)
