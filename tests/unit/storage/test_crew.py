"""Logs that are opened together: all of them are, also when one of them meets a fault."""

from functools import partial
from threading import Barrier

import pytest

from goqueue.storage.crew import Crew


def test_works_wait_for_the_disk_at_the_same_time() -> None:
    crew, together = Crew(4), Barrier(4)

    def wait() -> None:
        together.wait(10)  # broken, if they came one after the other

    crew([wait] * 4)
    crew.stop()


def test_what_one_raises_is_told_when_all_are_done() -> None:
    crew, done = Crew(2), list[int]()

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        crew([fail, *(partial(done.append, number) for number in range(50))])
    assert sorted(done) == list(range(50))
    crew.stop()
