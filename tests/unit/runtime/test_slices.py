"""Many that work bit by bit take one turn of the loop each, and none of them waits for ever."""

from collections.abc import Callable

from goqueue.runtime.slices import Slices


class Loop:
    """Turns by hand: what is called soon runs in the next one."""

    def __init__(self) -> None:
        self._soon: list[Callable[[], None]] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self._soon.append(call)

    def turn(self) -> int:
        """How much ran."""
        soon, self._soon = self._soon, []
        for call in soon:
            call()
        return len(soon)


class Worker:
    def __init__(self, name: str, slices: Slices, count: int, done: list[str]) -> None:
        self._name, self._slices, self._left, self._done = name, slices, count, done
        slices.later(self._work)

    def _work(self) -> None:
        self._done.append(self._name)
        self._left -= 1
        if self._left:
            self._slices.later(self._work)


def test_a_turn_has_one_slice_however_many_work() -> None:
    loop, done = Loop(), list[str]()
    slices = Slices(loop.call_soon)
    for name, count in (("a", 3), ("b", 1), ("c", 2)):
        Worker(name, slices, count, done)
    seen = []
    while loop.turn():
        seen.append("".join(done))
    assert seen == ["a", "ab", "abc", "abca", "abcac", "abcaca"]
    Worker("d", slices, 1, done)
    assert loop.turn() == 1
    assert done[-1] == "d"


def test_one_that_fails_keeps_no_other_back() -> None:
    loop, done = Loop(), list[str]()
    slices = Slices(loop.call_soon)

    def fail() -> None:
        raise ZeroDivisionError

    slices.later(fail)
    Worker("a", slices, 1, done)
    try:
        loop.turn()
    except ZeroDivisionError:
        loop.turn()
    assert done == ["a"]
