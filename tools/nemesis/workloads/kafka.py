"""Kafka clients of librdkafka, as workloads use them: quick to come back, and reading whole partitions."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import confluent_kafka as ck

from tools.nemesis.workloads.common import DRAIN_S_MAX, Run

EOF = ck.KafkaError._PARTITION_EOF  # noqa: SLF001  librdkafka's own name for it
QUIET = {"log_level": 0, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500, "socket.timeout.ms": 10_000}
TELLING = {"log_level": 7, "debug": "eos,cgrp,protocol,broker"}
"""What it does for transactions and groups, on stderr, which a run keeps: who hangs shall be understood."""
Records = dict[int, list[tuple[int, str]]]
"""Offset and value, by partition, in order."""


def producer(run: Run, **settings: Any) -> ck.Producer:
    mine = {"bootstrap.servers": run.bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 0}
    return ck.Producer(QUIET | mine | settings)


def reader(run: Run, topic: str, offsets: Sequence[int], **settings: Any) -> ck.Consumer:
    """Of all partitions, from these offsets on."""
    mine = {"bootstrap.servers": run.bootstrap, "group.id": "nemesis-reader", "enable.auto.commit": False}
    mine |= {"enable.partition.eof": True, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 100}
    consumer = ck.Consumer(QUIET | mine | settings)
    consumer.assign([ck.TopicPartition(topic, number, offset) for number, offset in enumerate(offsets)])
    return consumer


def portion(consumer: ck.Consumer, timeout_s: float, messages_max: int = 500) -> tuple[Records, set[int]]:
    """What has come, and the partitions whose ends were reached."""
    records: Records = {}
    ends: set[int] = set()
    for message in consumer.consume(messages_max, timeout_s):
        number, offset, value = message.partition(), message.offset(), message.value()
        error = message.error()
        if number is None:
            continue
        if error is not None:
            if error.code() == EOF:
                ends.add(number)
            continue
        assert offset is not None
        ends.discard(number)
        records.setdefault(number, []).append((offset, (value or b"").decode()))
    return records, ends


def read_all(run: Run, topic: str, partitions: int, **settings: Any) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """Everything from the start to the end of each partition, when all is healed."""
    consumer = reader(run, topic, [0] * partitions, **settings)
    found: Records = {number: [] for number in range(partitions)}
    ended: set[int] = set()
    give_up = time.monotonic() + DRAIN_S_MAX
    while len(ended) < partitions:
        if time.monotonic() > give_up:
            missing = sorted(set(range(partitions)) - ended)
            run.problems.append(f"the ends of partitions {missing} of {topic} could not be read")
            break
        records, ends = portion(consumer, 0.5)
        for number, more in records.items():
            found[number] += more
            ended.discard(number)
        ended |= ends
    consumer.close()
    for number in range(partitions):
        if number in ended:
            yield number, found[number]
