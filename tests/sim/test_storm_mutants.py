"""A storm that finds nothing says little unless it finds what is put there: each mutant falls at one of the seeds
that the code as it is survives.
"""

from collections.abc import Callable
from itertools import chain

import pytest

from goqueue.replica.replica import Replica
from goqueue.storage.pending_sync import PendingSync
from goqueue.testing.simulation import Simulation
from tests.sim.storm import SEEDS, storm


def find(first_seed: int) -> int | None:
    """A seed at which something is found. Not every course of events loses an answer, or the power, at the moment that
    matters: the one that found the mutant before is tried first."""
    for seed in chain([first_seed], SEEDS):
        try:
            Simulation(seed).run(storm)
        except Exception:  # noqa: BLE001  whatever it is: a node that does not start again is a finding, too
            return seed
    return None


def acknowledge_before_the_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PendingSync, "run", lambda self: None)


def take_batches_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replica, "_recognize", lambda self, batch: None)


MUTANTS = [(acknowledge_before_the_sync, 1), pytest.param(take_batches_twice, 6, marks=pytest.mark.second_layer)]


@pytest.mark.parametrize(("mutate", "first_seed"), MUTANTS)
def test_a_mutant_is_found(
    mutate: Callable[[pytest.MonkeyPatch], None], first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as mutated:
        mutate(mutated)
        seed = find(first_seed)
    assert seed is not None
    Simulation(seed).run(storm)  # it was the mutant that was found, not the storm
