"""What a client knows by its fetch session is what it would be told without one, whatever happened meanwhile."""

from random import Random

import pytest

from tests.layers import in_layers
from tests.unit.doors.kafka.fetch_walks import Walk

STEPS = 120
CHECKS_EVERY = 15


@pytest.mark.parametrize("seed", in_layers(range(24), first=8))
def test_a_session_knows_all_that_a_full_fetch_tells(seed: int) -> None:
    walk = Walk(Random(seed))
    for number in range(1, STEPS + 1):
        walk.step()
        if number % CHECKS_EVERY == 0:
            check(walk)
    walk.reader.lose_connection()
    walk.other.lose_connection()
    assert set(walk.watchers()) == {0}


def check(walk: Walk) -> None:
    walk.house.broker.commit()
    walk.read_all()
    for number, one in walk.ask_without_session().items():
        if one.error_code:
            assert walk.refused.get(number) == one.error_code
        else:
            assert not one.records
            assert walk.told.get(number) == (one.high_watermark, one.log_start_offset)
    assert max(walk.watchers()) <= 1
