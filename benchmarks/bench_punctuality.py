"""How late delayed messages come: ten thousand a second fall due, and a stream consumer waits for them.

A delayed message carries the time when it was due as its timestamp. The baseline is the same producer and consumer
without a delay: from the send to the arrival. On a topic that stamps what is appended, the timestamp tells how late the
broker itself was, whatever the consumer and its own waiting add.
"""

import threading
import time

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.harness import Row, node, row
from goqueue.cli.bench.report import quantiles

TOPIC = "delayed"
PER_SECOND = 10_000
SECONDS = 3
DELAY_MS = 4_000
SLOT_S = 0.01
DEADLINE_S = 60
DUE = "due"
TITLE = f"delayed messages, {PER_SECOND:,} due a second"
AIMS = {"p99": "< 20 ms"}
LABELS = {name: f"{name} behind their time" for name in ("p50", "p99")} | {"p999": "p99.9 behind their time"}
"""A header of our own: the one that the broker acts upon is gone when the message comes."""


def run() -> list[Row]:
    with node() as broker:
        plain = quantiles(measure(broker.address, f"{TOPIC}-plain", 0))
    with node() as broker:
        late = quantiles(measure(broker.address, TOPIC, DELAY_MS))
    with node() as broker:
        stamp(broker.address, TOPIC)
        stored = quantiles(measure(broker.address, TOPIC, DELAY_MS, is_stamped=True))
    rows = [row(f"{TITLE}: {LABELS[name]} in the log", stored[name], "ms", None, AIMS.get(name)) for name in stored]
    return rows + [row(f"{TITLE}: {LABELS[name]}", late[name], "ms", plain[name], AIMS.get(name)) for name in late]


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
