"""Topics as the broker serves them: what the metadata says, brought about on this node's disk."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol, TypeAlias

from goqueue.broker.topics.jobs import Steps, TopicJobs
from goqueue.machines.controller import AddPartitions, CreateTopic, DeleteTopic, ListChange, Result, SetOptions
from goqueue.model.codes import Code
from goqueue.model.errors import (
    BatchTooLarge,
    CoordinatorFailed,
    CoordinatorLoading,
    CorruptBatch,
    DiskFull,
    GoQueueError,
    InvalidWish,
    NotCoordinator,
    OffsetOutOfRange,
    ReadFailed,
)
from goqueue.model.refusal import Refused
from goqueue.model.topics import Image, Topic, TopicOptions, TopicsChange
from goqueue.ports.dice import Dice, random_id
from goqueue.records.partitioners import Partitioner
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.runtime.aside import Aside
from goqueue.runtime.clock import Clock
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.logs import get_logger

__all__ = [
    "AddPartitions",
    "CreateTopic",
    "DeleteTopic",
    "ListChange",
    "MetadataStore",
    "Replica",
    "Result",
    "SetOptions",
    "Topics",
    "code_of",
]

PARTITIONER = "partitioner"

events = get_logger("broker")


TopicCommand: TypeAlias = CreateTopic | DeleteTopic | AddPartitions | SetOptions
OnResult: TypeAlias = Callable[[Result | GoQueueError], None]


class MetadataStore(Protocol):
    """What the broker needs to know and change: one node keeps it itself, a cluster elsewhere."""

    on_change: Callable[[Iterable[str]], None]

    @property
    def image(self) -> Image: ...

    @property
    def deleting(self) -> Mapping[str, Any]: ...

    def removed(self, name: str) -> None: ...

    def submit(self, command: TopicCommand, on_reply: OnResult) -> None: ...


PARTITIONS_PER_STEP = 32
"""Made at once, aside: so many that they share a sync, so few that others get their turn."""


class Topics:
    """Invariant: once a change is answered, every partition of the image is open here (or known to have failed), and
    nobody sees one before."""

    def __init__(self, store: MetadataStore, replicas: Replicas, clock: Clock, dice: Dice) -> None:
        self._store = store
        self._replicas = replicas
        self._clock = clock
        self._dice = dice
        self._seen = Image()
        self._ready: dict[str, Topic] = {}
        """As they can be used here: a topic that gets more partitions stays as it was until it has them."""
        self._removed: dict[str, bytes] = {}
        """Ids of topics that the store calls deleting still: this node has done, or could not do, its part."""
        self._jobs = TopicJobs(lambda name: self.reconcile((name,)))
        self._unanswered: dict[str, list[Callable[[], None]]] = {}
        """By the topic whose job they wait for."""
        self._changed: dict[str, None] = {}
        """Names that have to be looked at; all others are as they were."""
        self._is_reconciling = False
        self._is_starting = True
        self.on_change: list[Callable[[TopicsChange], None]] = []
        store.on_change = self.reconcile

    @property
    def image(self) -> Image:
        return self._seen

    @property
    def defaults(self) -> TopicOptions:
        """What a topic gets that does not say otherwise."""
        return self._replicas.defaults

    def new_id(self) -> bytes:
        """For a topic that is to be made."""
        return random_id(self._dice)

    def partitioner(self, topic: Topic) -> Partitioner:
        """What chooses the partition of a key there."""
        return Partitioner(topic.overrides.get(PARTITIONER, self.defaults.partitioner))

    def work_aside(self, aside: Aside) -> None:
        """From now on; what a start finds is opened at once, since nobody is served before."""
        self._is_starting = False
        self._jobs.aside = aside

    def reconcile(self, names: Iterable[str] = ()) -> None:
        """Make the disk agree with the image in these topics. Called at the start, after every change and when a job
        is over."""
        self._changed.update(dict.fromkeys(names))
        if self._is_reconciling:
            return
        self._is_reconciling = True
        try:
            while True:
                looked_at: dict[str, None] = {}
                while self._changed:  # a job may be over at once, and there is more to show
                    changed, self._changed = self._changed, {}
                    looked_at |= changed
                    for name in changed:
                        if name not in self._jobs:  # else it is looked at again when that is over
                            self._bring_about(name)
                call_each((partial(self._show, looked_at), partial(self._answer, looked_at)))
                if not self._changed:
                    break
        finally:
            self._is_reconciling = False

    def _bring_about(self, name: str) -> None:
        stored, topic = self._store.deleting.get(name), self._store.image.topics.get(name)
        if stored is not None:
            self._ready.pop(name, None)
            if self._removed.get(name) != stored.topic_id:
                self._jobs.begin(name, self._remove(name, stored.topic_id, stored.partitions))
            return
        self._removed.pop(name, None)
        if topic is None or self._ready.get(name) is topic:
            return
        if missing := self._replicas.missing(topic, range(topic.partitions)):
            self._jobs.begin(name, self._open(topic, missing))
        else:
            self._replicas.set_options(topic)
            self._ready[name] = topic

    def _remove(self, name: str, topic_id: bytes, partitions: int) -> Steps:
        remove_companions = self._replicas.companions.retire(topic_id)
        remove = self._replicas.retire(name, range(partitions))

        def remove_all() -> None:
            remove_companions()
            remove()

        error = yield remove_all
        self._removed[name] = topic_id
        if error is None:
            self._store.removed(name)
        else:  # its name stays taken, and the next start tries again
            events.error("topic not removed", topic=name, reason=str(error))

    def _open(self, topic: Topic, missing: list[int]) -> Steps:
        """In service all together; a crash in between is made up for by the next start."""
        openings = []
        for first in range(0, len(missing), PARTITIONS_PER_STEP):
            some = missing[first : first + PARTITIONS_PER_STEP]
            opening = self._replicas.opening(topic, some, self._clock.now_ms())
            error = yield opening.run
            if error is not None:
                events.error("partitions not opened", topic=topic.name, first=some[0], reason=str(error))
            wanted = self._store.image.topics.get(topic.name)
            if wanted is None or wanted.id != topic.id:
                return  # deleted meanwhile
            openings.append(opening)
        for opening in openings:
            self._replicas.adopt(opening)
            if self._is_starting:
                for replica in opening.opened.values():
                    if replica.log.is_new:
                        self._replicas.note_made_anew(replica)

    def _show(self, names: Iterable[str]) -> None:
        wanted, before = self._store.image, self._seen
        ready = {name: self._ready.get(name) if name in wanted.topics else None for name in names}
        changes = {name: topic for name, topic in ready.items() if before.topics.get(name) is not topic}
        if not changes and (wanted.revision, wanted.nodes) == (before.revision, before.nodes):
            return
        self._seen = before.replaced(wanted.revision, changes, wanted.nodes)
        change = TopicsChange(before, self._seen, frozenset(changes))
        call_each(partial(call, change) for call in self.on_change)

    def submit(self, command: TopicCommand, on_reply: OnResult) -> None:
        """Commands of the controller machine. Whoever is told that a topic is there, or gone, can rely on it."""

        def replied(reply: Result | GoQueueError) -> None:
            waits = isinstance(reply, Result) and reply.code in (Code.NONE, Code.TOPIC_ALREADY_EXISTS)
            if waits and command.name in self._jobs:
                self._unanswered.setdefault(command.name, []).append(
                    partial(self._reply_to, command.name, on_reply, reply)
                )
            else:
                on_reply(reply)

        self._store.submit(command, replied)

    def _reply_to(self, name: str, on_reply: OnResult, reply: Result | GoQueueError) -> None:
        if name in self._jobs.given_up:
            reply = Result(
                Code.UNKNOWN_SERVER_ERROR, f"the partitions of {name!r} could not be brought about: see the log"
            )
        on_reply(reply)

    @property
    def unfinished(self) -> list[str]:
        """Topics that could not be made or removed, because of a fault of ours; the next start tries again."""
        return self._jobs.given_up

    def _answer(self, names: Iterable[str]) -> None:
        done = [name for name in names if name not in self._jobs]
        call_each(call for name in done for call in self._unanswered.pop(name, ()))

    def replica(self, topic: str, partition: int) -> Replica:
        """Refused: there is none, or it is out of service."""
        replica = self._replicas.get(topic, partition)
        if replica is None:
            if (topic, partition) in self._replicas.failed:
                raise Refused(Code.KAFKA_STORAGE_ERROR, str(self._replicas.failed[topic, partition]))
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition} of {topic!r}")
        if replica.failure is not None:
            raise Refused(code_of(replica.failure), str(replica.failure))
        return replica

    def durability(self, topic: str, partition: int) -> str:
        """What an acknowledgement of this partition means now: `disk`, or `os`."""
        replica = self.find_replica(topic, partition)
        return self.defaults.durability if replica is None else replica.options.durability

    def find_replica(self, topic: str, partition: int) -> Replica | None:
        """Also one that is out of service."""
        return self._replicas.get(topic, partition)

    def unwatch(self, topic: str, partition: int, who: object) -> None:
        """Whether or not it is still there."""
        replica = self._replicas.get(topic, partition)
        if replica is not None:
            replica.unwatch(who)

    def has(self, topic: str, partition: int) -> bool:
        """Also one that is out of service."""
        return self.find_replica(topic, partition) is not None

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
    (CoordinatorLoading, Code.COORDINATOR_LOAD_IN_PROGRESS),
    (CoordinatorFailed, Code.COORDINATOR_NOT_AVAILABLE),
    (NotCoordinator, Code.NOT_COORDINATOR),
)


def code_of(error: GoQueueError) -> Code:
    """The protocol's number for one of our errors."""
    if isinstance(error, Refused):
        return error.code
    return next((code for kind, code in CODES if isinstance(error, kind)), Code.KAFKA_STORAGE_ERROR)
