"""Three nodes and three members of etcd on this machine, for benchmarks of a cluster."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from benchmarks.harness import workplace
from tools.nemesis.processes import Node
from tools.nemesis.town import LOOPBACK, Town

HEALED_S_MAX = 90.0
"""Without any that got in sync."""
SHOWN_MAX = 20
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
    """All nodes are there, all replicas in sync and all standbys up to date, as `goqueue cluster ready` asks for before
    the next node is stopped."""
    pause, give_up, lowest = threading.Event(), time.monotonic() + HEALED_S_MAX, sys.maxsize
    while True:
        state = state_of(made)
        if state is not None and state["nodes_alive"] == len(made.nodes):
            behind = state["under_replicated_partitions"] or _standbys_behind(made)
            if not behind:
                return
            if behind < lowest:
                lowest, give_up = behind, time.monotonic() + HEALED_S_MAX
        if time.monotonic() > give_up:
            logs = "\n".join(f"{node.name}: {node.log_tail}" for node in made.nodes)  # they go with the folder
            raise AssertionError(f"the cluster is not whole: {state}, {_behind(made)}\n{logs}")
        pause.wait(0.2)


def _standbys_behind(made: Town) -> int:
    """A node that does not tell counts as one."""
    told = _asked(made, "/cluster/nodes")
    return 1 if told is None else sum(1 if (one := each["standbys_behind"]) is None else one for each in told["nodes"])


def _behind(made: Town) -> list[str]:
    """Some partitions that are not in sync, each with its leader and its ISR."""
    told = _asked(made, f"/cluster/partitions?state=under_replicated&limit={SHOWN_MAX}")
    found = [] if told is None else told["partitions"]
    return [f"{one['topic']}/{one['partition']} led by {one['leader']}, ISR {one['isr']}" for one in found]


def state_of(made: Town) -> dict[str, int] | None:
    state: dict[str, int] | None = _asked(made, "/cluster")
    return state


def leaders(made: Town, topic: str) -> dict[int, int]:
    """By partition."""
    told = _asked(made, f"/cluster/partitions?topic={topic}&limit=1000")
    return {} if told is None else {each["partition"]: each["leader"] for each in told["partitions"]}


def _asked(made: Town, path: str) -> Any:
    """Of the first node that answers; None: of none."""
    for node in made.nodes:
        try:
            return httpx.get(f"{node.url}{path}", trust_env=False, timeout=5).json()
        except (httpx.HTTPError, ValueError):
            continue
    return None


def cpu_s(node: Node) -> float:
    """What a node's process has used so far, in all of its threads."""
    fields = Path(f"/proc/{node.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
