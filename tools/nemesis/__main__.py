"""`make nemesis MINUTES=10`: real nodes, real clients, real trouble, and a verdict. Ends with 1 if a promise is broken.

The folder that it names keeps the history, the logs of all processes and the report; it is removed if the run passed
and nobody chose it. The minutes are those of the whole run, from its start to its verdict. What is not over two minutes
later is ended, and has failed.
"""

import argparse
import faulthandler
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random

from tools.etcd.server import ETCD
from tools.nemesis.changes import read_changes
from tools.nemesis.enclosure import WITH_PARENT, cannot_enclose, furnish, run_enclosed
from tools.nemesis.ending import end_all, keep_stacks, keep_states, last_words
from tools.nemesis.faults import Fault as Kind
from tools.nemesis.faults import decks, lets_pass
from tools.nemesis.history import Book, Fault, Window, read_histories
from tools.nemesis.judge import Healed, acknowledged, judge, told
from tools.nemesis.possible import possible
from tools.nemesis.processes import NotStarted
from tools.nemesis.starved import Watch
from tools.nemesis.town import FORWARDER, NAMESPACES, Town
from tools.nemesis.waiting import wait_until
from tools.nemesis.workloads.common import Run, Workload
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
FAULT_S = 30.0
"""What a fault and its healing may take. A slow machine takes longer, which is found out."""
CLOSING_S = 60.0
"""Before the end of the time: everybody is served again, workers finish, all is read once more and judged."""
PAUSES_S = (2.0, 8.0)
"""Between two faults, at least and at most."""
STUCK_S = 60.0
"""Clients give up a request after ten seconds here (librdkafka's own default is 60), a transaction that was left open
ends after 20, a member that is gone leaves its group after 45, and TCP sends again up to 12 s after a cut is healed."""
HEALED_S_MAX = STUCK_S + 5
"""After the last fault, until everybody is served again: so long that whoever is stuck is found."""
DRAIN_S = 75.0
"""Then workloads are told to end, and have so long for what they have begun."""
END_S_MAX = 120.0
"""From the end of the time to the verdict, or the run has failed."""
DUMP_S = 20.0
"""Before that, all stacks are written down."""
REPORT, CLIENTS_LOG = "report.txt", "clients.log"
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
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, folder {folder}", flush=True)
    if given.nodes > 1:
        ETCD.build(say=print)  # while there is a network
    why_not = "--no-root" if given.no_root else cannot_enclose()
    if why_not:
        print(f"no namespaces ({why_not}): cuts are made by a forwarder, and there are no disks of our own", flush=True)
    again = ["--is-alone", *sys.argv[1:], "--seed", str(seed), "--folder", str(folder)]
    seconds_max = given.minutes * 60 + END_S_MAX
    code = run_enclosed([*again, *(["--no-root"] if why_not else [])], not why_not, seconds_max, folder / CLIENTS_LOG)
    if code:
        if not (folder / REPORT).exists():
            print("there is no report; the last that was said:", *_tail(folder / CLIENTS_LOG), sep="\n  ", flush=True)
        print(f"nemesis FAILED with {code}: seed {seed}, history and logs in {folder}", flush=True)
    elif not given.folder:
        shutil.rmtree(folder)  # nobody asked for it, and disks and logs are large
    return code


