"""`make nemesis MINUTES=10`: real nodes, real clients, real trouble, and a verdict. Ends with 1 if a promise is broken.

The folder that it names keeps the history, the logs of all processes and the report.
"""

import argparse
import faulthandler
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random

from tools.etcd.server import build
from tools.nemesis.availability import STUCK_S
from tools.nemesis.changes import read_changes
from tools.nemesis.enclosure import WITH_PARENT, can_enclose, furnish, run_enclosed
from tools.nemesis.faults import decks, lets_pass
from tools.nemesis.history import Book, Window, read_histories
from tools.nemesis.judge import judge
from tools.nemesis.possible import possible
from tools.nemesis.processes import NotStarted
from tools.nemesis.starved import Watch
from tools.nemesis.town import FORWARDER, NAMESPACES, Town
from tools.nemesis.workloads.common import DRAIN_S_MAX, Run, Workload
from tools.nemesis.workloads.consumer_groups import ConsumerGroups
from tools.nemesis.workloads.delays import Delays
from tools.nemesis.workloads.groups import Groups
from tools.nemesis.workloads.grpc import GrpcLog, GrpcQueue
from tools.nemesis.workloads.logs import Logs
from tools.nemesis.workloads.queues import HttpQueue
from tools.nemesis.workloads.sqs import SqsFifoQueue, SqsQueue
from tools.nemesis.workloads.transactions import Transactions
from tools.nemesis.workloads.workers import WorkerQueue

CALM_S = 10.0
"""Before the first fault."""
HEALED_S = STUCK_S + 5
"""After the last: so long that whoever is stuck is found."""
START_S_MAX = 240.0
END_S_MAX = 420.0
"""From the last fault to the verdict; it takes a minute, and longer on a busy machine."""
WORKLOADS: dict[str, type[Workload]] = {
    each.name: each
    for each in (
        Logs,
        Transactions,
        HttpQueue,
        SqsQueue,
        SqsFifoQueue,
        GrpcQueue,
        GrpcLog,
        WorkerQueue,
        Delays,
        Groups,
        ConsumerGroups,
    )
}


