"""Pauses between attempts: twice as long each time, never the same for two clients."""

from random import Random

from goqueue.client import Backoff


def test_pauses_double_up_to_a_bound_with_jitter() -> None:
    backoff, dice = Backoff(50, 2000), Random(7)
    for attempt in range(100):
        full_ms = min(2000, 50 * 2**attempt)
        assert full_ms / 2 <= backoff.pause_s(attempt, dice) * 1000 <= full_ms
    assert len({backoff.pause_s(5, dice) for _ in range(20)}) == 20
    assert backoff.pause_s(3, Random(1)) == backoff.pause_s(3, Random(1))