def _tail(path: Path, lines_max: int = 25) -> list[str]:
    return path.read_text("utf-8", "replace").splitlines()[-lines_max:] if path.exists() else []


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.nemesis", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long the whole run takes (default 10)")
    parser.add_argument("--nodes", type=int, default=3, help="1: a node without etcd; 3: a cluster (default)")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help=f"of {', '.join(WORKLOADS)}")
    parser.add_argument("--faults", default="", help="names of faults; 'none' for a healthy run; empty: all there are")
    parser.add_argument("--seed", type=int, help="the same faults in the same order")
    parser.add_argument("--folder", help="where to keep history and logs; else only those of a failure are kept")
    parser.add_argument("--no-root", action="store_true", help="cuts by a forwarder, and no faults of disks")
    parser.add_argument("--is-alone", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _run_here(given: argparse.Namespace) -> int:
    """In the enclosure. Whatever hangs is shown and ended: nobody waits for a run that does not end."""
    faulthandler.dump_traceback_later(given.minutes * 60 + END_S_MAX - DUMP_S, exit=True)
    ends_s = time.monotonic() + given.minutes * 60
    folder = Path(given.folder)
    if not given.no_root:
        furnish()
    prefix = WITH_PARENT if given.no_root else ()
    network = FORWARDER if given.no_root else NAMESPACES
    town = Town(folder, given.nodes, network=network, with_disks=not given.no_root, with_clocks=True, prefix=prefix)
    try:
        town.start()
        code = _run(town, folder, ends_s, given)
    except NotStarted as error:
        print(error, flush=True)
        code = 1
    finally:
        town.end()
    os._exit(code)  # a thread of librdkafka's that hangs would hold up another way out


def _run(town: Town, folder: Path, ends_s: float, given: argparse.Namespace) -> int:
    stuck: list[Fault] = []
    with (folder / "history.jsonl").open("w", encoding="utf-8") as file:
        nodes = town.nodes
        doors = (tuple(node.kafka for node in nodes), tuple(node.url for node in nodes), tuple(n.grpc for n in nodes))
        run = Run(Book(file), *doors, given.seed)
        workloads = [WORKLOADS[name]() for name in given.workloads.split(",")]
        for workload in workloads:
            workload.prepare(run)
        wall_ahead = time.time() - time.monotonic()
        watch = Watch(nodes)
        watch.start()
        threads = _begin(run, workloads)
        kinds = _kinds(town, given)
        troubles = _trouble(town, kinds, ends_s, given)
        if not troubles and kinds:
            run.problems.append("there was no time for a fault: give it more minutes")
        town.heal()
        healed = time.monotonic()
        wait_until(lambda: not run.book.unserved_since(healed), HEALED_S_MAX)
        ended = time.monotonic()
        run.is_ending.set()
        stuck = end_all(threads, DRAIN_S)
        finishing = time.monotonic()
        if stuck or run.given_up:
            keep_states(run.http, folder)
            keep_stacks(folder)
        for workload in workloads:
            workload.finish(run)
    watch.stop()
    changes = [*read_changes([node.log for node in town.nodes], wall_ahead), *watch.windows]
    history = read_histories(folder)
    verdict = judge(history, troubles, Healed(healed, ended, STUCK_S, may_be_late=True), wall_ahead, changes, stuck)
    lines = [verdict.report, *told(run.notes), *(f"not proved: {problem}" for problem in run.problems)]
    for name in dict.fromkeys(run.given_up):
        lines += [f"the last words of {name}:", *(f"  {line}" for line in last_words(folder / CLIENTS_LOG, name))]
    lines.append(
        f"after the last fault everybody was served within {ended - healed:.0f} s, workers had ended after "
        f"{finishing - healed:.0f} s, and all was judged after {time.monotonic() - healed:.0f} s"
    )
    lines.append(
        f"{len(troubles) / max(1, len(kinds)):.1f} rounds of {len(kinds)} kinds, {len(troubles)} faults, "
        f"{acknowledged(history)} messages acknowledged, {len(verdict.faults)} violations"
    )
    lines.append(f"seed {given.seed}: {'FAILED' if verdict.faults or run.problems else 'passed'}")
    (folder / REPORT).write_text("\n".join(lines) + "\n", "utf-8")
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


def _kinds(town: Town, given: argparse.Namespace) -> dict[str, Kind]:
    """The kinds of faults of this run, by name."""
    known, missing = possible(town)
    names = [] if given.faults == "none" else [name for name in given.faults.split(",") if name] or sorted(known)
    print(f"{len(names)} kinds of faults: {', '.join(names)}", flush=True)
    for name, why in missing.items():
        print(f"cannot be made here: {name}, because {why}", flush=True)
    return {name: known[name] for name in names}


def _trouble(town: Town, kinds: Mapping[str, Kind], ends_s: float, given: argparse.Namespace) -> list[Window]:
    """Until it is too late to heal another fault in time."""
    dice = Random(given.seed)  # noqa: S311  faults are no secret
    begun = time.monotonic()
    pause = threading.Event()
    pause.wait(min(CALM_S, given.minutes * 30))
    troubles: list[Window] = []
    left = list(kinds)
    longest_s = FAULT_S
    for name in decks(left, dice):
        if time.monotonic() + longest_s >= ends_s - CLOSING_S:
            break
        left = [each for each in left if each != name]
        begin = time.monotonic()
        trouble = kinds[name](town, dice)
        print(f"{begin - begun:7.1f} s  {trouble.what}", flush=True)
        lets_pass(trouble, pause)
        troubles.append(Window(begin, time.monotonic(), trouble.what, trouble.ahead_s))
        longest_s = max(longest_s, troubles[-1].end - begin)
        pause.wait(dice.uniform(*PAUSES_S))
    if left:
        print(f"there was no time for: {', '.join(left)}", flush=True)
    if not kinds:
        pause.wait(max(0.0, ends_s - CLOSING_S - time.monotonic()))
    return troubles


if __name__ == "__main__":
    sys.exit(main())
