"""The rules of replication and election hold whatever happens: real logs and replicas, the real store on a virtual
etcd, and all kinds of trouble drawn from a seed."""

import os
import subprocess
import sys
from functools import partial

import pytest

from goqueue.machines.cluster.election import hand_over
from tests.layers import in_layers
from tests.sim.cluster import duties
from tests.sim.cluster.world import World

FIRST = range(1, 41)
REST = [range(start, start + 20) for start in range(41, 1501, 20)]


@pytest.mark.parametrize("seed", in_layers(FIRST, first=16))
def test_no_promise_is_broken(seed: int) -> None:
    World(seed).run()


@pytest.mark.second_layer
@pytest.mark.parametrize("seeds", REST, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_no_promise_is_broken_at_more_seeds(seeds: range) -> None:
    for seed in seeds:
        World(seed).run()


def test_no_promise_is_broken_by_leaders_that_leave_the_isr_with_their_leadership(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(duties, "hand_over", partial(hand_over, leaves=True))
    for seed in range(1, 9):
        World(seed).run()


def test_the_runs_are_worth_something() -> None:
    """Leaders change, records are taken, and somebody reads what is old."""
    worlds = [World(seed) for seed in range(1, 11)]
    for world in worlds:
        world.run()
    assert sum(world.checker.elections for world in worlds) > 30
    assert sum(world.checker.acknowledged for world in worlds) > 1000
    assert max(world.checker.stale_ms_max for world in worlds) > 100


def test_the_same_seed_gives_the_same_run_under_any_hash_seed() -> None:
    script = (
        "import logging; logging.disable(logging.CRITICAL)\n"
        "from tests.sim.cluster.world import World\n"
        "world = World(5); world.run(); print(world.ms, world.etcd.revision, world.checker.committed)"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
