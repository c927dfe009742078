"""Three nodes with their etcd in trouble, many times; more with `make sim KIND=cluster`."""

import pytest

from goqueue.testing.simulation import Simulation
from tests.sim.cluster_storm import SEEDS, cluster_storm

FIRST_SEEDS = 6
"""So many are part of `make test`, the rest of `make test-rest`."""


def seeds() -> list[object]:
    later = [pytest.param(seed, marks=pytest.mark.second_layer) for seed in SEEDS[FIRST_SEEDS:]]
    return [*SEEDS[:FIRST_SEEDS], *later]


@pytest.mark.parametrize("seed", seeds())
def test_what_a_cluster_has_told_its_users_is_true_and_all_is_served_when_the_trouble_is_over(seed: int) -> None:
    Simulation(seed, nodes=3, cluster=True).run(cluster_storm)
