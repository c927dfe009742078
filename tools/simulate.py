"""`make sim`: storms of tests/sim, one for each seed, until one fails or all are over."""

import argparse
import logging
import sys
import time
import traceback

from goqueue.testing.simulation import Simulation
from tests.sim.storm import storm


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.simulate", description=__doc__)
    parser.add_argument("--seeds", default="1-100", help="a number, or a range such as 1-1000")
    parser.add_argument("--digests", action="store_true", help="only print the hash of what happened")
    parser.add_argument("--keep-going", action="store_true", help="run the others after a failure, too")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    logging.disable(logging.CRITICAL)
    failed = 0
    for seed in range(int(first), int(last or first) + 1):
        started_s = time.process_time()
        simulation = Simulation(seed)
        try:
            simulation.run(storm)
        except Exception:  # noqa: BLE001  whatever it is, it is a finding
            failed += 1
            _tell(simulation)
            if not given.keep_going:
                return 1
        trace = simulation.trace
        if given.digests:
            print(trace.digest)
        else:
            words = f"{trace.events} events, {simulation.loop.time() - simulation.begin_s:.0f} s of virtual time"
            print(f"seed {seed}: {words}, {time.process_time() - started_s:.1f} s of CPU", flush=True)
    return bool(failed)


def _tell(simulation: Simulation) -> None:
    print(traceback.format_exc())
    print("\n".join(simulation.trace.lines()[-40:]))
    print(f"seed {simulation.seed} FAILED; again: make sim SEEDS={simulation.seed}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
