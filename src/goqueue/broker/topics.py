"""Topics as the broker serves them: what the metadata says, brought about on this node's disk."""

from collections.abc import Callable
from typing import Any, Protocol

from goqueue.machines.controller import AddPartitions, CreateTopic, DeleteTopic, Result, SetOptions
from goqueue.model.codes import Code
from goqueue.model.errors import (
    BatchTooLarge,
    CorruptBatch,
    DiskFull,
    GoQueueError,
    InvalidWish,
    OffsetOutOfRange,
    ReadFailed,
)
from goqueue.model.refusal import Refused
from goqueue.model.topics import Image, Topic, TopicOptions
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.runtime.clock import Clock
from goqueue.telemetry.logs import get_logger

__all__ = [
    "AddPartitions",
    "CreateTopic",
    "DeleteTopic",
    "MetadataStore",
    "Replica",
    "Result",
    "SetOptions",
    "Topics",
    "code_of",
]

events = get_logger("broker")


class MetadataStore(Protocol):
    """What the broker needs to know and change: one node keeps it itself, a cluster elsewhere."""

    on_change: Callable[[], None]

    @property
    def image(self) -> Image: ...

    @property
    def deleting(self) -> list[Any]: ...

    def removed(self, name: str) -> None: ...

    def submit(self, command: Any, on_reply: Callable[[Any], None]) -> None: ...


class Topics:
    """Invariant: once a change is answered, every partition of the image is open here (or known to have failed)."""

    def __init__(self, store: MetadataStore, replicas: Replicas, clock: Clock) -> None:
        self._store = store
        self._replicas = replicas
        self._clock = clock
        self._seen = Image()
        self.on_change: list[Callable[[Image], None]] = []
        store.on_change = self.reconcile

    @property
    def image(self) -> Image:
        return self._seen

    @property
    def defaults(self) -> TopicOptions:
        """What a topic gets that does not say otherwise."""
        return self._replicas.defaults

    def reconcile(self) -> None:
        """Make the disk agree with the image. Called at the start and after every change."""
        image = self._store.image
        if image is self._seen:
            return
        now_ms = self._clock.now_ms()
        for stored in self._store.deleting:
            self._remove(stored.name, stored.partitions)
        for topic in image.topics.values():
            before = self._seen.topics.get(topic.name)
            if before is not topic:
                self._open(topic, before, now_ms)
        self._seen = image
        for call in self.on_change:
            call(image)

    def _remove(self, name: str, partitions: int) -> None:
        try:
            for partition in range(partitions):
                self._replicas.remove(name, partition)
        except (OSError, GoQueueError) as error:  # its name stays taken, and the next start tries again
            events.error("topic not removed", topic=name, reason=str(error))
        else:
            self._store.removed(name)

    def _open(self, topic: Topic, before: Topic | None, now_ms: int) -> None:
        for partition in range(topic.partitions):
            self._replicas.open(topic, partition, now_ms)
        if before is not None and before.overrides != topic.overrides:
            self._replicas.set_options(topic)

    def submit(self, command: Any, on_reply: Callable[[Any], None]) -> None:
        """Commands of the controller machine."""
        self._store.submit(command, on_reply)

    def replica(self, topic: str, partition: int) -> Replica:
        """Refused: there is none, or it is out of service."""
        replica = self._replicas.get(topic, partition)
        if replica is None:
            if (topic, partition) in self._replicas.failed:
                raise Refused(Code.KAFKA_STORAGE_ERROR, str(self._replicas.failed[topic, partition]))
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition} of {topic!r}")
        if replica.failure is not None:
            raise Refused(Code.KAFKA_STORAGE_ERROR, str(replica.failure))
        return replica

    def find_replica(self, topic: str, partition: int) -> Replica | None:
        """Also one that is out of service."""
        return self._replicas.get(topic, partition)

    def unwatch(self, topic: str, partition: int, who: object) -> None:
        """Whether or not it is still there."""
        replica = self._replicas.get(topic, partition)
        if replica is not None:
            replica.unwatch(who)

    def end_offset(self, topic: str, partition: int) -> int | None:
        """None: there is no such partition."""
        replica = self._replicas.get(topic, partition)
        return None if replica is None else replica.high_watermark

    def leader_epoch(self, topic: str, partition: int) -> int:
        """-1: out of service here."""
        replica = self._replicas.get(topic, partition)
        return -1 if replica is None or replica.failure is not None else replica.leader_epoch


CODES: tuple[tuple[type[GoQueueError], Code], ...] = (
    (CorruptBatch, Code.CORRUPT_MESSAGE),
    (BatchTooLarge, Code.MESSAGE_TOO_LARGE),
    (OffsetOutOfRange, Code.OFFSET_OUT_OF_RANGE),
    (DiskFull, Code.KAFKA_STORAGE_ERROR),
    (InvalidWish, Code.INVALID_RECORD),
    (ReadFailed, Code.KAFKA_STORAGE_ERROR),
)


def code_of(error: GoQueueError) -> Code:
    """The protocol's number for one of our errors."""
    if isinstance(error, Refused):
        return error.code
    return next((code for kind, code in CODES if isinstance(error, kind)), Code.KAFKA_STORAGE_ERROR)
