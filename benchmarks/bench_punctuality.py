"""How late delayed messages come: ten thousand a second fall due, and a stream consumer waits for them.

A delayed message carries the time when it was due as its timestamp. The baseline is the same producer and consumer
without a delay: from the send to the arrival. On a topic that stamps what is appended, the timestamp tells how late the
broker itself was, whatever the consumer and its own waiting add.
"""

import statistics
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from goqueue.cli.bench.broker import own_broker

BUILD = Path(__file__).parents[1] / "build"
TOPIC = "delayed"
PER_SECOND = 10_000
SECONDS = 3
DELAY_MS = 4_000
SLOT_S = 0.01
DEADLINE_S = 60
DUE = "due"
"""A header of our own: the one that the broker acts upon is gone when the message comes."""

Row = dict[str, object]


def run() -> list[Row]:
    BUILD.mkdir(exist_ok=True)
    with own_broker(BUILD) as broker:
        plain = quantiles(measure(broker.address, f"{TOPIC}-plain", 0))
    with own_broker(BUILD) as broker:
        late = quantiles(measure(broker.address, TOPIC, DELAY_MS))
    with own_broker(BUILD) as broker:
        stamp(broker.address, TOPIC)
        stored = quantiles(measure(broker.address, TOPIC, DELAY_MS, is_stamped=True))
    aims = {"p99": "< 20 ms"}
    in_log: list[Row] = [
        {
            "name": f"delayed messages, {PER_SECOND:,} due a second: {name} behind their time in the log",
            "value": stored[name],
            "unit": "ms",
            "baseline": None,
            "ratio": None,
            "aim": aims.get(name),
        }
        for name in stored
    ]
    return in_log + [
        {
            "name": f"delayed messages, {PER_SECOND:,} due a second: {name} behind their time",
            "value": late[name],
            "unit": "ms",
            "baseline": plain[name],
            "ratio": late[name] / plain[name] if plain[name] else None,
            "aim": aims.get(name),
        }
        for name in late
    ]


def quantiles(samples: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(samples, n=1000)
    return {"p50": cuts[499], "p99": cuts[989], "p99.9": cuts[998]}


def stamp(address: str, topic: str) -> None:
    """Make a topic whose records carry the time when they were appended."""
    admin = AdminClient({"bootstrap.servers": address})
    made = admin.create_topics([NewTopic(topic, 1, config={"message.timestamp.type": "LogAppendTime"})])
    made[topic].result(30)


def measure(address: str, topic: str, delay_ms: int, *, is_stamped: bool = False) -> list[float]:
    """Milliseconds from when each message was due to when it came, or to when it was appended on a topic that stamps
    it; never below zero where it was delayed.
    """
    count = PER_SECOND * SECONDS
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
    producer.produce(topic, b"first", partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bench", "fetch.wait.max.ms": 100})
    consumer.assign([TopicPartition(topic, 0, 1)])
    sender = threading.Thread(target=send, args=(producer, topic, count, delay_ms))
    sender.start()
    samples: list[float] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(samples) < count:
        assert time.monotonic() < deadline, f"{len(samples)} of {count} came"
        messages = consumer.consume(1000, timeout=0.002)  # who waits for more is late for the first of them
        now_ms = time.time() * 1000
        for message in messages:
            assert message.error() is None, message.error()
            samples.append(lateness_ms(message) if is_stamped else now_ms - message.timestamp()[1])
    sender.join()
    consumer.close()
    if delay_ms:
        assert min(samples) >= 0, "a message came before its time"
    return samples


def lateness_ms(message: Message) -> float:
    due = dict(message.headers() or ())[DUE]
    assert isinstance(due, bytes)
    return message.timestamp()[1] - int(due)


def send(producer: Producer, topic: str, count: int, delay_ms: int) -> None:
    """As evenly as a thread can."""
    headers: list[tuple[str, str | bytes | None]] = []
    failed: list[object] = []

    def delivered(error: object, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    started = time.monotonic()
    per_slot = int(PER_SECOND * SLOT_S)
    for slot in range(count // per_slot):
        time.sleep(max(0.0, started + slot * SLOT_S - time.monotonic()))
        if delay_ms:
            due = b"%d" % (time.time() * 1000 + delay_ms)
            headers = [("gq-deliver-at", due), (DUE, due)]
        for _ in range(per_slot):
            producer.produce(topic, b"x" * 100, partition=0, headers=headers, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(30) == 0
    assert not failed
