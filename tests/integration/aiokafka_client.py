"""aiokafka, which lives in an event loop: one loop in a thread serves all tests of a worker."""

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]
from aiokafka.coordinator.assignors.range import RangePartitionAssignor  # type: ignore[import-untyped]
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # type: ignore[import-untyped]
from aiokafka.coordinator.assignors.sticky.sticky_assignor import (  # type: ignore[import-untyped]
    StickyPartitionAssignor,
)
from aiokafka.errors import KafkaError, ProducerFenced  # type: ignore[import-untyped]

from tests.integration.clients import ClientFailure, Message, Record
from tests.integration.process import DEADLINE_S, Late

T = TypeVar("T")
ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
PRODUCER_FENCED = 90
_FIRST = threading.Lock()
"""Threads of one test may ask for the loop at the same moment."""


@cache
def _shared_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="aiokafka", daemon=True).start()
    return loop


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end in the loop's thread."""
    with _FIRST:
        loop = _shared_loop()
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result(DEADLINE_S)
    except ProducerFenced as error:
        raise ClientFailure(PRODUCER_FENCED, repr(error)) from error
    except KafkaError as error:
        raise ClientFailure(getattr(error, "errno", None), repr(error)) from error
    except TimeoutError:
        future.cancel()
        raise Late("aiokafka did not come back") from None


def record_of(record: Any) -> Record:
    headers = tuple(map(tuple, record.headers))
    return Record(record.topic, record.partition, record.offset, record.value, record.key, headers, record.timestamp)


class AioKafkaProducer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._producer = run(self._start(settings))

    async def _start(self, settings: dict[str, Any]) -> Any:
        producer = AIOKafkaProducer(**settings)
        await producer.start()
        return producer

    def send(self, topic: str, messages: Sequence[Message]) -> list[int]:
        return run(self._send(topic, messages))

    async def _send(self, topic: str, messages: Sequence[Message]) -> list[int]:
        futures = [
            await self._producer.send(
                topic,
                value=message.value,
                key=message.key,
                partition=message.partition,
                timestamp_ms=message.timestamp_ms,
                headers=list(message.headers),
            )
            for message in messages
        ]
        await asyncio.wait(futures)  # all of them, so that no failure goes unheard
        answers = [future.result() for future in futures]
        return [-1 if answer is None else answer.offset for answer in answers]

    def begin(self) -> None:
        run(self._producer.begin_transaction())

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: str) -> None:
        places = {TopicPartition(*place): offset for place, offset in offsets.items()}
        run(self._producer.send_offsets_to_transaction(places, group))

    def commit(self) -> None:
        run(self._producer.commit_transaction())

    def abort(self) -> None:
        run(self._producer.abort_transaction())

    def close(self) -> None:
        run(self._producer.stop())


class AioKafkaConsumer:
    def __init__(self, settings: dict[str, Any], topics: Iterable[str]) -> None:
        self._consumer = run(self._start(settings, list(topics)))

    async def _start(self, settings: dict[str, Any], topics: list[str]) -> Any:
        consumer = AIOKafkaConsumer(**settings)
        consumer.subscribe(topics)
        await consumer.start()
        return consumer

    def poll(self, timeout_s: float = 0.1) -> list[Record]:
        batches = run(self._consumer.getmany(timeout_ms=int(timeout_s * 1000)))
        return [record_of(record) for records in batches.values() for record in records]

    def assignment(self) -> set[tuple[str, int]]:
        return {(place.topic, place.partition) for place in self._consumer.assignment()}

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        run(self._consumer.commit({TopicPartition(*place): offset for place, offset in offsets.items()}))

    def commit_soon(self, offsets: Mapping[tuple[str, int], int]) -> None:
        raise NotImplementedError("aiokafka has no commit but the one that is awaited")

    def committed(self, topic: str, partition: int) -> int | None:
        found: int | None = run(self._consumer.committed(TopicPartition(topic, partition)))
        return found

    def close(self) -> None:
        run(self._consumer.stop())


class AioKafka:
    name: ClassVar[str] = "aiokafka"
    assignors: ClassVar[tuple[str, ...]] = ("range", "roundrobin", "sticky")

    @staticmethod
    def producer(
        address: str,
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
    ) -> AioKafkaProducer:
        return AioKafkaProducer(
            {
                "bootstrap_servers": address,
                "compression_type": None if codec == "none" else codec,
                "acks": acks if acks == "all" else int(acks),
                "linger_ms": 5,
                "enable_idempotence": idempotent or transactional_id is not None,
                "transactional_id": transactional_id,
                "transaction_timeout_ms": transaction_timeout_ms,
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
    ) -> AioKafkaConsumer:
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
        }
        return AioKafkaConsumer(settings, topics)

    @staticmethod
    def read(address: str, ends: Mapping[tuple[str, int], int], *, committed_only: bool = False) -> list[Record]:
        filled = {place: end for place, end in ends.items() if end > 0}
        return run(_read(address, filled, "read_committed" if committed_only else "read_uncommitted")) if filled else []


async def _read(address: str, ends: Mapping[tuple[str, int], int], isolation: str) -> list[Record]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=address, enable_auto_commit=False, fetch_max_wait_ms=50, isolation_level=isolation
    )
    await consumer.start()
    places = {TopicPartition(*place): end for place, end in ends.items()}
    consumer.assign(list(places))
    for place in places:
        consumer.seek(place, 0)
    records: list[Record] = []
    while not all([await consumer.position(place) >= end for place, end in places.items()]):
        batches = await consumer.getmany(timeout_ms=500)
        records += [record_of(record) for found in batches.values() for record in found]
    await consumer.stop()
    return records
