"""Three nodes with their etcd in trouble, many times, 3 of them in `make test`; more with `make sim KIND=cluster`."""

import pytest

from goqueue.testing.simulation import Simulation
from tests.layers import in_layers
from tests.sim.cluster_storm import SEEDS, cluster_storm


@pytest.mark.parametrize("seed", in_layers(SEEDS, first=3))
def test_what_a_cluster_has_told_its_users_is_true_and_all_is_served_when_the_trouble_is_over(seed: int) -> None:
    Simulation(seed, nodes=3, cluster=True).run(cluster_storm)
