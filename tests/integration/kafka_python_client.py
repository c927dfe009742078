"""kafka-python: pure Python."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its own resources in an old way
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition  # type: ignore[import-untyped]
    from kafka.admin import KafkaAdminClient  # type: ignore[import-untyped]
    from kafka.coordinator.assignors.cooperative_sticky import (  # type: ignore[import-untyped]
        CooperativeStickyAssignor,
    )
    from kafka.coordinator.assignors.range import RangePartitionAssignor  # type: ignore[import-untyped]
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # type: ignore[import-untyped]
    from kafka.errors import KafkaError  # type: ignore[import-untyped]
    from kafka.structs import OffsetAndMetadata  # type: ignore[import-untyped]

from tests.integration.clients import ClientFailure, Message, Record
from tests.integration.process import DEADLINE_S, Late

T = TypeVar("T")
ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
QUIET = {"metrics_enabled": False, "reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 200}


def _try(call: Callable[..., T], *arguments: Any, **named: Any) -> T:
    try:
        return call(*arguments, **named)
    except KafkaError as error:
        raise ClientFailure(getattr(error, "errno", None), repr(error)) from error


@contextmanager
def admin(address: str) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=address)
    try:
        yield client
    finally:
        client.close()


def partition_of(topic: str, number: int) -> Any:
    return TopicPartition(topic, number)


def record_of(record: Any) -> Record:
    headers = tuple(map(tuple, record.headers))
    return Record(record.topic, record.partition, record.offset, record.value, record.key, headers, record.timestamp)


class KafkaPythonProducer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._producer = KafkaProducer(**settings)
        if settings["transactional_id"] is not None:
            _try(self._producer.init_transactions)

    def send(self, topic: str, messages: Sequence[Message]) -> list[int]:
        futures = [
            _try(
                self._producer.send,
                topic,
                value=message.value,
                key=message.key,
                headers=list(message.headers),
                partition=message.partition,
                timestamp_ms=message.timestamp_ms,
            )
            for message in messages
        ]
        return [_try(future.get, timeout=DEADLINE_S).offset for future in futures]

    def begin(self) -> None:
        _try(self._producer.begin_transaction)

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: str) -> None:
        places = {TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}
        _try(self._producer.send_offsets_to_transaction, places, group)

    def commit(self) -> None:
        _try(self._producer.commit_transaction)

    def abort(self) -> None:
        _try(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=5)  # its thread is to end, or it goes on connecting


class KafkaPythonConsumer:
    def __init__(self, settings: dict[str, Any], topics: Iterable[str]) -> None:
        self._consumer = KafkaConsumer(**settings)
        # Else its leader may assign partitions before it has heard of any, and then again.
        for topic in topics:
            self._consumer.partitions_for_topic(topic)
        self._consumer.subscribe(list(topics))

    def poll(self, timeout_s: float = 0.1) -> list[Record]:
        batches = _try(self._consumer.poll, timeout_ms=int(timeout_s * 1000))
        coordinator = self._consumer._coordinator
        if coordinator._join_task is not None:
            # Version 3.0 forgets a join that is under way when poll() ends, if it was new metadata that asked for it.
            coordinator.rejoin_needed = True
        return [record_of(record) for records in batches.values() for record in records]

    def assignment(self) -> set[tuple[str, int]]:
        return {(place.topic, place.partition) for place in self._consumer.assignment()}

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        places = {TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}
        _try(self._consumer.commit, places)

    def commit_soon(self, offsets: Mapping[tuple[str, int], int]) -> None:
        places = {TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}
        _try(self._consumer.commit_async, places)

    def committed(self, topic: str, partition: int) -> int | None:
        found: int | None = _try(self._consumer.committed, TopicPartition(topic, partition))
        return found

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class KafkaPython:
    name: ClassVar[str] = "kafka-python"
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
    ) -> KafkaPythonProducer:
        return KafkaPythonProducer(
            {
                "bootstrap_servers": address,
                "compression_type": None if codec == "none" else codec,
                "acks": -1 if acks == "all" else int(acks),
                "linger_ms": 5,
                "enable_idempotence": idempotent or transactional_id is not None,
                "transactional_id": transactional_id,
                "transaction_timeout_ms": transaction_timeout_ms,
                **QUIET,
            }
        )

    @staticmethod
    def member(
        address: str,
        group: str,
        topics: Iterable[str],
        assignor: str = "range",
        instance_id: str | None = None,
        metadata_ms: int = 300_000,
    ) -> KafkaPythonConsumer:
        settings = {
            "bootstrap_servers": address,
            "group_id": group,
            "group_instance_id": instance_id,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "partition_assignment_strategy": (ASSIGNORS[assignor],),
            "heartbeat_interval_ms": 200,
            "session_timeout_ms": 30_000,
            "fetch_max_wait_ms": 100,
            "metadata_max_age_ms": metadata_ms,
            **QUIET,
        }
        return KafkaPythonConsumer(settings, topics)

    @staticmethod
    def read(address: str, ends: Mapping[tuple[str, int], int], *, committed_only: bool = False) -> list[Record]:
        consumer = KafkaConsumer(
            bootstrap_servers=address,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=50,
            isolation_level="read_committed" if committed_only else "read_uncommitted",
            **QUIET,
        )
        places = {TopicPartition(*place): end for place, end in ends.items()}
        consumer.assign(list(places))
        for place in places:
            consumer.seek(place, 0)
        records: list[Record] = []
        empty_polls = 0
        while any(consumer.position(place) < end for place, end in places.items()):
            batches = _try(consumer.poll, timeout_ms=500)
            empty_polls = 0 if batches else empty_polls + 1
            if empty_polls > DEADLINE_S / 0.5:
                raise Late("the end was not reached")
            records += [record_of(record) for found in batches.values() for record in found]
        consumer.close(autocommit=False)
        return records
