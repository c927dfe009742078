"""Members of a group that share a topic, commit, and ask what is committed. One of them comes and goes."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from aiokafka import (  # type: ignore[import-untyped]
    AIOKafkaConsumer,
    ConsumerRebalanceListener,
    TopicPartition,
)
from aiokafka.errors import (  # type: ignore[import-untyped]
    KafkaError,
)

from tools.nemesis.workloads import kafka
from tools.nemesis.workloads.common import Run, make_topic

GROUP = "nemesis-members"
PER_S = 30
DOOR = "kafka"


def note_consumed(run: Run, member: str, group: str, partition: list[Any], offsets: list[int]) -> None:
    run.book.begin(member, "consumed").ok(group=group, partition=partition, first=offsets[0], last=offsets[-1])


def feed(run: Run, topic: str, partitions: int) -> None:
    producer = kafka.producer(run)
    dice = run.dice(f"feeder of {topic}")
    while not run.is_ending.wait(1 / PER_S):
        producer.produce(topic, b"x", partition=dice.randrange(partitions))
        producer.poll(0)
    producer.flush(10)


class Groups:
    name = "groups"

    def __init__(self, topic: str = "nemesis-shared", partitions: int = 4) -> None:
        self._topic, self._partitions = topic, partitions

    def prepare(self, run: Run) -> None:
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
        make_topic(run, self._topic, self._partitions)

    def threads(self, run: Run) -> dict[str, Callable[[], None]]:
        return {
            "group-feeder": partial(feed, run, self._topic, self._partitions),
            "member-0": lambda: asyncio.run(self._be_member(run, "member-0", 1e9)),
            "member-1": lambda: asyncio.run(self._be_member(run, "member-1", 12.0)),
        }

    def finish(self, run: Run) -> None:
        """What members were told is all there is to judge."""

    async def _be_member(self, run: Run, name: str, life_s: float) -> None:
        """`life_s`: how long it stays before it leaves and comes back."""
        while not run.is_ending.is_set():
            consumer = AIOKafkaConsumer(
                bootstrap_servers=list(run.kafka),
                group_id=GROUP,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                session_timeout_ms=10_000,
                retry_backoff_ms=100,
            )
            try:
                await asyncio.wait_for(consumer.start(), 15)
                consumer.subscribe([self._topic], listener=_Listener(run, name, consumer))
                await self._consume(run, name, consumer, asyncio.get_running_loop().time() + life_s)
            except (KafkaError, TimeoutError, OSError):
                await asyncio.sleep(0.5)
            finally:
                try:
                    await asyncio.wait_for(consumer.stop(), 15)
                except (KafkaError, TimeoutError, OSError, asyncio.CancelledError):
                    await asyncio.sleep(0.1)  # aiokafka lets the cancelling of its own tasks through

    async def _consume(self, run: Run, name: str, consumer: AIOKafkaConsumer, until: float) -> None:
        loop = asyncio.get_running_loop()
        while not run.is_ending.is_set() and loop.time() < until:
            for place, records in (await consumer.getmany(timeout_ms=300, max_records=50)).items():
                note_consumed(run, name, GROUP, [place.topic, place.partition], [each.offset for each in records])
                await self._commit(run, name, consumer, place, records[-1].offset + 1)
            for place in consumer.assignment():
                await self._ask(run, name, consumer, place)

    async def _commit(self, run: Run, name: str, consumer: AIOKafkaConsumer, place: Any, offset: int) -> None:
        where = {"group": GROUP, "partition": [place.topic, place.partition]}
        asking = run.book.begin(name, "commit", **where, offset=offset, door=DOOR)
        try:
            await asyncio.wait_for(consumer.commit({TopicPartition(*place): offset}), 10)
        except (KafkaError, TimeoutError, OSError) as error:
            # Also one that was fenced: aiokafka may have tried twice, and the first time may have counted.
            asking.unknown(repr(error))
        else:
            asking.ok()

    async def _ask(self, run: Run, name: str, consumer: AIOKafkaConsumer, place: Any) -> None:
        where = {"group": GROUP, "partition": [place.topic, place.partition]}
        asking = run.book.begin(name, "committed", **where, door=DOOR)
        try:
            offset = await asyncio.wait_for(consumer.committed(TopicPartition(*place)), 10)
        except (KafkaError, TimeoutError, OSError) as error:
            asking.fail(repr(error))
        else:
            asking.ok(offset=-1 if offset is None else offset)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, run: Run, name: str, consumer: AIOKafkaConsumer) -> None:
        self._run, self._name, self._consumer = run, name, consumer

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Nothing is kept back."""

    async def on_partitions_assigned(self, assigned: Any) -> None:
        coordinator = self._consumer._coordinator  # noqa: SLF001  nothing else tells the generation
        self._run.book.begin(self._name, "assigned", door=DOOR).ok(
            group=GROUP,
            member=coordinator.member_id,
            generation=coordinator.generation,
            partitions=sorted([place.topic, place.partition] for place in assigned),
        )
