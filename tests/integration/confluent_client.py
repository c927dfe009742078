"""confluent-kafka: librdkafka."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

import confluent_kafka as ck

from tests.integration.clients import ClientFailure, Message, Record
from tests.integration.process import DEADLINE_S, Late
from tests.integration.topics import NO_REBOOTSTRAP

T = TypeVar("T")
QUIET = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200} | NO_REBOOTSTRAP
EOF = ck.KafkaError._PARTITION_EOF


def _try(call: Callable[..., T], *arguments: Any, **named: Any) -> T:
    try:
        return call(*arguments, **named)
    except ck.KafkaException as error:
        raise ClientFailure(error.args[0].code(), str(error)) from error


def record_of(message: ck.Message) -> Record:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    headers: Any = message.headers() or ()
    return Record(
        topic, partition, offset, message.value(), message.key(), tuple(map(tuple, headers)), message.timestamp()[1]
    )


class ConfluentProducer:
    def __init__(self, settings: dict[str, Any], *, is_transactional: bool) -> None:
        self._producer = ck.Producer(settings)
        if is_transactional:
            _try(self._producer.init_transactions, DEADLINE_S)

    def send(self, topic: str, messages: Sequence[Message]) -> list[int]:
        offsets: dict[int, int] = {}
        failures: list[ck.KafkaError] = []

        def delivered(number: int, error: ck.KafkaError | None, message: ck.Message) -> None:
            if error is not None:
                failures.append(error)
            else:
                offsets[number] = message.offset() or 0

        for number, message in enumerate(messages):
            _try(
                self._producer.produce,
                topic,
                message.value,
                message.key,
                message.partition,
                headers=list(message.headers),
                timestamp=message.timestamp_ms or 0,
                on_delivery=lambda error, sent, number=number: delivered(number, error, sent),
            )
        if _try(self._producer.flush, DEADLINE_S):
            raise Late("messages are still not acknowledged")
        if failures:
            raise ClientFailure(failures[0].code(), str(failures[0]))
        return [offsets[number] for number in range(len(messages))]

    def begin(self) -> None:
        _try(self._producer.begin_transaction)

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: str) -> None:
        consumer = ck.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": group, "log_level": 0})
        places = [ck.TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        metadata = consumer.consumer_group_metadata()
        _try(self._producer.send_offsets_to_transaction, places, metadata, DEADLINE_S)
        consumer.close()

    def commit(self) -> None:
        _try(self._producer.commit_transaction, DEADLINE_S)

    def abort(self) -> None:
        _try(self._producer.abort_transaction, DEADLINE_S)

    def close(self) -> None:
        self._producer.purge()
        with suppress(ck.KafkaException):  # it was fenced, and says so once more
            self._producer.flush(0)


class ConfluentConsumer:
    def __init__(self, settings: dict[str, Any], topics: Iterable[str]) -> None:
        self._consumer = ck.Consumer(settings)
        self._consumer.subscribe(list(topics))

    def poll(self, timeout_s: float = 0.1) -> list[Record]:
        first = self._consumer.poll(timeout_s)
        messages = [] if first is None else [first, *self._consumer.consume(500, 0)]
        for message in messages:
            error = message.error()
            if error is not None and not error.retriable():
                raise ClientFailure(error.code(), str(error))
        return [record_of(message) for message in messages if message.error() is None]

    def assignment(self) -> set[tuple[str, int]]:
        return {(place.topic, place.partition) for place in self._consumer.assignment()}

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        places = [ck.TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        done: list[ck.TopicPartition] | None = _try(self._consumer.commit, offsets=places, asynchronous=False)
        for place in done or ():
            if place.error is not None:
                raise ClientFailure(place.error.code(), str(place.error))

    def commit_soon(self, offsets: Mapping[tuple[str, int], int]) -> None:
        places = [ck.TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        _try(self._consumer.commit, offsets=places, asynchronous=True)

    def committed(self, topic: str, partition: int) -> int | None:
        (place,) = _try(self._consumer.committed, [ck.TopicPartition(topic, partition)], DEADLINE_S)
        return None if place.offset < 0 else place.offset

    def close(self) -> None:
        self._consumer.close()


class Confluent:
    name: ClassVar[str] = "confluent"
    assignors: ClassVar[tuple[str, ...]] = ("range", "roundrobin", "cooperative-sticky")

    @staticmethod
    def producer(
        address: str,
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
    ) -> ConfluentProducer:
        settings = {
            "bootstrap.servers": address,
            "compression.type": codec,
            "acks": acks,
            "linger.ms": 5,
            "enable.idempotence": idempotent or transactional_id is not None,
            **QUIET,
        }
        if transactional_id is not None:
            settings |= {"transactional.id": transactional_id, "transaction.timeout.ms": transaction_timeout_ms}
            settings["message.timeout.ms"] = min(transaction_timeout_ms, 300_000)
        return ConfluentProducer(settings, is_transactional=transactional_id is not None)

    @staticmethod
    def member(
        address: str,
        group: str,
        topics: Iterable[str],
        assignor: str = "range",
        instance_id: str | None = None,
        metadata_ms: int = 300_000,
    ) -> ConfluentConsumer:
        settings: dict[str, Any] = {
            "bootstrap.servers": address,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "topic.metadata.refresh.interval.ms": metadata_ms,
            **QUIET,
        }
        if assignor == "consumer":
            settings["group.protocol"] = "consumer"
        else:
            settings |= {"partition.assignment.strategy": assignor, "heartbeat.interval.ms": 200}
            settings["session.timeout.ms"] = 30_000
        if instance_id is not None:
            settings["group.instance.id"] = instance_id
        return ConfluentConsumer(settings, topics)

    @staticmethod
    def read(address: str, ends: Mapping[tuple[str, int], int], *, committed_only: bool = False) -> list[Record]:
        consumer = ck.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "reads without a group",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
                "isolation.level": "read_committed" if committed_only else "read_uncommitted",
                **QUIET,
            }
        )
        consumer.assign([ck.TopicPartition(topic, partition, 0) for topic, partition in ends])
        records: list[Record] = []
        left = {place for place, end in ends.items() if end > 0}
        while left:
            message = consumer.poll(DEADLINE_S)
            if message is None:
                raise Late(f"the end of {left} was not reached")
            error, place = message.error(), (message.topic() or "", message.partition() or 0)
            if error is None:
                records.append(record_of(message))
            elif error.code() != EOF:
                raise ClientFailure(error.code(), str(error))
            if (message.offset() or 0) + (error is None) >= ends[place]:
                left.discard(place)
        consumer.close()
        return records
