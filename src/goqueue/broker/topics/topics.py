"""Topics as the broker serves them: what the metadata says, brought about on this node's disk."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol, TypeAlias

from goqueue.broker.topics.jobs import Steps, TopicJobs
from goqueue.machines.controller import (
    AddPartitions,
    CreateTopic,
    DeleteTopic,
    ListChange,
    Reassign,
    Result,
    SetOptions,
)
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import (
    GoQueueError,
)
from goqueue.model.placements import NOWHERE
from goqueue.model.refusal import NotLeader, Refused
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
    "Reassign",
    "Replica",
    "Result",
    "SetOptions",
    "Topics",
    "code_of",
]

PARTITIONER = "partitioner"

events = get_logger("broker")


TopicCommand: TypeAlias = CreateTopic | DeleteTopic | AddPartitions | SetOptions | Reassign
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
    """Invariant: once a change is answered, every partition of the image that is placed here is open (or known to have
    failed), in its role, and nobody sees one before."""

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
        self.elsewhere: Callable[[str, int], bool] | None = None
        """In a cluster: whether another node leads a partition."""
        self.on_change: list[Callable[[TopicsChange], None]] = []
        store.on_change = self.reconcile

    @property
    def image(self) -> Image:
        return self._seen

    @property
    def defaults(self) -> TopicOptions:
        """What a topic gets that does not say otherwise."""
        return self._replicas.defaults

    def newest(self, topic_id: bytes) -> Topic | None:
        """By its id, as the metadata has it, though this node may still be about to open it."""
        return self._store.image.by_id(topic_id)

    def leads(self, topic: str, partition: int) -> bool:
        replica = self._replicas.get(topic, partition)
        return replica is not None and replica.role.is_leader

    def exists(self, topic: str, partition: int) -> bool:
        """On this node or another."""
        known = self._seen.topics.get(topic)
        return known is not None and 0 <= partition < known.partitions

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
                        if name not in self._jobs:
                            self._bring_about(name)
                        elif (topic := self._store.image.find(name)) is not None:
                            # It is looked at again when that is over. But a leader must not wait for a disk.
                            self._replicas.take_roles(topic)
                call_each((partial(self._show, looked_at), partial(self._answer, looked_at)))
                if not self._changed:
                    break
        finally:
            self._is_reconciling = False

    def _bring_about(self, name: str) -> None:
        stored, topic = self._store.deleting.get(name), self._store.image.find(name)
        if stored is not None:
            self._ready.pop(name, None)
            if self._removed.get(name) != stored.topic_id:
                self._jobs.begin(name, self._remove(name, stored.topic_id, stored.partitions))
            return
        self._removed.pop(name, None)
        before = self._ready.get(name)
        if topic is None or before is topic:
            return
        replicas = self._replicas
        # Most changes are of a few placements, of a topic that may have thousands: nothing else is looked at then.
        is_known = before is not None and (before.id, before.partitions) == (topic.id, topic.partitions)
        numbers = topic.placed_anew(before) if is_known else None
        if misplaced := replicas.misplaced(topic, numbers):
            self._jobs.begin(name, self._displace(topic, misplaced))
        elif missing := replicas.missing(topic, replicas.placed(topic, numbers)):
            replicas.take_roles(topic)
            self._jobs.begin(name, self._open(topic, missing))
        else:
            if not is_known or before is None or topic.has_other_options(before):
                replicas.set_options(topic)
            replicas.take_roles(topic, numbers)
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

    def _displace(self, topic: Topic, partitions: list[int]) -> Steps:
        """Copies that are to be elsewhere."""
        error = yield self._replicas.displace(topic.name, partitions)
        if error is not None:
            events.error("copies not put aside", topic=topic.name, partitions=partitions, reason=str(error))

    def _open(self, topic: Topic, missing: list[int]) -> Steps:
        """In service all together; a crash in between is made up for by the next start."""
        openings = []
        for first in range(0, len(missing), PARTITIONS_PER_STEP):
            some = missing[first : first + PARTITIONS_PER_STEP]
            opening = self._replicas.opening(topic, some, self._clock.now_ms())
            error = yield opening.run
            if error is not None:
                events.error("partitions not opened", topic=topic.name, first=some[0], reason=str(error))
            wanted = self._store.image.find(topic.name)
            if wanted is None or wanted.id != topic.id:
                return  # deleted meanwhile
            openings.append(opening)
        for opening in openings:
            self._replicas.adopt(opening)
            if self._is_starting:
                for replica in opening.opened.values():
                    if replica.log.is_new and self._replicas.is_missed(topic, replica):
                        self._replicas.note_made_anew(replica)

    def _show(self, names: Iterable[str]) -> None:
        wanted, before = self._store.image, self._seen
        ready = {name: self._ready.get(name) if wanted.find(name) is not None else None for name in names}
        changes = {name: topic for name, topic in ready.items() if before.find(name) is not topic}
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

    def led(self, topic: str, partitions: Iterable[int]) -> list[int]:
        """Those of them that are not for another node to look after."""
        elsewhere = self.elsewhere
        return [each for each in partitions if elsewhere is None or not elsewhere(topic, each)]

    def replica(self, topic: str, partition: int) -> Replica:
        """Refused: there is none, or it is out of service. NotLeader: it is led elsewhere."""
        replica = self._replicas.get(topic, partition)
        if replica is None:
            if (topic, partition) in self._replicas.failed:
                raise Refused(Code.KAFKA_STORAGE_ERROR, str(self._replicas.failed[topic, partition]))
            if self._replicas.seat is not None and self._store.image.placement(topic, partition) is not NOWHERE:
                raise self.not_leader(topic, partition)
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition} of {topic!r}")
        if replica.failure is not None:
            if isinstance(replica.failure, NotLeader):
                raise self.not_leader(topic, partition)
            raise Refused(code_of(replica.failure), str(replica.failure))
        return replica

    def not_leader(self, topic: str, partition: int) -> NotLeader:
        """Of a partition that this node does not lead: who does."""
        image = self._store.image
        leader, epoch = image.leader_of(topic, partition), image.placement(topic, partition).epoch
        seat = self._replicas.seat
        if leader is None or (seat is not None and leader.node_id == seat.node_id):  # it will, and does not yet
            return NotLeader(f"nobody leads {topic}/{partition} at the moment", epoch=epoch)
        return NotLeader(f"{topic}/{partition} is led by node {leader.node_id}", leader, epoch)

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

    def has_failed(self, topic: str, partition: int) -> bool:
        """The copy of this node cannot be used. One that other nodes have, or lead, has not failed."""
        if self._replicas.seat is None:
            return self.leader_epoch(topic, partition) < 0
        replica = self._replicas.get(topic, partition)
        return (topic, partition) in self._replicas.failed or (replica is not None and replica.log.failure is not None)

    def leader_epoch(self, topic: str, partition: int) -> int:
        """-1: out of service here."""
        replica = self._replicas.get(topic, partition)
        return -1 if replica is None or replica.failure is not None else replica.leader_epoch
