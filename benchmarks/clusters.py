"""Three nodes and three members of etcd on this machine, for benchmarks of a cluster."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from benchmarks.harness import workplace
from tools.nemesis.processes import Node
from tools.nemesis.town import LOOPBACK, Town

HEALED_S_MAX = 90.0
TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def town(nodes: int, network: str = LOOPBACK) -> Iterator[Town]:
    with workplace() as place:
        made = Town(place, nodes, network=network)
        try:
            made.start()
            if nodes > 1:
                wait_healed(made)
            yield made
        finally:
            made.end()


def bootstrap(made: Town) -> str:
    return ",".join(node.kafka for node in made.nodes)


def make_topic(made: Town, name: str, partitions: int, copies: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap(made), "log_level": 0})
    made_now = admin.create_topics([NewTopic(name, partitions, copies)], request_timeout=HEALED_S_MAX)
    for future in made_now.values():
        future.result(HEALED_S_MAX)
    if copies > 1:
        wait_healed(made)


def wait_healed(made: Town) -> None:
    """All nodes are there and all replicas in sync."""
    pause, give_up = threading.Event(), time.monotonic() + HEALED_S_MAX
    while True:
        state = state_of(made)
        is_whole = state is not None and state["nodes_alive"] == len(made.nodes)
        if state is not None and is_whole and not state["under_replicated_partitions"]:
            return
        assert time.monotonic() < give_up, f"the cluster is not whole: {state}"
        pause.wait(0.2)


def state_of(made: Town) -> dict[str, int] | None:
    for node in made.nodes:
        try:
            found: dict[str, int] = httpx.get(f"{node.url}/cluster", trust_env=False, timeout=5).json()
        except (httpx.HTTPError, ValueError):
            continue
        return found
    return None


def leaders(made: Town, topic: str) -> dict[int, int]:
    """By partition."""
    for node in made.nodes:
        try:
            told = httpx.get(
                f"{node.url}/cluster/partitions?topic={topic}&limit=1000", trust_env=False, timeout=5
            ).json()
        except (httpx.HTTPError, ValueError):
            continue
        return {each["partition"]: each["leader"] for each in told["partitions"]}
    return {}


def cpu_s(node: Node) -> float:
    """What a node's process has used so far, in all of its threads."""
    fields = Path(f"/proc/{node.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
