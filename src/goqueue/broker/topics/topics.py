"""Topics as the broker serves them: what the metadata says, brought about on this node's disk."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol, TypeAlias

from goqueue.broker.topics.jobs import Steps, TopicJobs
from goqueue.machines.controller_commands import (
    AddPartitions,
    CreateTopic,
    DeleteTopic,
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
from goqueue.replica.opening import Opening
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.runtime.aside import Aside
from goqueue.runtime.clock import Clock
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.logs import get_logger

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
    failed), in its role. A node on its own shows nobody a topic before. In a cluster others may lead it meanwhile: it
    is shown at once, and each of its copies serves as soon as it is open."""

    def __init__(self, store: MetadataStore, replicas: Replicas, clock: Clock, dice: Dice) -> None:
        self._store = store
        self._replicas = replicas
        self._clock = clock
        self._dice = dice
        self._seen = Image()
        self._ready: dict[str, Topic] = {}
        """As they can be used here: a topic that gets more partitions stays as it was until it has them."""
        self._opening: dict[str, Topic] = {}
        """In a cluster: whose copies are being opened or put aside, as their placements were last looked at."""
        self._unopened: set[str] = set()
        """What a start found and is opening still."""
        self._on_opened: Callable[[], None] = lambda: None
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

    def opens(self, topic: str, partition: int) -> bool:
        """Whether the copy that this node has of it is being opened: it serves soon, or will have failed."""
        return topic in self._opening and self._replicas.get(topic, partition) is None

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
        """From now on; what a start finds on a node of its own is opened at once, since nobody is served before."""
        self._is_starting = False
        self._jobs.aside = aside

    def load_aside(self, aside: Aside, load: Callable[[], None]) -> None:
        """In a cluster: what `load` tells of is opened bit by bit, while the node takes part already."""
        self._jobs.aside = aside
        load()
        self._unopened, self._is_starting = self._jobs.names, False

    def stop_opening(self) -> None:
        """The node stops before all is open: the rest is opened by its next start."""
        self._jobs.stop()

    @property
    def is_opening(self) -> bool:
        """What a start found is not in service yet, or not all of it."""
        return bool(self._unopened)

    def when_opened(self, call: Callable[[], None]) -> None:
        """Call once all of that is in service or known to have failed, perhaps now."""
        self._on_opened = call
        if not self._unopened:
            call()

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
                            self._take_roles_meanwhile(topic)
                call_each((partial(self._show, looked_at), partial(self._answer, looked_at)))
                if not self._changed:
                    break
        finally:
            self._is_reconciling = False
        if self._unopened and not self._unopened & self._jobs.names:
            self._unopened = set()
            self._on_opened()

    def _take_roles_meanwhile(self, topic: Topic) -> None:
        seen = self._opening.get(topic.name)
        self._replicas.take_roles(topic, None if seen is None else topic.placed_anew(seen))
        if seen is not None:
            self._opening[topic.name] = topic

    def _bring_about(self, name: str) -> None:
        stored, topic = self._store.deleting.get(name), self._store.image.find(name)
        self._opening.pop(name, None)
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
            replicas.take_roles(topic, numbers)
            self._opening[name] = topic  # who does not see it meanwhile would take it for deleted
            self._jobs.begin(name, self._displace(topic, misplaced))
        elif missing := replicas.missing(topic, replicas.placed(topic, numbers)):
            replicas.take_roles(topic)
            if replicas.seat is not None:
                self._opening[name] = topic
            self._jobs.begin(name, self._open(topic, missing, is_found=self._is_starting))
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

    def _open(self, topic: Topic, missing: list[int], *, is_found: bool) -> Steps:
        """A crash in between is made up for by the next start. `is_found`: by the start, so there should be logs."""
        openings: list[Opening] = []
        for first in range(0, len(missing), PARTITIONS_PER_STEP):
            some = missing[first : first + PARTITIONS_PER_STEP]
            opening = self._replicas.opening(topic, some, self._clock.now_ms())
            error = yield opening.run
            if error is not None:
                events.error("partitions not opened", topic=topic.name, first=some[0], reason=str(error))
            wanted = self._store.image.find(topic.name)
            if wanted is None or wanted.id != topic.id:
                return  # deleted meanwhile
            if topic.name in self._opening:
                self._adopt(topic, opening, is_found=is_found)
                self._replicas.take_roles(wanted, some)  # they may be others since
            else:
                openings.append(opening)
        for opening in openings:
            self._adopt(topic, opening, is_found=is_found)

    def _adopt(self, topic: Topic, opening: Opening, *, is_found: bool) -> None:
        self._replicas.adopt(opening)
        if is_found:
            for replica in opening.opened.values():
                if replica.log.is_new and self._replicas.is_missed(topic, replica):
                    self._replicas.note_made_anew(replica)

    def _show(self, names: Iterable[str]) -> None:
        wanted, before = self._store.image, self._seen
        ready = {
            name: self._opening.get(name) or self._ready.get(name) if wanted.find(name) is not None else None
            for name in names
        }
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

    def follow(self, topic: str, call: Callable[[], None]) -> Callable[[], None]:
        """Have `call` called whenever this topic was changed; what is given back ends that."""

        def changed(change: TopicsChange) -> None:
            if topic in change.names:
                call()

        self.on_change.append(changed)
        return partial(self.on_change.remove, changed)

    def stored_bytes(self, topic: str) -> int:
        """In partitions that this node leads, with what waits for its time there: each counts once in a cluster."""
        known, companions = self._seen.topics.get(topic), self._replicas.companions
        if known is None:
            return 0
        led = [number for number in range(known.partitions) if self.leads(topic, number)]
        beside = sum(each.size_bytes for number in led for each in companions.of_host(known.id, number))
        return beside + sum(self.replica_bytes(topic, number) for number in led)

    def replica_bytes(self, topic: str, partition: int) -> int:
        replica = self._replicas.get(topic, partition)
        return 0 if replica is None else replica.size_bytes

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
