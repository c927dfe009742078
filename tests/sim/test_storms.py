"""One node with all of its users in trouble, 30 times, 5 of them in `make test`; more with `make sim`."""

import pytest

from goqueue.testing.simulation import Simulation
from tests.layers import in_layers
from tests.sim.storm import SEEDS, storm


@pytest.mark.parametrize("seed", in_layers(SEEDS, first=5))
def test_what_was_acknowledged_is_there_once_and_nobody_is_stuck_when_the_trouble_is_over(seed: int) -> None:
    Simulation(seed).run(storm)
