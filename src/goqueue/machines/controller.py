"""Topics: made, changed and deleted one command at a time. Deleting takes two steps, because a crash may come between
forgetting a topic and removing its logs: until the logs are gone the topic is kept as `deleting`, and its name
stays taken.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from goqueue.machines.controller_facts import (
    SCHEDULE_KEY,
    ClusterNamed,
    ProducerIdsTaken,
    ScheduleForgotten,
    SchedulePlaced,
    TopicForgotten,
    TopicStored,
)
from goqueue.machines.group_options import GroupOptions, GroupOptionsForgotten, GroupOptionsStored, SetGroupOptions
from goqueue.machines.machine import Command, Fact, Outcome
from goqueue.model.codes import Code
from goqueue.model.errors import InvalidName, InvalidOption
from goqueue.model.names import check_topic_name, collision_key
from goqueue.model.topics import LABELS, Topic, check_together, parse_option

MIN_INSYNC_REPLICAS = "min.insync.replicas"
COPIES_MAX = 1
"""Of one partition: one node keeps everything."""


class PartitionLimits(NamedTuple):
    """How many partitions there may be. What was made under other limits stays."""

    per_topic: int = 1_000
    in_all: int = 100_000
    default: int = 3
    """Of a topic that does not say how many."""

    def refusal(self, wanted: int, others: int) -> str:
        """Why a topic cannot have `wanted` partitions beside the `others` of all other topics; empty: it can."""
        if not 1 <= wanted <= self.per_topic:
            return f"{wanted} partitions; a topic may have 1 to {self.per_topic} (partitions_max)"
        if wanted + others > self.in_all:
            return (
                f"{wanted} partitions beside the {others} of other topics; this node may have {self.in_all}, "
                "by its limit on open files"
            )
        return ""


class NameCluster(Command["Result"], frozen=True):
    """Give a new cluster its id and the secret that its receipts are signed with; one that has them keeps them."""

    cluster_id: str
    secret: bytes


class CreateTopic(Command["Result"], frozen=True):
    name: str
    topic_id: bytes
    partitions: int
    overrides: dict[str, str] = msgspec.field(default_factory=dict)
    check_only: bool = False
    may_collide: bool = False
    """The broker's own: a dead letter must not be stuck because `a_dlq` stands where `a.dlq` has to be made."""


class DeleteTopic(Command["Result"], frozen=True):
    name: str


class AddPartitions(Command["Result"], frozen=True):
    name: str
    partitions: int
    check_only: bool = False


class ListChange(msgspec.Struct, frozen=True):
    """Items added to an option that is a list, or taken from it."""

    items: str
    is_added: bool
    default: str
    """The list, if the topic has none of its own."""

    def of(self, text: str | None) -> str:
        before = _items(self.default if text is None else text)
        changed = _items(self.items)
        if self.is_added:
            return ",".join([*before, *(item for item in changed if item not in before)])
        return ",".join(item for item in before if item not in changed)


class SetOptions(Command["Result"], frozen=True):
    name: str
    changes: Mapping[str, str | ListChange | None]
    """None: back to the default."""
    replace_all: bool = False
    check_only: bool = False


class TakeProducerIds(Command["ProducerIdBlock"], frozen=True):
    """A block of producer ids for whoever gives them out: nobody else is given any of them, ever."""

    count: int


class PlaceSchedule(Command["Result"], frozen=True):
    """The recurring schedule of this name lives with this partition from now on."""

    name: str
    topic_id: bytes
    partition: int


class ForgetSchedule(Command["Result"], frozen=True):
    name: str


class ProducerIdBlock(NamedTuple):
    """To TakeProducerIds: the ids from `first` on, below `end`."""

    first: int
    end: int


TOPIC_COMMANDS = (CreateTopic, AddPartitions, SetOptions)
"""Those that may only be checked."""


class Result(msgspec.Struct, frozen=True):
    code: Code = Code.NONE
    message: str = ""
    topic: Topic | None = None


class Transact(Command["Transacted"], frozen=True):
    """These topics as they are given here, if all that were expected are as they were; else nothing."""

    expected: Mapping[str, int]
    """The revision of each; 0: there is none of the name."""
    topics: Mapping[str, TopicStored | None]
    """None: it is forgotten."""


class Transacted(NamedTuple):
    """To Transact."""

    is_done: bool
    revision: int


