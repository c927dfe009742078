"""confluent-kafka's ShareConsumer: librdkafka."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import confluent_kafka as ck
from confluent_kafka import AcknowledgeType
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.integration.clients import ClientFailure, Message, Record
from tests.integration.confluent_client import QUIET, Confluent
from tests.integration.process import DEADLINE_S, Late, Node, wait_until
from tests.integration.topics import admin_client, end_offsets

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
Place = tuple[int, int]
"""Partition and offset."""


def set_options(node: Node, group: str, **options: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), text, incremental_operation=AlterConfigOpType.SET)
        for name, text in options.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    for future in admin_client(node.address).incremental_alter_configs([resource]).values():
        future.result(DEADLINE_S)


def publish(node: Node, topic: str, count: int, partitions: int = 1, prefix: str = "v") -> set[Place]:
    """One batch per few records, so that batches are shared as well as partitions."""
    producer = Confluent.producer(node.address)
    found: set[Place] = set()
    for first in range(0, count, 50):
        numbers = range(first, min(first + 50, count))
        messages = [Message(number % partitions, f"{prefix}{number}".encode()) for number in numbers]
        offsets = producer.send(topic, messages)
        found.update((message.partition, offset) for message, offset in zip(messages, offsets))
    return found


class Sharer:
    """One ShareConsumer and all that it was given: places and how often they had been delivered."""

    def __init__(
        self, node: Node, group: str, topics: Sequence[str], is_explicit: bool, settings: dict[str, Any]
    ) -> None:
        mode = "explicit" if is_explicit else "implicit"
        self.consumer = ck.ShareConsumer(
            {
                "bootstrap.servers": node.address,
                "group.id": group,
                "share.acknowledgement.mode": mode,
                "fetch.wait.max.ms": 100,
                **QUIET,
                **settings,
            }
        )
        self.consumer.subscribe(list(topics))
        self.given: list[tuple[Place, int]] = []
        self.last: list[ck.Message] = []

    def poll(self, timeout_s: float = 0.2) -> list[ck.Message]:
        """Keeps the last messages, since each of them must be acknowledged before the next poll if that is explicit."""
        self.last = []
        for message in self.consumer.poll(timeout_s):
            error = message.error()
            if error is not None:
                raise ClientFailure(error.code(), str(error))
            self.given.append((place_of(message), message.delivery_count() or 0))
            self.last.append(message)
        return self.last

    def acknowledge(self, kind: AcknowledgeType = ACCEPT, messages: Sequence[ck.Message] | None = None) -> None:
        for message in self.last if messages is None else messages:
            self.consumer.acknowledge(message, kind)

    def commit(self) -> None:
        for place, error in self.consumer.commit_sync(DEADLINE_S).items():
            assert error is None, f"{place}: {error}"

    @property
    def places(self) -> list[Place]:
        return [place for place, _ in self.given]


def place_of(message: ck.Message) -> Place:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset


def poll_until(sharers: Sequence[Sharer], is_done: Callable[[], bool]) -> None:
    give_up = time.monotonic() + DEADLINE_S
    while not is_done():
        if time.monotonic() > give_up:
            raise Late(f"after {[len(each.given) for each in sharers]} records")
        for sharer in sharers:
            sharer.poll(0.05)


def dead_letters(node: Node, topic: str, count: int) -> list[Record]:
    """They are written soon, but not before the acknowledgement is answered."""
    name = f"{topic}.dlq"
    admin = admin_client(node.address)
    wait_until(lambda: name in admin.list_topics(timeout=DEADLINE_S).topics, "the first dead letter")
    wait_until(lambda: end_offsets(node, name, 1)[0] >= count, f"{count} dead letters")
    return Confluent.read(node.address, {(name, 0): end_offsets(node, name, 1)[0]})
