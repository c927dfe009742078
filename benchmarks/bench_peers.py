"""Kafka, Redis Streams, NATS JetStream and RabbitMQ beside ours: the same loads, in turn, on the same machine.

What is done is told by the environment:

    PEERS=goqueue,redis           those brokers only
    PEERS_LOADS=receive-1,synced  those loads only
    PEERS_ROUNDS=1                instead of 5
    PEERS_SCALE=0.1               a tenth of the messages, to see that it works

In each round every broker is started anew and given all loads, and the order of the brokers changes from round to
round. A figure is the median of the rounds, with the lowest and the highest beside it.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple, TypeVar

from benchmarks.harness import Row, row, workplace
from benchmarks.peers import page
from benchmarks.peers.jetstream import Nats
from benchmarks.peers.kafka import GoQueue, Kafka
from benchmarks.peers.loads import BUSY_MAX, CLIENT, FLOW, UNITS, Load, all_loads
from benchmarks.peers.rabbitmq import Rabbit
from benchmarks.peers.redis import Redis
from benchmarks.peers.system import System
from tools.debian import NoPackage
from tools.golang import NotBuilt
from tools.kafka_jars import NoJars

SYSTEMS: tuple[System, ...] = (GoQueue(), Kafka(), Redis(), Nats(), Rabbit("classic"), Rabbit("quorum"))
OURS = SYSTEMS[0].name
ROUNDS = 5

T = TypeVar("T")

Seen = dict[tuple[str, str, str], list[float]]
"""By title of the load, what it is, and name of the system: one figure for each round."""


class Choice(NamedTuple):
    systems: Sequence[System]
    loads: Sequence[Load]
    rounds: int
    scale: float


def run() -> list[Row]:
    choice = choose(os.environ)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that brokers are stopped then, too
    titles = dict(find(choice.systems))
    systems = [system for system in choice.systems if system.name in titles]
    seen: Seen = {}
    for number in range(choice.rounds):
        first = number % len(systems)
        for system in (*systems[first:], *systems[:first]):
            take_turn(system, choice.loads, seen)
    return [
        row(page.ROUNDS, float(choice.rounds), "rounds"),
        row(page.SCALE, choice.scale, "of 1"),
        *rows_of(seen, titles),
    ]


def choose(environment: Mapping[str, str]) -> Choice:
    scale = float(environment.get("PEERS_SCALE") or 1)
    loads = all_loads(scale)
    return Choice(
        _named(environment.get("PEERS", ""), {system.name: system for system in SYSTEMS}, "broker"),
        _named(environment.get("PEERS_LOADS", ""), {load.key: load for load in loads}, "load"),
        int(environment.get("PEERS_ROUNDS") or ROUNDS),
        scale,
    )


def _named(asked: str, known: Mapping[str, T], kind: str) -> list[T]:
    names = [name.strip() for name in asked.split(",") if name.strip()]
    unknown = sorted(set(names) - set(known))
    if unknown:
        sys.exit(f"no such {kind}: {', '.join(unknown)}; there are: {', '.join(known)}")
    return [each for name, each in known.items() if not names or name in names]


def find(systems: Iterable[System]) -> Iterator[tuple[str, str]]:
    """Name and title of those that can be had here."""
    for system in systems:
        try:
            yield system.name, system.title()
        except (NoJars, NoPackage, NotBuilt) as error:
            print(f"  {system.name} is left out: {error}", flush=True)


def take_turn(system: System, loads: Iterable[Load], seen: Seen) -> None:
    """On one broker what the page cache keeps, on another what is synced."""
    mine = [load for load in loads if not load.systems or system.name in load.systems]
    for is_synced in (False, True):
        chosen = [load for load in mine if load.is_synced == is_synced]
        if not chosen:
            continue
        with workplace() as place, system.start(place, is_synced=is_synced) as broker:
            for load in chosen:
                began_s = time.monotonic()
                for what, figure in load.run(broker).items():
                    seen.setdefault((load.title, what, system.name), []).append(figure)
                print(f"  {system.name}: {load.key} took {time.monotonic() - began_s:.1f} s", flush=True)


def rows_of(seen: Seen, titles: Mapping[str, str]) -> list[Row]:
    """Medians with their spread, each beside ours."""
    rows = []
    for load, what in dict.fromkeys((load, what) for load, what, _ in seen if what != CLIENT):
        ours = seen.get((load, what, OURS))
        for name, title in titles.items():
            figures = seen.get((load, what, name))
            if figures is None:
                continue
            baseline = median(ours) if ours and name != OURS else None
            made = row(f"{load}: {what}: {title}", median(figures), UNITS[what], baseline)
            made["spread"] = [min(figures), max(figures)]
            busy = median(seen.get((load, CLIENT, name), [0.0]))
            if what == FLOW and busy > BUSY_MAX:
                made["note"] = f"the load generator took {busy:.0%} of a core, so the broker may do more"
            rows.append(made)
    return rows