class Controller:
    def __init__(
        self,
        limits: PartitionLimits = PartitionLimits(),  # noqa: B008  a tuple
        revisions: Iterator[int] | None = None,
    ) -> None:
        """`revisions`: where the next one comes from. They rise for as long as anybody compares them, also when the
        machine is made anew meanwhile."""
        self._limits = limits
        self._next_revisions = count(1) if revisions is None else revisions
        self.cluster_id = ""
        self.secret = b""
        self.producer_ids_end = 0
        """Every producer id that was ever given is below it."""
        self._schedules: dict[str, SchedulePlaced] = {}
        self.groups = GroupOptions()
        self._topics: dict[str, TopicStored] = {}
        self._by_collision_key: dict[str, set[str]] = {}
        """Names of topics, so that a new one need not be compared with all of them."""
        self._revisions: dict[str, int] = {}
        """At which each topic was last changed."""
        self._partitions = 0
        """Of all topics; those of one that is being deleted are still open."""
        self.revision = 0

    @property
    def topics(self) -> Mapping[str, TopicStored]:
        """By name; also those that are being deleted."""
        return self._topics

    def schedules(self) -> dict[str, tuple[bytes, int]]:
        """Topic id and partition of every recurring schedule, by its name."""
        return {name: (each.topic_id, each.partition) for name, each in self._schedules.items()}

    def revision_of(self, name: str) -> int:
        """At which the topic was last changed; 0: there is none."""
        return self._revisions.get(name, 0)

    def decide(self, command: object, ticket: int, now_ms: int) -> Outcome:  # noqa: ARG002  a machine's signature
        facts, reply = self._decide_topic(command) if isinstance(command, TOPIC_COMMANDS) else self._decide(command)
        return Outcome(facts, [(ticket, reply)])

    def _decide(self, command: object) -> tuple[list[Fact], object]:
        facts: list[Fact] = []
        reply: object = Result()
        match command:
            case NameCluster():
                named = ClusterNamed(self.cluster_id or command.cluster_id, self.secret or command.secret)
                facts = [] if self.cluster_id and self.secret else [named]
            case SetGroupOptions():
                facts, reply = self.groups.decide(command), Code.NONE
            case TakeProducerIds(count):
                first = self.producer_ids_end
                facts, reply = [ProducerIdsTaken(first + count)], ProducerIdBlock(first, first + count)
            case PlaceSchedule():
                facts, reply = self._place(command)
            case ForgetSchedule(name):
                facts = [ScheduleForgotten(name)] if name in self._schedules else []
            case DeleteTopic():
                facts, reply = self._delete(command)
            case Transact():
                facts, reply = self._transact(command)
            case _:
                raise TypeError(f"no command of the controller: {command!r}")
        return facts, reply

    def _decide_topic(self, command: "CreateTopic | AddPartitions | SetOptions") -> tuple[list[Fact], Result]:
        result: TopicStored | Result
        match command:
            case CreateTopic():
                result = self._create(command)
            case AddPartitions():
                result = self._add_partitions(command)
            case _:
                result = self._set_options(command)
        if isinstance(result, Result):
            return [], result
        return [] if command.check_only else [result], Result(topic=_topic(result))

    def _transact(self, command: Transact) -> tuple[list[Fact], Transacted]:
        if any(self.revision_of(name) != revision for name, revision in command.expected.items()):
            return [], Transacted(False, self.revision)
        facts: list[Fact] = [
            TopicForgotten(name) if stored is None else stored
            for name, stored in command.topics.items()
            if stored is not None or name in self._topics
        ]
        return facts, Transacted(True, self.revision)

    def _create(self, command: CreateTopic) -> TopicStored | Result:
        try:
            check_topic_name(command.name)
            self._check_options(command.overrides, command.overrides)
        except InvalidName as error:
            return Result(Code.INVALID_TOPIC_EXCEPTION, str(error))
        except InvalidOption as error:
            return Result(Code.INVALID_CONFIG, str(error))
        if command.name in self._topics:
            return Result(Code.TOPIC_ALREADY_EXISTS, f"topic {command.name!r} already exists")
        others = self._by_collision_key.get(collision_key(command.name))
        if others and not command.may_collide:
            text = f"topic {command.name!r} collides with existing topic {min(others)!r}: '.' and '_' count as the same"
            return Result(Code.INVALID_TOPIC_EXCEPTION, text)
        if refusal := self._limits.refusal(command.partitions, self._partitions):
            return Result(Code.INVALID_PARTITIONS, refusal)
        return TopicStored(command.name, command.topic_id, command.partitions, dict(command.overrides))

    def _delete(self, command: DeleteTopic) -> tuple[list[Fact], Result]:
        """Its recurring schedules go with it."""
        found = self._find(command.name)
        if isinstance(found, Result):
            return [], found
        gone = [ScheduleForgotten(each.name) for each in self._schedules.values() if each.topic_id == found.topic_id]
        return [*gone, msgspec.structs.replace(found, is_deleting=True)], Result(topic=_topic(found))

    def _place(self, command: PlaceSchedule) -> tuple[list[Fact], Result]:
        topics = (each for each in self._topics.values() if each.topic_id == command.topic_id and not each.is_deleting)
        topic = next(topics, None)
        if topic is None or not 0 <= command.partition < topic.partitions:
            return [], Result(Code.UNKNOWN_TOPIC_OR_PARTITION, f"the topic of {command.name!r} is gone")
        return [SchedulePlaced(command.name, command.topic_id, command.partition)], Result(topic=_topic(topic))

    def _add_partitions(self, command: AddPartitions) -> TopicStored | Result:
        found = self._find(command.name)
        if isinstance(found, Result):
            return found
        if refusal := self._limits.refusal(command.partitions, self._partitions - found.partitions):
            return Result(Code.INVALID_PARTITIONS, refusal)
        if command.partitions <= found.partitions:
            message = (
                f"{command.name} has {found.partitions} partitions and cannot have {command.partitions}: only more"
            )
            return Result(Code.INVALID_PARTITIONS, message)
        return msgspec.structs.replace(found, partitions=command.partitions)

    def _set_options(self, command: SetOptions) -> TopicStored | Result:
        found = self._find(command.name)
        if isinstance(found, Result):
            return found
        overrides = dict(found.overrides)
        if command.replace_all:  # whoever says all options knows nothing of what doors keep here
            overrides = {name: text for name, text in overrides.items() if name in LABELS}
        for name, text in command.changes.items():
            if text is None:
                overrides.pop(name, None)
            else:
                overrides[name] = text.of(overrides.get(name)) if isinstance(text, ListChange) else text
        try:
            self._check_options(overrides, command.changes)
        except InvalidOption as error:
            return Result(Code.INVALID_CONFIG, str(error))
        return msgspec.structs.replace(found, overrides=overrides)

    def _check_options(self, overrides: Mapping[str, str], changed: Iterable[str]) -> None:
        """Only what is `changed` is refused: a topic must not be stuck with what an older node let it have."""
        for name in changed:
            if name not in overrides:
                continue
            value = parse_option(name, overrides[name])
            if name == MIN_INSYNC_REPLICAS and isinstance(value, int) and value > COPIES_MAX:
                raise InvalidOption(
                    f"{name} is {value}, but there can be {COPIES_MAX} copy of a partition: nothing could be published"
                )
        check_together(overrides)

    def _find(self, name: str) -> TopicStored | Result:
        topic = self._topics.get(name)
        if topic is None or topic.is_deleting:
            return Result(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return topic

    def apply(self, fact: object) -> None:
        match fact:
            case TopicStored():
                self._drop(fact.name)
                self._topics[fact.name] = fact
                self._by_collision_key.setdefault(collision_key(fact.name), set()).add(fact.name)
                self._partitions += fact.partitions
                self._revisions[fact.name] = self.revision = next(self._next_revisions)
            case TopicForgotten():
                self._forget(fact.name)
            case ClusterNamed():
                self.cluster_id, self.secret = fact.cluster_id, fact.secret
            case ProducerIdsTaken():
                self.producer_ids_end = max(self.producer_ids_end, fact.end)
            case SchedulePlaced():
                self._schedules[fact.name] = fact
            case ScheduleForgotten():
                self._schedules.pop(fact.name, None)
            case GroupOptionsStored() | GroupOptionsForgotten():
                self.groups.apply(fact)

    def forget(self, key: bytes) -> None:
        if key.startswith(SCHEDULE_KEY):
            self._schedules.pop(key.removeprefix(SCHEDULE_KEY).decode(), None)
        elif not self.groups.forget(key):
            self._forget(key.decode())

    def _forget(self, name: str) -> None:
        self._drop(name)
        self._revisions.pop(name, None)
        self.revision = next(self._next_revisions)
        if self._topics.pop(name, None) is None:
            return
        key = collision_key(name)
        self._by_collision_key[key].discard(name)
        if not self._by_collision_key[key]:
            del self._by_collision_key[key]

    def _drop(self, name: str) -> None:
        """What is counted of it: it keeps its place among the topics."""
        before = self._topics.get(name)
        if before is not None:
            self._partitions -= before.partitions

    def facts(self) -> Iterator[Fact]:
        if self.cluster_id:
            yield ClusterNamed(self.cluster_id, self.secret)
        if self.producer_ids_end:
            yield ProducerIdsTaken(self.producer_ids_end)
        yield from self._schedules.values()
        yield from self.groups.facts()
        yield from self._topics.values()

    def next_deadline_ms(self) -> int | None:
        return None


def _topic(stored: TopicStored) -> Topic:
    return Topic(stored.name, stored.topic_id, stored.partitions, MappingProxyType(dict(stored.overrides)))


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
