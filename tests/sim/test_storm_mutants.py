"""A storm that finds nothing says little unless it finds what is put there: each mutant falls within a few seeds."""

from collections.abc import Callable

import pytest

from goqueue.replica.replica import Replica
from goqueue.storage.pending_sync import PendingSync
from goqueue.testing.simulation import Simulation
from tests.sim.storm import storm

SEEDS = range(1, 6)


def is_found() -> bool:
    for seed in SEEDS:
        try:
            Simulation(seed).run(storm)
        except Exception:  # noqa: BLE001  whatever it is: a node that does not start again is a finding, too
            return True
    return False


def acknowledge_before_the_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PendingSync, "run", lambda self: None)


def take_batches_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replica, "_recognize", lambda self, batch: None)


@pytest.mark.parametrize("mutate", [acknowledge_before_the_sync, take_batches_twice])
def test_a_mutant_is_found(mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    assert is_found()
