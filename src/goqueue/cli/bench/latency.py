"""One message in flight: how long until it is acknowledged, and until a waiting consumer has it.

Each message is followed by the raw operations on the same bytes, so that a busy moment of the machine meets both.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from confluent_kafka import Consumer, KafkaError, Message, Producer

from goqueue.cli.bench.broker import Broker
from goqueue.cli.bench.errors import BenchFailed
from goqueue.cli.bench.librdkafka import ANSWER_S_MAX, STEP_S, Client, Topic, own_topic
from goqueue.cli.bench.load import Load
from goqueue.cli.bench.raw import Echo, SyncedFile, echo
from goqueue.cli.bench.report import Figure, Report, quantiles
from goqueue.cli.progress import Progress

WARM_UP = 100
"""Messages before the first that counts: connections are made, the consumer's first fetch waits at the broker."""
BATCH_BYTES = 61 + 10
"""Around the value of a batch of one message."""
REQUEST_BYTES = 80
"""Around the batch, about: the header of the request and the name of the topic."""
PRODUCE_REPLY_BYTES = 80
"""About."""
CONSUME_WAIT_MS = 500


class Raw:
    """The raw operations beside one kind of message, and how long each took."""

    def __init__(self, echoes: Echo, file: SyncedFile | None) -> None:
        self._echo = echoes
        self._file = file
        self.echoes_s: list[float] = []
        self.syncs_s: list[float] = []

    def take(self) -> None:
        self.echoes_s.append(self._echo.round_trip_s())
        if self._file is not None:
            self.syncs_s.append(self._file.write_s())

    @property
    def totals_s(self) -> list[float]:
        """What no broker could beat: there and back, and the sync on the way if there is one."""
        return [sum(pair) for pair in zip(self.echoes_s, self.syncs_s)] if self.syncs_s else self.echoes_s

    def forget(self) -> None:
        self.echoes_s.clear()
        self.syncs_s.clear()


@contextmanager
def _raw(broker: Broker, load: Load, topic: Topic, reply_bytes: int) -> Iterator[Raw | None]:
    if broker.directory is None:
        yield None
        return
    with ExitStack() as stack:
        batch_bytes = BATCH_BYTES + load.value_bytes
        file = None
        if topic.durability == "disk":
            file = stack.enter_context(closing(SyncedFile(broker.directory, batch_bytes)))
        yield Raw(stack.enter_context(echo(batch_bytes + REQUEST_BYTES, reply_bytes)), file)


def bench_latency(broker: Broker, load: Load, progress: Progress) -> Report:
    with own_topic(broker, load, progress) as topic:
        with _raw(broker, load, topic, PRODUCE_REPLY_BYTES) as beside_publish:
            published_s = _publish(broker, topic, load, beside_publish, progress)
        with _raw(broker, load, topic, BATCH_BYTES + load.value_bytes + REQUEST_BYTES) as beside_delivery:
            delivered_s = _deliver(broker, topic, load, beside_delivery, progress)
        figures = _figures("publish", published_s, beside_publish) | _figures("delivery", delivered_s, beside_delivery)
        if beside_publish is not None:
            figures |= _figures("raw_echo", beside_publish.echoes_s) | _figures("raw_sync", beside_publish.syncs_s)
        stored = topic.check_stored(2 * (load.messages + WARM_UP))
        return Report(
            kind="latency",
            load=load,
            broker=broker.address,
            durability=topic.durability,
            filesystem=broker.filesystem,
            counts={"published": load.messages, "delivered": load.messages, "stored": stored},
            figures=figures,
        )


def _figures(name: str, samples_s: list[float], beside: Raw | None = None) -> dict[str, Figure]:
    if not samples_s:
        return {}
    raw_s = quantiles(beside.totals_s) if beside else {}
    return {
        f"{name}_{quantile}_ms": Figure(value_s * 1e3, "ms", raw_s[quantile] * 1e3 if raw_s else None)
        for quantile, value_s in quantiles(samples_s).items()
    }


class _Publisher:
    """A producer that sends one message at a time."""

    def __init__(self, broker: Broker, topic: Topic) -> None:
        self._client = Client(broker)
        self.producer = Producer(self._client.settings | {"acks": "all", "linger.ms": 0})
        self.producer.list_topics(topic.name, timeout=ANSWER_S_MAX)
        self._topic = topic
        self._acknowledged = 0

    def send(self, number: int, value: bytes) -> None:
        partition = number % self._topic.partitions
        self.producer.produce(self._topic.name, value, partition=partition, on_delivery=self._on_delivery)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        self._client.on_delivery(error, message)
        self._acknowledged += 1

    def wait(self, acknowledged: int) -> None:
        while self._acknowledged < acknowledged:
            self.producer.poll(STEP_S)
            self._client.check(has_progress=self._acknowledged >= acknowledged)


def _publish(broker: Broker, topic: Topic, load: Load, raw: Raw | None, progress: Progress) -> list[float]:
    publisher = _Publisher(broker, topic)
    value = bytes(load.value_bytes)
    samples_s = []
    for number in range(WARM_UP + load.messages):
        if number == WARM_UP and raw:
            raw.forget()
        started_s = time.perf_counter()
        publisher.send(number, value)
        publisher.wait(number + 1)
        samples_s.append(time.perf_counter() - started_s)
        if raw:
            raw.take()
        progress.show("publishing", number, WARM_UP + load.messages)
    return samples_s[WARM_UP:]


def _deliver(broker: Broker, topic: Topic, load: Load, raw: Raw | None, progress: Progress) -> list[float]:
    publisher = _Publisher(broker, topic)
    client = Client(broker)
    settings = {"group.id": topic.name, "enable.auto.commit": False, "fetch.wait.max.ms": CONSUME_WAIT_MS}
    consumer = Consumer(client.settings | settings)
    consumer.assign([topic.place(partition, end) for partition, end in enumerate(topic.ends())])
    samples_s = []
    try:
        for number in range(WARM_UP + load.messages):
            if number == WARM_UP and raw:
                raw.forget()
            value = number.to_bytes(8, "big")[-load.value_bytes :].ljust(load.value_bytes, b"\0")
            started_s = time.perf_counter()
            publisher.send(number, value)
            came = _receive(consumer, client)
            samples_s.append(time.perf_counter() - started_s)
            if came.value() != value:
                raise BenchFailed(f"message {number} was awaited, but offset {came.offset()} is another")
            publisher.wait(number + 1)
            if raw:
                raw.take()
            progress.show("delivering", number, WARM_UP + load.messages)
    finally:
        consumer.close()
    return samples_s[WARM_UP:]


def _receive(consumer: Consumer, client: Client) -> Message:
    while True:
        message = consumer.poll(STEP_S)
        client.check(has_progress=message is not None)
        if message is not None:
            error = message.error()
            if error is not None:
                raise BenchFailed(f"a message could not be read: {error.str()}")
            return message
