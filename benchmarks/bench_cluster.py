"""What copies cost: acks=all, six partitions, on three nodes and three members of etcd that share this machine with the
producers. One and three copies of each partition. The baseline is one node without etcd in the same run.

Three nodes on one machine tell of CPU per message; they are not what three machines reach. So the figure to look at is
the CPU that each node spends on a message: with three copies every node has every message. Producers speak the protocol
themselves with batches of a given size; librdkafka is there too, as one real client that makes its own batches. Of
several turns the best counts: on a shared machine the others measure the neighbours.
"""

import threading
import time
from collections.abc import Callable, Mapping

import confluent_kafka as ck

from benchmarks.clusters import bootstrap, cpu_s, leaders, make_topic, town
from benchmarks.harness import Row, row
from benchmarks.produce_load import Shape, produce
from benchmarks.senders import Spent
from tools.nemesis.town import Town

PARTITIONS = 6
TURNS = 2
COPIES = (1, 3)
SHAPES: Mapping[Shape, int] = {
    Shape(100, 100): 96_000,
    Shape(100, 100, producers=4): 48_000,
    Shape(100, 100, is_mixed=True): 96_000,
    Shape(1000, 100): 48_000,
    Shape(100, 10): 19_200,
    Shape(100, 1): 4_800,
}
"""With the number of messages."""
LIBRDKAFKA_BYTES = (100, 1000)
LIBRDKAFKA_S = 2.0
WAITING_MAX = 20_000
AIMED_AT = (Shape(100, 100), Shape(100, 100, is_mixed=True))
CPU_AIM, RATE_AIM = "< 1.2 us", "> 250,000 msg/s"
IDLE_PARTITIONS = (10, 1000)
IDLE_S = 10.0

Load = Callable[[Town, str], Spent]


def run() -> list[Row]:
    loads: dict[str, Load] = {shape.title: _bare(shape, count) for shape, count in SHAPES.items()}
    loads |= {f"{size} B, librdkafka": _librdkafka(size) for size in LIBRDKAFKA_BYTES}
    aimed_at = {shape.title for shape in AIMED_AT}
    alone: dict[str, Spent] = {}
    rows: list[Row] = []
    with town(1) as made:
        for title, load in loads.items():
            spent = alone[title] = _best(made, load, 1)
            rows += [
                row(f"one node without etcd, {title}: acknowledged", spent.rate, "msg/s"),
                row(f"one node without etcd, {title}: CPU of the node", spent.cpu_us, "us/msg"),
            ]
    with town(3) as made:
        for copies in COPIES:
            for title, load in loads.items():
                spent = _best(made, load, copies)
                name = f"three nodes, {copies} cop{'y' if copies == 1 else 'ies'}, {title}"
                rate_aim = RATE_AIM if copies == 1 and title in aimed_at else None
                cpu_aim = CPU_AIM if copies == 3 and title in aimed_at else None
                per_core, per_core_alone = 1e6 / spent.cpu_us, 1e6 / alone[title].cpu_us
                rows += [
                    row(f"{name}: acknowledged", spent.rate, "msg/s", alone[title].rate, rate_aim),
                    row(f"{name}: CPU of one node, on average", spent.cpu_us / 3, "us/msg", aim=cpu_aim),
                    row(f"{name}: messages for a second of CPU of the nodes", per_core, "msg/s", per_core_alone),
                ]
    return rows + _idle()


def _best(made: Town, load: Load, copies: int) -> Spent:
    """By its CPU. The topic is a new one each time."""
    found = []
    for _ in range(TURNS):
        topic = f"t{time.monotonic_ns()}"
        make_topic(made, topic, PARTITIONS, copies)
        found.append(load(made, topic))
    return min(found, key=lambda spent: spent.cpu_us)


def _bare(shape: Shape, messages: int) -> Load:
    def load(made: Town, topic: str) -> Spent:
        addresses = {node.node_id: node.kafka for node in made.nodes}
        places = {partition: addresses[leader] for partition, leader in leaders(made, topic).items()}
        return produce(topic, places, shape, messages, lambda: _cpu_s(made))

    return load


def _librdkafka(size: int) -> Load:
    def load(made: Town, topic: str) -> Spent:
        settings = {"bootstrap.servers": bootstrap(made), "enable.idempotence": True, "acks": "all", "linger.ms": 5}
        producer = ck.Producer(settings | {"log_level": 0, "queue.buffering.max.messages": 2 * WAITING_MAX})
        done = failed = 0

        def delivered(error: ck.KafkaError | None, _message: ck.Message) -> None:
            nonlocal done, failed
            if error is None:
                done += 1
            else:
                failed += 1

        value, number = b"x" * size, 0
        for partition in range(PARTITIONS):  # connections and the first batches are not counted
            producer.produce(topic, value, partition=partition, on_delivery=delivered)
        assert not producer.flush(30)
        done = 0
        began_s, cpu_began_s = time.monotonic(), _cpu_s(made)
        while time.monotonic() < began_s + LIBRDKAFKA_S:
            if len(producer) < WAITING_MAX:
                for _ in range(500):
                    producer.produce(topic, value, partition=number % PARTITIONS, on_delivery=delivered)
                    number += 1
                producer.poll(0)
            else:
                producer.poll(0.01)
        assert not producer.flush(60)
        took_s = time.monotonic() - began_s
        assert (done, failed) == (number, 0), f"{number} sent, {done} acknowledged, {failed} failed"
        return Spent(done, took_s, _cpu_s(made) - cpu_began_s)

    return load


def _idle() -> list[Row]:
    rows = []
    with town(3) as made:
        for partitions in IDLE_PARTITIONS:
            make_topic(made, f"idle-{partitions}", partitions, 3)
            threading.Event().wait(IDLE_S / 2)  # what the new topic gave them to do is over
            began_s, cpu_began_s = time.monotonic(), _cpu_s(made)
            threading.Event().wait(IDLE_S)
            share = (_cpu_s(made) - cpu_began_s) / (time.monotonic() - began_s) / len(made.nodes)
            rows.append(
                row(f"three nodes, {partitions} partitions of 3 copies, idle: CPU of one node", share * 100, "%")
            )
    return rows


def _cpu_s(made: Town) -> float:
    return sum(map(cpu_s, made.nodes))
