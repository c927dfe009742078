"""Small requests over every API: one message in each, many connections with one request under way. What is told is CPU
of the broker; a client library would choose its own batches, and would cost more than the broker.

What is done is told by the environment:

    SMALL_BEFORE=DIRECTORY      another checkout, whose broker gets the same loads in turn: its figures are the baseline
    SMALL_LOADS=http-publish    those loads only
    SMALL_ROUNDS=1              instead of 3

Each load runs in a broker of its own, in each round. A figure is the median of the rounds, with the lowest and the
highest beside it. Baseline is the other checkout, if there is one, and the ratio is ours divided by it.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.grpc_load import publish_batches, publish_unary
from benchmarks.harness import Row, node, row
from benchmarks.http_load import HTTP, SQS, publish_over, receive_over
from benchmarks.peers.kafka import KafkaRunning
from benchmarks.peers.loads import (
    CLIENT,
    CPU,
    P50,
    P99,
    UNITS,
    Figures,
    consume,
    end_to_end,
    publish,
    publish_synced,
    receive,
)
from benchmarks.peers.system import ProcessTree
from goqueue.cli.bench.broker import OwnBroker

ROUNDS = 3
PUBLISHERS, CONSUMERS = 16, 8


class Load(NamedTuple):
    title: str
    run: Callable[[OwnBroker], Figures]
    aims: Figures


def kafka(work: Callable[[KafkaRunning], Figures], durability: str = "os") -> Callable[[OwnBroker], Figures]:
    def run(broker: OwnBroker) -> Figures:
        tree = ProcessTree(broker.process.pid)
        return work(KafkaRunning(tree, broker.directory, broker.address, {"durability": durability}, durability))

    return run


LOADS = {
    "publish": Load("Kafka, publish of 1, 100 connections", kafka(publish(1, 100, 1, 20_000)), {CPU: 20}),
    "publish-alone": Load("Kafka, publish of 1, 1 connection", kafka(publish(1, 1, 1, 8_000)), {}),
    "receive-1": Load(f"Kafka, receive + ack of 1, {CONSUMERS} connections", kafka(receive(1, 8_000)), {CPU: 75}),
    "receive-10": Load(f"Kafka, receive + ack of 10, {CONSUMERS} connections", kafka(receive(10, 40_000)), {CPU: 10}),
    "receive-100": Load(
        f"Kafka, receive + ack of 100, {CONSUMERS} connections", kafka(receive(100, 200_000)), {CPU: 2}
    ),
    "partitions-1": Load("Kafka, publish of 1, 8 connections, 1 partition", kafka(publish(1, 8, 1, 16_000)), {}),
    "partitions-1000": Load(
        "Kafka, publish of 1, 8 connections, 1,000 partitions", kafka(publish(1, 8, 1, 16_000, 1000)), {}
    ),
    "consume-1": Load("Kafka, consume, 1 partition, librdkafka", kafka(consume(1, 500_000)), {}),
    "consume-1000": Load("Kafka, consume, 1,000 partitions, librdkafka", kafka(consume(1000, 500_000)), {}),
    "end-to-end": Load("Kafka, end to end at 1,000 a second", kafka(end_to_end(8_000)), {P50: 0.4, P99: 1.5}),
    "synced": Load("Kafka, publish of 1, one in flight, synced", kafka(publish_synced(3_000), "disk"), {}),
    "http-publish": Load(f"HTTP, publish of 1, {PUBLISHERS} connections", publish_over(HTTP, PUBLISHERS), {CPU: 130}),
    "http-receive": Load(
        f"HTTP, receive + ack of 1, {CONSUMERS} connections", receive_over(HTTP, CONSUMERS), {CPU: 300}
    ),
    "sqs-send": Load(f"SQS, send of 1, {PUBLISHERS} connections", publish_over(SQS, PUBLISHERS), {CPU: 200}),
    "sqs-receive": Load(
        f"SQS, receive + delete of 1, {CONSUMERS} connections", receive_over(SQS, CONSUMERS), {CPU: 300}
    ),
    "grpc-unary": Load("gRPC, publish of 1, unary, 16 callers", publish_unary, {}),
    "grpc-batches": Load("gRPC, publish in a stream of batches of 100", publish_batches, {CPU: 10}),
}


def run() -> list[Row]:
    before = os.environ.get("SMALL_BEFORE")
    rounds = int(os.environ.get("SMALL_ROUNDS") or ROUNDS)
    names = [name for name in (os.environ.get("SMALL_LOADS") or "").split(",") if name] or list(LOADS)
    unknown = sorted(set(names) - set(LOADS))
    if unknown:
        sys.exit(f"no such load: {', '.join(unknown)}; there are: {', '.join(LOADS)}")
    rows: list[Row] = []
    for name in names:
        ours: dict[str, list[float]] = {}
        theirs: dict[str, list[float]] = {}
        began_s = time.monotonic()
        for number in range(rounds):
            turns = [(ours, None), (theirs, before)] if before else [(ours, None)]
            for seen, checkout in turns if number % 2 else reversed(turns):
                with started(checkout) as broker:
                    for what, figure in LOADS[name].run(broker).items():
                        seen.setdefault(what, []).append(figure)
        rows += rows_of(LOADS[name], ours, theirs)
        print(f"  {name} took {time.monotonic() - began_s:.1f} s: {ours} {theirs}", flush=True)
    return rows


@contextmanager
def started(checkout: str | None) -> Iterator[OwnBroker]:
    """A node of another checkout has its code from there, and all else from here."""
    known = os.environ.get("PYTHONPATH")
    if checkout is not None:
        os.environ["PYTHONPATH"] = str(Path(checkout).resolve() / "src")
    try:
        with node() as broker:
            yield broker
    finally:
        if checkout is not None:
            os.environ.pop("PYTHONPATH")
            os.environ.update({} if known is None else {"PYTHONPATH": known})


def rows_of(load: Load, ours: dict[str, list[float]], theirs: dict[str, list[float]]) -> list[Row]:
    rows = []
    for what, figures in ours.items():
        if what == CLIENT:
            continue
        unit = UNITS.get(what, "us")
        aim = f"<= {load.aims[what]:g} {unit}" if what in load.aims else None
        baseline = median(theirs[what]) if what in theirs else None
        made = row(f"{load.title}: {what}", median(figures), unit, baseline, aim)
        made["spread"] = [min(figures), max(figures)]
        rows.append(made)
    return rows
