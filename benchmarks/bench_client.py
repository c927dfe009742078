"""Our Python client beside aiokafka and confluent-kafka, on the same broker in the same run: 100-byte messages.

Each has three turns, in turns with the others, and its best counts: on a shared machine the other turns measure the
neighbours. The async clients run on uvloop. All publish idempotently with 5 ms of linger. The baseline is aiokafka,
the ratio is each client's rate divided by its.
"""

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer

from benchmarks.harness import QUIET, Row, best_rates, node, rate_rows
from goqueue.cli.bench.broker import Broker
from goqueue.cli.bench.librdkafka import own_topic
from goqueue.cli.bench.load import Load
from goqueue.client import Consumer, Producer

PARTITIONS = 3
VALUE = bytes(100)
PUBLISHED, CONSUMED, ONE_BY_ONE = 200_000, 500_000, 100_000
OURS, BASELINE = "goqueue.client", "aiokafka"
AIMS = {OURS: "ratio >= 1"}

Measure = Callable[[str, str, int], float]
"""Address, topic and messages to messages per second."""


def run() -> list[Row]:
    rows: list[Row] = []
    for durability in ("os", "disk"):
        load = Load(PUBLISHED, len(VALUE), partitions=PARTITIONS, durability=durability)
        with node() as broker:
            rates = best_rates({name: partial(published, broker, load, work) for name, work in PUBLISHERS.items()})
        rows += rate_rows(f"publish, {len(VALUE)} bytes, {durability}", rates, "msg/s", BASELINE, AIMS)
    with node() as broker:
        load = Load(CONSUMED, len(VALUE), partitions=PARTITIONS, durability="os")
        with own_topic(broker, load, QUIET) as topic:
            measured(publish_ours, broker.address, topic.name, CONSUMED)
            topic.check_stored(CONSUMED)
            for title, readers, messages in (("in lists", POLLERS, CONSUMED), ("one by one", ITERATORS, ONE_BY_ONE)):
                works = {
                    name: partial(measured, read, broker.address, topic.name, messages)
                    for name, read in readers.items()
                }
                rates = best_rates(works)
                rows += rate_rows(f"consume {title}, {len(VALUE)} bytes", rates, "msg/s", BASELINE, AIMS)
    return rows


def published(broker: Broker, load: Load, publish: Measure) -> float:
    with own_topic(broker, load, QUIET) as topic:
        rate = measured(publish, broker.address, topic.name, load.messages)
        topic.check_stored(load.messages)
    return rate


def measured(measure: Measure, address: str, topic: str, messages: int) -> float:
    gc.collect()
    return measure(address, topic, messages)


def in_loop(work: Callable[[str, str, int], Any]) -> Measure:
    def measure(address: str, topic: str, messages: int) -> float:
        rate: float = uvloop.run(work(address, topic, messages))
        return rate

    return measure


def rate_since(started: float, messages: int) -> float:
    return messages / (time.perf_counter() - started)


@in_loop
async def publish_ours(address: str, topic: str, messages: int) -> float:
    async with Producer(address) as producer:
        started = time.perf_counter()
        for _ in range(messages):
            await producer.post(topic, VALUE)
        await producer.flush()
        return rate_since(started, messages)


@in_loop
async def publish_aiokafka(address: str, topic: str, messages: int) -> float:
    producer = AIOKafkaProducer(bootstrap_servers=address, enable_idempotence=True, linger_ms=5)
    await producer.start()
    try:
        started = time.perf_counter()
        for _ in range(messages):
            await producer.send(topic, VALUE)
        await producer.flush()
        return rate_since(started, messages)
    finally:
        await producer.stop()


def publish_confluent(address: str, topic: str, messages: int) -> float:
    producer = ConfluentProducer(
        {"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
    )
    started = time.perf_counter()
    for _ in range(messages):
        while True:
            try:
                producer.produce(topic, VALUE)
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(60) == 0
    return rate_since(started, messages)


@in_loop
async def poll_ours(address: str, topic: str, messages: int) -> float:
    async with Consumer(address, topic) as consumer:
        started, left = time.perf_counter(), messages
        while left > 0:
            left -= len(await consumer.poll(max_messages=500))
        return rate_since(started, messages)


@in_loop
async def poll_aiokafka(address: str, topic: str, messages: int) -> float:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
    await consumer.start()
    try:
        started, left = time.perf_counter(), messages
        while left > 0:
            found = await consumer.getmany(timeout_ms=1000, max_records=500)
            left -= sum(map(len, found.values()))
        return rate_since(started, messages)
    finally:
        await consumer.stop()


def poll_confluent(address: str, topic: str, messages: int) -> float:
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": address,
            "group.id": f"bench-{time.time_ns()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        consumer.subscribe([topic])
        first = consumer.consume(1, 60)
        started, left = time.perf_counter(), messages - len(first)
        while left > 0:
            left -= len(consumer.consume(500, 1))
        return rate_since(started, messages)
    finally:
        consumer.close()


@in_loop
async def iterate_ours(address: str, topic: str, messages: int) -> float:
    async with Consumer(address, topic) as consumer:
        started, left = time.perf_counter(), messages
        async for _ in consumer:
            left -= 1
            if not left:
                break
        return rate_since(started, messages)


@in_loop
async def iterate_aiokafka(address: str, topic: str, messages: int) -> float:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
    await consumer.start()
    try:
        started, left = time.perf_counter(), messages
        async for _ in consumer:
            left -= 1
            if not left:
                break
        return rate_since(started, messages)
    finally:
        await consumer.stop()


PUBLISHERS: dict[str, Measure] = {
    OURS: publish_ours,
    BASELINE: publish_aiokafka,
    "confluent-kafka": publish_confluent,
}
POLLERS: dict[str, Measure] = {OURS: poll_ours, BASELINE: poll_aiokafka, "confluent-kafka": poll_confluent}
ITERATORS: dict[str, Measure] = {OURS: iterate_ours, BASELINE: iterate_aiokafka}
