"""One process against two on the same machine: publishes of one message over 100 connections, and receive + ack of one
message by members of share groups, with bare connections to the leaders. Receivers are counted twice: 16 of them for
all processes together, and 8 for each process. With as many for all, each of two processes finds fewer requests in one
turn of its loop than one process would, and pays more for each.

What counts is the CPU of the busiest process of the broker: with a core for each of them, and clients elsewhere, it is
what limits them. So the clients, which share the cores here, are not in the figures. The supervisor's CPU is added to
that of the busiest member. Of several turns, taken in alternation, the best of each counts.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from benchmarks.harness import Row, row, workplace
from benchmarks.produce_load import Shape, produce
from benchmarks.share_load import Wire, share_load
from goqueue.cli.bench.broker import OwnBroker
from goqueue.cli.bench.process import Process
from goqueue.wire.kafka.messages.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse

TURNS = 3
CONNECTIONS = 100
PUBLISHES = 20_000
RECEIVES = 4_000
"""Of each topic."""
MEMBERS = 8
"""Of each group."""
START_S_MAX = 120.0
STOP_S_MAX = 60.0
AIM = "ratio >= 1.8"
SERVE = "import sys; from goqueue.cli.main import main; sys.exit(main())"


class Broker(NamedTuple):
    """All its processes."""

    directory: Path
    addresses: list[str]
    """Of the members, for Kafka clients."""
    http: str
    members: list[Process]
    supervisor: Process | None

    def cpu_s(self) -> list[float]:
        return [each.cpu_s() for each in (*self.members, *([self.supervisor] if self.supervisor else []))]


def run() -> list[Row]:
    works: dict[str, Callable[[Broker], float]] = {
        f"publish of one, {CONNECTIONS} connections": publish_us,
        f"receive + ack of one, {2 * MEMBERS} connections": lambda made: receive_us(made, 2),
        f"receive + ack of one, {MEMBERS} connections to each process": lambda made: receive_us(
            made, len(made.members)
        ),
    }
    found: dict[tuple[str, int], list[float]] = {}
    for _ in range(TURNS):
        for processes in (1, 2):
            with broker(processes) as made:
                for name, work in works.items():
                    found.setdefault((name, processes), []).append(work(made))
    rows = []
    for name in works:
        one, two = (1e6 / min(found[name, processes]) for processes in (1, 2))
        rows.append(row(f"{name}: one process", one, "msg/s of the busiest core"))
        rows.append(row(f"{name}: two processes", two, "msg/s of the busiest core", one, AIM))
    return rows


def publish_us(made: Broker) -> float:
    topic = f"publish-{os.urandom(4).hex()}"
    create(made, topic, 2)
    places = leaders(made, topic)
    connections_each = CONNECTIONS // len(set(places.values()))
    shape = Shape(100, 1, producers=connections_each, requests_ahead=1)
    snapshots: list[list[float]] = []

    def note() -> float:
        snapshots.append(made.cpu_s())
        return 0.0

    spent = produce(topic, places, shape, PUBLISHES, note)
    before, after = snapshots
    return _busiest(made, before, after) / spent.messages * 1e6


def receive_us(made: Broker, count: int) -> float:
    """So many topics of one partition, led by two members if there are two."""
    topics: dict[str, str] = {}
    wanted = sorted(made.addresses)
    while len(topics) < count:
        name = f"receive-{os.urandom(4).hex()}"
        create(made, name, 1)
        address = leaders(made, name)[0]
        if address == wanted[len(topics) % len(wanted)]:
            topics[name] = address
    for name, address in topics.items():
        produce(name, {0: address}, Shape(100, 1, producers=1, requests_ahead=1), RECEIVES - 1, lambda: 0.0)
    # Processes of their own, or the clients would be what limits two brokers.
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
        before = made.cpu_s()
        done = [pool.submit(_share, made, name, address) for name, address in topics.items()]
        for each in done:
            each.result()
    return _busiest(made, before, made.cpu_s()) / (count * RECEIVES) * 1e6


def _share(made: Broker, topic: str, address: str) -> None:
    here = OwnBroker(address=address, process=made.members[0], directory=made.directory, http=made.http, grpc="")
    group = _group_at(address)
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(START_S_MAX)
    share_load(here, group, topic, RECEIVES, 1, MEMBERS)


def _group_at(address: str) -> str:
    """One whose coordinator is there."""
    wire = Wire(address)
    try:
        while True:
            group = f"group-{os.urandom(4).hex()}"
            asked = FindCoordinatorRequest(coordinator_keys=[group])
            (found,) = wire.call(asked, 4, FindCoordinatorResponse).coordinators
            if f"{found.host}:{found.port}" == address:
                return group
    finally:
        wire.close()


def _busiest(made: Broker, before: list[float], after: list[float]) -> float:
    spent = [now - then for now, then in zip(after, before, strict=True)]
    return max(spent[: len(made.members)]) + sum(spent[len(made.members) :])


def create(made: Broker, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": made.addresses[0], "log_level": 0})
    new = NewTopic(topic, partitions, 1, config={"durability": "os"})
    for future in admin.create_topics([new]).values():
        future.result(START_S_MAX)


def leaders(made: Broker, topic: str) -> dict[int, str]:
    """The address of each."""
    found = httpx.get(f"http://{made.http}/cluster/partitions?topic={topic}", trust_env=False, timeout=30).json()
    return {each["partition"]: made.addresses[each["leader"] - 1] for each in found["partitions"]}


@contextmanager
def broker(processes: int) -> Iterator[Broker]:
    with workplace() as place:
        ready = place / "ready.json"
        command = [sys.executable, "-P", "-c", SERVE, "serve", "--dev", "--processes", str(processes)]
        command += ["--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
        command += ["--data-dir", str(place / "data"), "--ready-file", str(ready), "--retention-ms", "-1"]
        with (place / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            told = _ready(process, ready)
            members = told.get("members") or [{"kafka": told["kafka"], "pid": told["pid"]}]
            yield Broker(
                place,
                [each["kafka"] for each in members],
                told["http"],
                [Process(each["pid"]) for each in members],
                Process(told["pid"]) if processes > 1 else None,
            )
        finally:
            process.terminate()
            process.wait(STOP_S_MAX)


def _ready(process: subprocess.Popen[bytes], file: Path) -> dict[str, Any]:
    pause = threading.Event()
    for _ in range(round(START_S_MAX / 0.1)):
        if file.exists():
            told: dict[str, Any] = json.loads(file.read_text("utf-8"))
            return told
        assert process.poll() is None, "the broker has ended"
        pause.wait(0.1)
    raise AssertionError("the broker does not start")
