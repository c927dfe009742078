"""Many messages at once: how fast they go in and come out, and what each costs the broker."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Consumer, Message, Producer

from goqueue.cli.bench.broker import Broker
from goqueue.cli.bench.errors import BenchFailed
from goqueue.cli.bench.librdkafka import ANSWER_S_MAX, STEP_S, Client, Topic, Traffic, own_topic
from goqueue.cli.bench.load import Load
from goqueue.cli.bench.process import MIB
from goqueue.cli.bench.raw import EchoRun, echo
from goqueue.cli.bench.report import Figure, Report
from goqueue.cli.progress import Progress

CHUNK = 500
"""Messages that are handed to librdkafka in one call, about."""
UNACKNOWLEDGED_MAX = 100_000
UNACKNOWLEDGED_BYTES_MAX = 64 * MIB
FULL_BATCH_LINGER_MS = 1000
"""A batch leaves when it is full; this is only the longest that it may wait for that."""
CONSUME_MAX = 10_000
ECHOES_MIN, ECHOES_MAX = 200, 20_000
PRODUCES_IN_FLIGHT = 5
FETCHES_IN_FLIGHT = 1
WARM_UP = Load(messages=1000, value_bytes=100, batch=100)
"""The first requests of every kind cost a broker more: it prepares what all others use."""


@dataclass(frozen=True)
class Spent:
    """What the messages of one load took."""

    seconds: float
    broker_cpu_s: float | None
    client_cpu_s: float
    traffic: Traffic


class Stopwatch:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._broker_cpu_s = broker.process.cpu_s() if broker.process else 0.0
        self._client_cpu_s = time.process_time()
        self._started_s = time.perf_counter()

    def stop(self) -> tuple[float, float | None, float]:
        seconds = time.perf_counter() - self._started_s
        client_cpu_s = time.process_time() - self._client_cpu_s
        process = self._broker.process
        return seconds, process.cpu_s() - self._broker_cpu_s if process else None, client_cpu_s


def bench_produce(broker: Broker, load: Load, progress: Progress) -> Report:
    with _warmed_up(broker, progress), own_topic(broker, load, progress) as topic:
        spent = produce(broker, topic, load, progress)
        counts = {
            "sent": load.messages,
            "acknowledged": load.messages,
            "stored": topic.check_stored(load.messages),
            "requests": spent.traffic.requests,
        }
        return _report("produce", broker, load, topic, counts, spent)


def bench_consume(broker: Broker, load: Load, progress: Progress) -> Report:
    with _warmed_up(broker, progress), own_topic(broker, load, progress) as topic:
        produce(broker, topic, load, progress)
        stored = topic.check_stored(load.messages)
        spent = consume(broker, topic, load, progress)
        counts = {"stored": stored, "consumed": load.messages, "requests": spent.traffic.requests}
        return _report("consume", broker, load, topic, counts, spent)


@contextmanager
def _warmed_up(broker: Broker, progress: Progress) -> Iterator[None]:
    """Its topic stays until the end: a broker that deletes works, and that work is not part of the load."""
    with own_topic(broker, WARM_UP, progress) as topic:
        produce(broker, topic, WARM_UP, progress)
        consume(broker, topic, WARM_UP, progress)
        yield


def produce(broker: Broker, topic: Topic, load: Load, progress: Progress) -> Spent:
    """Returns when every message is acknowledged; BenchFailed if one was not."""
    client = Client(broker)
    batching = {"batch.num.messages": load.batch, "linger.ms": FULL_BATCH_LINGER_MS if load.batch != 1 else 0}
    producer = Producer(
        client.settings
        | client.counting
        | ({} if load.batch is None else batching)
        # Successes are not reported one by one: a call of Python for each would measure Python.
        | {"acks": "all", "delivery.report.only.error": True, "queue.buffering.max.messages": 2 * UNACKNOWLEDGED_MAX}
    )
    producer.list_topics(topic.name, timeout=ANSWER_S_MAX)
    stopwatch = Stopwatch(broker)
    _send(producer, client, topic, load, progress)
    left = len(producer)
    while left:
        before, left = left, producer.flush(STEP_S)
        client.check(has_progress=left < before)
        progress.show("producing", load.messages - left, load.messages)
    client.check(has_progress=True)
    times = stopwatch.stop()
    traffic = client.traffic("Produce", load.messages, producer.poll)
    return Spent(*times, traffic)


def _send(producer: Producer, client: Client, topic: Topic, load: Load, progress: Progress) -> None:
    """Hand every message to librdkafka, with a bound on those that are not acknowledged yet."""
    whole_batches = max(1, CHUNK // load.batch) * load.batch if load.batch else CHUNK
    message: dict[str, object] = {"value": bytes(load.value_bytes)}
    chunk = [message] * whole_batches
    unacknowledged_max = max(1, min(UNACKNOWLEDGED_MAX, UNACKNOWLEDGED_BYTES_MAX // load.value_bytes))
    sent = turn = 0
    while sent < load.messages:
        if len(producer) > unacknowledged_max:
            before = len(producer)
            producer.poll(0.001)
            client.check(has_progress=len(producer) < before)
            continue
        # With batches of a given size, each goes to one partition; else librdkafka chooses.
        partition = turn % load.partitions if load.batch else -1
        part = chunk if len(chunk) <= load.messages - sent else chunk[: load.messages - sent]
        taken = producer.produce_batch(topic.name, part, partition, on_delivery=client.on_delivery)
        if taken < len(part):
            raise BenchFailed(f"librdkafka does not take a message: {message['_error']}")
        sent += taken
        producer.poll(0)
        client.check(has_progress=True)
        turn += 1
        progress.show("producing", sent - len(producer), load.messages)


def consume(broker: Broker, topic: Topic, load: Load, progress: Progress) -> Spent:
    """Reads every message once, in the order of its partition; BenchFailed if one is missing or comes twice."""
    client = Client(broker)
    consumer = Consumer(
        client.settings
        | client.counting
        | {
            "group.id": topic.name,
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 0,  # the default pauses for a second whenever Python is slower than the broker
        }
    )
    try:
        stopwatch = Stopwatch(broker)
        consumer.assign([topic.place(partition) for partition in range(topic.partitions)])
        next_offsets = [0] * topic.partitions
        consumed = 0
        while consumed < load.messages:
            messages = consumer.consume(CONSUME_MAX, timeout=STEP_S)
            client.check(has_progress=bool(messages))
            check_order(messages, next_offsets, load.value_bytes)
            consumed += len(messages)
            progress.show("consuming", consumed, load.messages)
        times = stopwatch.stop()
        return Spent(*times, client.traffic("Fetch", load.messages, consumer.poll))
    finally:
        consumer.close()


def check_order(messages: list[Message], next_offsets: list[int], value_bytes: int) -> None:
    for message in messages:
        error = message.error()
        if error is not None:
            raise BenchFailed(f"a message could not be read: {error.str()}")
        partition, offset = message.partition() or 0, message.offset()
        if offset != next_offsets[partition] or len(message) != value_bytes:
            expected = f"offset {next_offsets[partition]} of partition {partition} with {value_bytes} bytes"
            raise BenchFailed(f"{expected} was expected, but offset {offset} with {len(message)} bytes came")
        next_offsets[partition] += 1


def _report(kind: str, broker: Broker, load: Load, topic: Topic, counts: dict[str, int], spent: Spent) -> Report:
    return Report(
        kind=kind,
        load=load,
        broker=broker.address,
        durability=topic.durability,
        filesystem=broker.filesystem,
        counts=counts,
        figures=_figures(kind, broker, load, spent),
    )


def _figures(kind: str, broker: Broker, load: Load, spent: Spent) -> dict[str, Figure]:
    messages, requests = load.messages, spent.traffic.requests
    per_request = messages / requests
    per_s = messages / spent.seconds
    # A remote broker stands behind a network that an echo on this machine knows nothing of.
    raw = _raw(kind, spent.traffic) if broker.process else None
    figures = {
        "messages_per_s": Figure(per_s, "msg/s", raw.requests_per_s * per_request if raw else None),
        "mib_per_s": Figure(per_s * load.value_bytes / MIB, "MiB/s"),
        "messages_per_request": Figure(per_request, "msg"),
    }
    if broker.process and raw and spent.broker_cpu_s is not None:
        cpu_us, raw_us = spent.broker_cpu_s * 1e6, raw.cpu_us_per_request
        memory = broker.process.memory()
        figures |= {
            "broker_cpu_us_per_message": Figure(cpu_us / messages, "us", raw_us / per_request),
            "broker_cpu_us_per_request": Figure(cpu_us / requests, "us", raw_us),
            "broker_rss_mib": Figure(memory.rss_bytes / MIB, "MiB"),
            "broker_rss_anonymous_mib": Figure(memory.anonymous_bytes / MIB, "MiB"),
        }
    return figures | {"client_cpu_us_per_message": Figure(spent.client_cpu_s / messages * 1e6, "us")}


def _raw(kind: str, traffic: Traffic) -> EchoRun:
    requests = max(ECHOES_MIN, min(traffic.requests, ECHOES_MAX))
    with echo(traffic.request_bytes, traffic.reply_bytes) as server:
        return server.run(requests, FETCHES_IN_FLIGHT if kind == "consume" else PRODUCES_IN_FLIGHT)