def main() -> int:
    given = _arguments()
    if given.is_alone:
        return _run_here(given)
    seed = given.seed if given.seed is not None else int(time.time())
    folder = Path(given.folder or tempfile.mkdtemp(prefix="nemesis-")).absolute()
    if folder.exists() and any(folder.iterdir()):
        print(f"{folder} has another run: name an empty folder")
        return 1
    print(f"seed {seed}, folder {folder}", flush=True)
    if given.nodes > 1:
        build(say=print)  # while there is a network
    with_spaces = not given.no_root and can_enclose()
    again = ["--is-alone", *sys.argv[1:], "--seed", str(seed), "--folder", str(folder)]
    code = run_enclosed([*again, *([] if with_spaces else ["--no-root"])], with_spaces=with_spaces)
    if code:
        print(f"nemesis FAILED with {code}: seed {seed}, history and logs in {folder}", flush=True)
    return code


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.nemesis", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long nodes are troubled (default 10)")
    parser.add_argument("--nodes", type=int, default=3, help="1: a node without etcd; 3: a cluster (default)")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help=f"of {', '.join(WORKLOADS)}")
    parser.add_argument("--faults", default="", help="names of faults; 'none' for a healthy run; empty: all there are")
    parser.add_argument("--seed", type=int, help="the same faults in the same order")
    parser.add_argument("--folder", help="where to keep history and logs; a new one in the temporary folder")
    parser.add_argument("--no-root", action="store_true", help="cuts by a forwarder, and no faults of disks")
    parser.add_argument("--is-alone", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _run_here(given: argparse.Namespace) -> int:
    """In the enclosure. Whatever hangs is shown and ended: nobody waits for a run that does not end."""
    faulthandler.dump_traceback_later(given.minutes * 60 + START_S_MAX + END_S_MAX, exit=True)
    folder = Path(given.folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not given.no_root:
        furnish()
    prefix = WITH_PARENT if given.no_root else ()
    network = FORWARDER if given.no_root else NAMESPACES
    town = Town(folder, given.nodes, network=network, with_disks=not given.no_root, with_clocks=True, prefix=prefix)
    try:
        town.start()
        return _run(town, folder, given.seed, given)
    except NotStarted as error:
        print(error)
        return 1
    finally:
        town.end()


def _run(town: Town, folder: Path, seed: int, given: argparse.Namespace) -> int:
    with (folder / "history.jsonl").open("w", encoding="utf-8") as file:
        nodes = town.nodes
        doors = (tuple(node.kafka for node in nodes), tuple(node.url for node in nodes), tuple(n.grpc for n in nodes))
        run = Run(Book(file), *doors, seed)
        workloads = [WORKLOADS[name]() for name in given.workloads.split(",")]
        for workload in workloads:
            workload.prepare(run)
        wall_ahead = time.time() - time.monotonic()
        watch = Watch(nodes)
        watch.start()
        threads = _begin(run, workloads)
        troubles = _trouble(town, Random(seed), given)  # noqa: S311  faults are no secret
        town.heal()
        healed = time.monotonic()
        threading.Event().wait(HEALED_S)
        ended = time.monotonic()
        run.is_ending.set()
        _join(run, threads)
        for workload in workloads:
            workload.finish(run)
    watch.stop()
    changes = [*read_changes([node.log for node in town.nodes], wall_ahead), *watch.windows]
    verdict = judge(read_histories(folder), troubles, healed, ended, wall_ahead, changes)
    lines = [verdict.report, *(f"not proved: {problem}" for problem in run.problems)]
    lines.append(f"seed {seed}: {'FAILED' if verdict.faults or run.problems else 'passed'}; see {folder}")
    (folder / "report.txt").write_text("\n".join(lines) + "\n", "utf-8")
    print("\n".join(lines), flush=True)
    return 1 if verdict.faults or run.problems else 0


def _begin(run: Run, workloads: list[Workload]) -> list[threading.Thread]:
    found = []
    for workload in workloads:
        for name, work in workload.threads(run).items():

            def guarded(name: str = name, work=work) -> None:  # type: ignore[no-untyped-def]
                try:
                    work()
                except BaseException as error:  # noqa: BLE001  whatever it is, the run proves nothing then
                    run.problems.append(f"{name} broke: {error!r}")

            found.append(threading.Thread(target=guarded, name=name, daemon=True))
    for thread in found:
        thread.start()
    return found


def _join(run: Run, threads: list[threading.Thread]) -> None:
    give_up = time.monotonic() + 2 * DRAIN_S_MAX
    for thread in threads:
        thread.join(max(0.0, give_up - time.monotonic()))
        if thread.is_alive():
            run.problems.append(f"{thread.name} did not end")


def _trouble(town: Town, dice: Random, given: argparse.Namespace) -> list[Window]:
    known = possible(town)
    names = [] if given.faults == "none" else [name for name in given.faults.split(",") if name] or sorted(known)
    begun = time.monotonic()
    until = begun + given.minutes * 60
    pause = threading.Event()
    pause.wait(min(CALM_S, given.minutes * 30))
    troubles: list[Window] = []
    print(f"{len(names)} kinds of faults: {', '.join(names)}", flush=True)
    for name in decks(names, dice):
        if time.monotonic() >= until:
            break
        begin = time.monotonic()
        trouble = known[name](town, dice)
        print(f"{begin - begun:7.1f} s  {trouble.what}", flush=True)
        lets_pass(trouble, pause)
        troubles.append(Window(begin, time.monotonic(), trouble.what, trouble.ahead_s))
        pause.wait(dice.uniform(3, 15))
    pause.wait(max(0.0, until - time.monotonic()))
    return troubles


if __name__ == "__main__":
    sys.exit(main())
