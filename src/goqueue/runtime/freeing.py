"""A machine that goes is freed in slices. To free one with 100,000 offsets takes 70 ms, in which nobody would be
served; a thread would not help, since whoever frees holds the interpreter until all is freed.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterator
from sys import getrefcount

from goqueue.machines.machine import Fact

SLICE_STEPS = 1024
"""What is taken out of containers, and freed, in one go: half a millisecond or so."""
CHUNK = 256
"""Taken out of a container at a time."""
STEPS_TO_LOOK = 4
"""To look into an object takes as long as to take so many out of a container."""

_SMALL = (int, str, bytes, float, type(None), tuple, Fact)
"""They hold little, or what others hold too, and go at once."""


class Freeing:
    """Things of one node that go, one slice of them per turn of the loop. What somebody else still holds is left to
    whoever lets go of it last."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._left: list[object] = []
        self._slices = _freeing(self._left)
        self.steps = 0
        """How many it took so far."""

    def free(self, thing: object) -> None:
        """`thing` is let go of by its owner, in this turn."""
        if not self._left:
            self._call_soon(self._turn)
        self._left.append(thing)

    def _turn(self) -> None:
        self.steps += next(self._slices)
        if self._left:
            self._call_soon(self._turn)


def _freeing(left: list[object]) -> Iterator[int]:
    """Takes apart what is `left`, piece by piece. Yields after a slice: how many steps it was."""
    while True:
        steps = 0
        while left and steps < SLICE_STEPS:
            steps += _free_one(left)
        yield steps


def _free_one(left: list[object]) -> int:
    thing = left.pop()
    if getrefcount(thing) > _SOLE:
        return STEPS_TO_LOOK  # it is not freed by this
    if isinstance(thing, dict) and thing:
        some = [thing.popitem()[1] for _ in range(min(len(thing), CHUNK))]  # a key is small
    elif isinstance(thing, list | deque | set) and thing:
        some = [thing.pop() for _ in range(min(len(thing), CHUNK))]
    else:  # of an empty one, too: it may have attributes
        left += [each for each in gc.get_referents(thing) if not isinstance(each, _SMALL)]
        return STEPS_TO_LOOK
    left.append(thing)
    left += [each for each in some if not isinstance(each, _SMALL)]
    return STEPS_TO_LOOK + len(some)


def _references(left: list[object]) -> int:
    thing = left.pop()
    return getrefcount(thing)


_SOLE = _references([object()])
"""What is counted of a thing that nobody else holds: how many that are depends on the interpreter."""
