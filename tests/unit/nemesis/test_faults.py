from itertools import islice
from random import Random

from tools.nemesis.faults import decks


def test_every_kind_of_fault_comes_before_one_comes_again() -> None:
    names = ["kill", "cut", "power", "clock"]
    drawn = list(islice(decks(names, Random(1)), 12))
    for start in (0, 4, 8):
        assert sorted(drawn[start : start + 4]) == sorted(names)
    assert drawn == list(islice(decks(names, Random(1)), 12))


def test_a_healthy_run_has_no_faults() -> None:
    assert list(decks([], Random(1))) == []
