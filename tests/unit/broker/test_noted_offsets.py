"""Offsets of many notes, in order and once each, against a plain set."""

from random import Random

import pytest

from goqueue.broker.tracing.noted_offsets import NotedOffsets


@pytest.mark.parametrize("seed", range(20))
def test_they_are_a_set_in_order(seed: int) -> None:
    dice = Random(seed)
    stride = dice.choice((1, 3, 10))
    ranges = []
    for _ in range(dice.randrange(12)):
        step, first = dice.choice((1, stride)), dice.randrange(100)
        ranges.append(range(first + -first % step, first + dice.randrange(40), step))
    noted, plain = NotedOffsets(ranges), set().union(*ranges)
    for first in (0, 17, 60, 200):
        assert list(noted.following(first)) == sorted(each for each in plain if each >= first)
    assert [each for each in range(160) if each in noted] == sorted(plain)
