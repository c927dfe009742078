"""Celery over GoQueue beside Celery over Redis: tasks sent by one program, and done by `celery worker` with two
processes, acknowledged when they are done. Redis writes its log without waiting for the disk, as GoQueue here does.

What is told is CPU of broker, sender and worker for 1,000 tasks, and tasks in a second. On a busy machine only the CPU
says something. CELERY_TASKS=10000 and CELERY_TURNS=3 choose how much is done.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.harness import BUILD, ROOT, Row, node, row
from benchmarks.peers.redis import Redis
from benchmarks.peers.system import ProcessTree

TASKS = int(os.environ.get("CELERY_TASKS", "5000"))
TURNS = int(os.environ.get("CELERY_TURNS", "3"))
READY_S_MAX, DONE_S_MAX = 60, 600
SEND = """
import resource, sys, time
from benchmarks.celery_load import nothing
nothing.delay(-1)
began_s, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
for number in range(int(sys.argv[1])):
    nothing.delay(number)
now = resource.getrusage(resource.RUSAGE_SELF)
print(time.perf_counter() - began_s, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
"""


class Broker(NamedTuple):
    url: str
    tree: ProcessTree


class Figures(NamedTuple):
    send_rate: float
    send_cpu: float
    broker_send_cpu: float
    work_rate: float
    work_cpu: float
    broker_work_cpu: float


@contextmanager
def goqueue() -> Iterator[Broker]:
    with node() as broker:
        yield Broker(f"goqueue://{broker.address}", ProcessTree(broker.process.pid))


@contextmanager
def redis() -> Iterator[Broker]:
    BUILD.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=BUILD) as place, Redis().start(Path(place), is_synced=False) as running:
        yield Broker(f"redis://{running.address}/0", running.process)


def measure(broker: Broker) -> Figures:
    variables = {**os.environ, "LOAD_BROKER": broker.url}
    before = broker.tree.cpu_s()
    sent = subprocess.run(
        [sys.executable, "-c", SEND, str(TASKS)], env=variables, cwd=ROOT, check=True, capture_output=True, text=True
    )
    send_s, send_cpu_s = map(float, sent.stdout.split())
    between = broker.tree.cpu_s()
    with TemporaryDirectory(dir=BUILD) as place:
        log = Path(place, "log")
        command = [sys.executable, "-m", "celery", "-A", "benchmarks.celery_load", "worker", "-c", "2", "-l", "INFO"]
        command += ["--without-gossip", "--without-mingle", "--without-heartbeat", "-n", "load@here"]
        with log.open("w") as said:
            worker = subprocess.Popen(command, env=variables, cwd=ROOT, stdout=said, stderr=said)
        try:
            work_s, work_cpu_s = _worked(worker, log)
        finally:
            worker.terminate()
            worker.wait(READY_S_MAX)
    thousands = TASKS / 1000
    return Figures(
        TASKS / send_s,
        send_cpu_s / thousands,
        (between - before) / thousands,
        TASKS / work_s,
        work_cpu_s / thousands,
        (broker.tree.cpu_s() - between) / thousands,
    )


def _worked(worker: "subprocess.Popen[bytes]", log: Path) -> tuple[float, float]:
    """From the moment when it is ready until the last task is done. Tasks log a line each, with either broker."""
    tree, began_s, used_s = ProcessTree(worker.pid), 0.0, 0.0
    give_up_s = time.monotonic() + DONE_S_MAX
    while time.monotonic() < give_up_s:
        said = log.read_text("utf-8")
        if not began_s and " ready." in said:
            began_s, used_s = time.perf_counter(), tree.cpu_s()
        if said.count(" succeeded in ") >= TASKS:
            return time.perf_counter() - began_s, tree.cpu_s() - used_s
        time.sleep(0.05)
    raise TimeoutError(log.read_text("utf-8")[-2000:])


def run() -> list[Row]:
    brokers = {"goqueue": goqueue, "redis": redis}
    found: dict[str, list[Figures]] = {name: [] for name in brokers}
    for _ in range(TURNS):
        for name, start in brokers.items():
            with start() as broker:
                found[name].append(measure(broker))
    ours, theirs = (
        Figures(*(median(values) for values in zip(*figures))) for figures in (found["goqueue"], found["redis"])
    )
    rows = []
    for name, number, is_cost in (
        ("tasks sent in a second", 0, False),
        ("tasks done in a second", 3, False),
        ("CPU of the sender for 1,000 tasks", 1, True),
        ("CPU of the worker for 1,000 tasks", 4, True),
        ("CPU of the broker for 1,000 tasks sent", 2, True),
        ("CPU of the broker for 1,000 tasks done", 5, True),
    ):
        unit = "s" if is_cost else "tasks/s"
        rows.append(row(f"Celery: {name}", ours[number], unit, theirs[number], "1", is_cost=is_cost))
    return rows
