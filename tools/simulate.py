"""`make sim`: runs of tests/sim, one for each seed, until one fails or all are over: storms over a whole node, with
`--kind cluster` over three nodes and their etcd, or with `--kind rules` over several copies of a partition, by the
rules of replication alone."""

import argparse
import hashlib
import logging
import sys
import time
import traceback

from goqueue.testing.simulation import Simulation
from tests.sim.cluster.world import World
from tests.sim.cluster_storm import cluster_storm
from tests.sim.storm import storm


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.simulate", description=__doc__)
    parser.add_argument("--seeds", default="1-100", help="a number, or a range such as 1-1000")
    parser.add_argument("--digests", action="store_true", help="only print the hash of what happened")
    parser.add_argument("--keep-going", action="store_true", help="run the others after a failure, too")
    parser.add_argument("--kind", choices=("storms", "cluster", "rules"), default="storms")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    logging.disable(logging.CRITICAL)
    return _rules(seeds, given) if given.kind == "rules" else _storms(seeds, given)


def _rules(seeds: range, given: argparse.Namespace) -> int:
    failed = 0
    for seed in seeds:
        started_s = time.process_time()
        world = World(seed)
        try:
            world.run()
        except Exception:  # noqa: BLE001  whatever it is, it is a finding
            failed += 1
            print(traceback.format_exc())
            print(f"seed {seed} FAILED; again: make sim KIND=rules SEEDS={seed}", flush=True)
            if not given.keep_going:
                return 1
            continue
        checker = world.checker
        if given.digests:
            print(hashlib.sha256(repr((world.ms, world.etcd.revision, checker.committed)).encode()).hexdigest())
        else:
            words = f"{checker.acknowledged} acknowledged, {checker.elections} elections"
            print(f"seed {seed}: {words}, {time.process_time() - started_s:.1f} s of CPU", flush=True)
    return bool(failed)


def _storms(seeds: range, given: argparse.Namespace) -> int:
    failed = 0
    for seed in seeds:
        started_s = time.process_time()
        is_cluster = given.kind == "cluster"
        simulation = Simulation(seed, nodes=3, cluster=True) if is_cluster else Simulation(seed)
        try:
            simulation.run(cluster_storm if is_cluster else storm)
        except Exception:  # noqa: BLE001  whatever it is, it is a finding
            failed += 1
            _tell(simulation, given.kind)
            if not given.keep_going:
                return 1
        trace = simulation.trace
        if given.digests:
            print(trace.digest)
        else:
            words = f"{trace.events} events, {simulation.loop.time() - simulation.begin_s:.0f} s of virtual time"
            print(f"seed {seed}: {words}, {time.process_time() - started_s:.1f} s of CPU", flush=True)
    return bool(failed)


def _tell(simulation: Simulation, kind: str) -> None:
    print(traceback.format_exc())
    print("\n".join(simulation.trace.lines()[-40:]))
    print(f"seed {simulation.seed} FAILED; again: make sim KIND={kind} SEEDS={simulation.seed}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
