"""Many logs are opened or closed together: most of the time that takes is waiting for the disk, which takes eight syncs
in about the time of two.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

Work = Callable[[], None]
SideBySide = Callable[[Sequence[Work]], None]
"""Do all of it, in any order, and return when it is done. In any thread."""


def one_by_one(works: Sequence[Work]) -> None:
    """In a simulation, which has one thread."""
    for work in works:
        work()


class Crew:
    """`SideBySide`, by threads of its own."""

    def __init__(self, threads: int) -> None:
        self._executor = ThreadPoolExecutor(threads, "goqueue-disk")

    def __call__(self, works: Sequence[Work]) -> None:
        if len(works) == 1:
            works[0]()
            return
        futures = [self._executor.submit(work) for work in works]
        wait(futures)
        for future in futures:
            future.result()

    def stop(self) -> None:
        """Nothing is under way any more. Stopping twice is fine."""
        self._executor.shutdown()
