"""A storm that finds nothing says little unless it finds what is put there: each mutant falls at one of the seeds that
the code as it is survives.
"""

from collections.abc import Callable

import pytest

from goqueue.machines.partitions.replication import LeaderView
from goqueue.replica.replica import Replica
from goqueue.testing.simulation import Simulation
from tests.sim.cluster_storm import SEEDS, ClusterStorm
from tests.sim.storms.logs import Logs
from tests.sim.storms.stage import Program

Mutate = Callable[[pytest.MonkeyPatch], None]


def survives(seed: int, program: type[Program]) -> bool:
    async def storm(simulation: Simulation) -> None:
        await ClusterStorm(simulation, [program()]).run()

    try:
        Simulation(seed, nodes=3, cluster=True).run(storm)
    except Exception:  # noqa: BLE001  whatever it is: a node that does not start again is a finding, too
        return False
    return True


def acknowledge_before_followers_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def advance(self: LeaderView, own_end: int) -> int:
        self.high_watermark = max(self.high_watermark, own_end)
        return self.high_watermark

    monkeypatch.setattr(LeaderView, "advance", advance)


def take_batches_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replica, "_recognize", lambda self, batch: None)


@pytest.mark.second_layer
@pytest.mark.parametrize(
    ("mutate", "program", "first_seed"),
    [(acknowledge_before_followers_have_it, Logs, 2), (take_batches_twice, Logs, 6)],
)
def test_a_mutant_is_found(
    mutate: Mutate, program: type[Program], first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed that found it before is tried first."""
    with monkeypatch.context() as mutated:
        mutate(mutated)
        found = next((seed for seed in (first_seed, *SEEDS) if not survives(seed, program)), None)
    assert found is not None
    assert survives(found, program), "it was the mutant that was found, not the storm"
