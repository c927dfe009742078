"""Topics: made, changed and deleted one command at a time. Deleting takes two steps, because a crash may come between
forgetting a topic and removing its logs: until the logs are gone the topic is kept as `deleting`, and its name
stays taken.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from types import MappingProxyType

import msgspec

from goqueue.machines.accounts import ACCOUNT_COMMANDS, AccountFact, Accounts
from goqueue.machines.controller_commands import (
    TOPIC_COMMANDS,
    AddPartitions,
    Copies,
    CreateTopic,
    DeleteTopic,
    ForgetSchedule,
    ListChange,
    NameCluster,
    PlaceSchedule,
    ProducerIdBlock,
    Reassign,
    Result,
    SetOptions,
    TakeProducerIds,
    Transact,
    Transacted,
)
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
from goqueue.machines.machine import Fact, Outcome
from goqueue.model.accounts import AccessImage
from goqueue.model.codes import Code
from goqueue.model.errors import InvalidName, InvalidOption
from goqueue.model.names import check_kept_name, collision_key
from goqueue.model.partition_limits import PartitionLimits
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import RETENTION, SHARE, TenantLimit, full, tenant_said
from goqueue.model.topics import LABELS, Topic, check_together, parse_option

MIN_INSYNC_REPLICAS = "min.insync.replicas"


DEDUP = frozenset({"dedup.ms", "dedup.scope"})
SCHEDULES_SHARED = 40_000
"""Recurring schedules, of which each tenant has its share."""


class Controller:
    def __init__(
        self,
        limits: PartitionLimits = PartitionLimits(),  # noqa: B008  a tuple
        revisions: Iterator[int] | None = None,
        copies: Copies | None = None,
    ) -> None:
        """`revisions`: where the next one comes from. They rise for as long as anybody compares them, also when the
        machine is made anew meanwhile."""
        self._limits = limits
        self.copies = copies or Copies()
        self._next_revisions = count(1) if revisions is None else revisions
        self.cluster_id = ""
        self.secret = b""
        self.producer_ids_end = 0
        """Every producer id that was ever given is below it."""
        self._schedules: dict[str, SchedulePlaced] = {}
        self.groups = GroupOptions()
        self._accounts = Accounts()
        self.access = AccessImage()
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
                facts, reply = self._set_group_options(command)
            case TakeProducerIds(count):
                first = self.producer_ids_end
                facts, reply = [ProducerIdsTaken(first + count)], ProducerIdBlock(first, first + count)
            case PlaceSchedule():
                facts, reply = self._place(command)
            case ForgetSchedule(name):
                facts = [ScheduleForgotten(name)] if name in self._schedules else []
            case DeleteTopic():
                facts, reply = self._delete(command)
            case Reassign():
                reply = Result(Code.INVALID_REPLICA_ASSIGNMENT, "this cluster has one node")
            case Transact():
                facts, reply = self._transact(command)
            case _ if isinstance(command, ACCOUNT_COMMANDS):
                facts, reply = self._accounts.decide(command)
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
        return [] if command.check_only else [result], Result(topic=topic_of(result))

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
        copies = self.copies.planned(command)
        if isinstance(copies, Result):
            return copies
        try:
            check_kept_name(command.name)
            if closed := self._accounts.closed(tenant_said(command.name)):
                raise InvalidName(closed.message)
            self._check_options(command.overrides, command.overrides, copies)
            self._check_scope(command.overrides, command.partitions)
        except (InvalidName, InvalidOption) as error:
            is_name = isinstance(error, InvalidName)
            return Result(Code.INVALID_TOPIC_EXCEPTION if is_name else Code.INVALID_CONFIG, str(error))
        if command.name in self._topics:
            return Result(Code.TOPIC_ALREADY_EXISTS, f"topic {command.name!r} already exists")
        others = self._by_collision_key.get(collision_key(command.name))
        if others and not command.may_collide:
            text = f"topic {command.name!r} collides with existing topic {min(others)!r}: '.' and '_' count as the same"
            return Result(Code.INVALID_TOPIC_EXCEPTION, text)
        refused = self._over_limit(command.name, command.partitions, is_own=command.may_collide)
        overrides = self._kept_for(command.name, command.overrides, is_asked=not command.may_collide)
        if refused is not None or isinstance(overrides, Result):
            return refused or overrides  # type: ignore[return-value]  # one of them is a Result
        return TopicStored(command.name, command.topic_id, command.partitions, overrides)

    def _kept_for(self, name: str, overrides: Mapping[str, str], *, is_asked: bool) -> dict[str, str] | Result:
        """Options of a topic as its tenant may have them, or why it may not have what is asked for."""
        tenant = self.access.tenants.get(tenant_said(name))
        if tenant is None:
            return dict(overrides)
        try:
            limit_ms = tenant.retention(overrides, self._limits.retention_ms, is_asked=is_asked)
        except Refused as error:
            return Result(error.code, str(error))
        return dict(overrides) if limit_ms is None else {**overrides, RETENTION: limit_ms}

    def _over_limit(self, name: str, partitions: int, *, is_own: bool = False) -> Result | None:
        """Why a topic cannot have so many partitions, by the limits of the cluster or of its tenant. `is_own`: the
        broker needs it, so that a dead letter has a place; limits of a tenant do not count then."""
        before = self._topics.get(name)
        others = self._partitions - (0 if before is None else before.partitions)
        if refusal := self._limits.refusal(partitions, others):
            return Result(Code.INVALID_PARTITIONS, refusal)
        tenant, bound = self.access.tenants.get(tenant_said(name)), self._limits.in_all
        is_far = self._partitions + partitions <= bound // SHARE
        if tenant is None or is_own or (is_far and not tenant.is_counted):
            return None
        prefix = full(tenant.tenant_id, "")
        its = [each for each in self._topics.values() if each.name.startswith(prefix)]
        sizes = [each.partitions for each in its if each.name != name]
        refusal = tenant.refusal(sizes, partitions, bound, is_new=before is None)
        return Result(Code.POLICY_VIOLATION, refusal) if refusal else None

    def _delete(self, command: DeleteTopic) -> tuple[list[Fact], Result]:
        """Its recurring schedules go with it."""
        found = self._find(command.name)
        if isinstance(found, Result):
            return [], found
        gone = [ScheduleForgotten(each.name) for each in self._schedules.values() if each.topic_id == found.topic_id]
        return [*gone, msgspec.structs.replace(found, is_deleting=True)], Result(topic=topic_of(found))

    def _set_group_options(self, command: SetGroupOptions) -> tuple[list[Fact], Code]:
        facts = self.groups.decide(command)
        if any(not each.is_tombstone for each in facts) and self._accounts.is_going(command.group_id):
            return [], Code.RESOURCE_NOT_FOUND
        return facts, Code.NONE

    def _place(self, command: PlaceSchedule) -> tuple[list[Fact], Result]:
        if self._accounts.is_going(command.name):
            return [], Result(Code.UNKNOWN_TOPIC_OR_PARTITION, f"the tenant of {command.name!r} is being deleted")
        topics = (each for each in self._topics.values() if each.topic_id == command.topic_id and not each.is_deleting)
        topic = next(topics, None)
        if topic is None or not 0 <= command.partition < topic.partitions:
            return [], Result(Code.UNKNOWN_TOPIC_OR_PARTITION, f"the topic of {command.name!r} is gone")
        tenant = self.access.tenants.get(tenant_said(command.name))
        if tenant is not None and command.name not in self._schedules:
            prefix = full(tenant.tenant_id, "")
            has = sum(1 for name in self._schedules if name.startswith(prefix))
            if has >= tenant.most(TenantLimit.SCHEDULES, SCHEDULES_SHARED):
                return [], Result(Code.POLICY_VIOLATION, tenant.full_words(TenantLimit.SCHEDULES, SCHEDULES_SHARED))
        return [SchedulePlaced(command.name, command.topic_id, command.partition)], Result(topic=topic_of(topic))

    def _add_partitions(self, command: AddPartitions) -> TopicStored | Result:
        found = self._find(command.name)
        if isinstance(found, Result):
            return found
        if refused := self._over_limit(command.name, command.partitions):
            return refused
        if command.partitions <= found.partitions:
            words = f"{command.name} has {found.partitions} partitions and cannot have {command.partitions}: only more"
            return Result(Code.INVALID_PARTITIONS, words)
        try:
            self._check_scope(found.overrides, command.partitions)
        except InvalidOption as error:
            return Result(Code.INVALID_CONFIG, str(error))
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
            self._check_options(overrides, command.changes, self.copies.of(command.name))
            if not DEDUP.isdisjoint(command.changes):
                self._check_scope(overrides, found.partitions)
        except InvalidOption as error:
            return Result(Code.INVALID_CONFIG, str(error))
        kept = self._kept_for(command.name, overrides, is_asked=RETENTION in command.changes)
        return kept if isinstance(kept, Result) else msgspec.structs.replace(found, overrides=kept)

    def _check_options(self, overrides: Mapping[str, str], changed: Iterable[str], copies: int) -> None:
        """Only what is `changed` is refused: a topic must not be stuck with what an older node let it have."""
        for name in changed:
            if name not in overrides:
                continue
            value = parse_option(name, overrides[name])
            if name == MIN_INSYNC_REPLICAS and isinstance(value, int) and value > copies:
                words = "can be 1 copy" if copies == 1 else f"are {copies} copies"
                raise InvalidOption(f"{name} is {value}, but there {words} of a partition: nothing could be published")
        check_together(overrides)

    def _check_scope(self, overrides: Mapping[str, str], partitions: int) -> None:
        """Ids that are unique in a topic need one place that knows all of them."""
        has_ids = parse_option("dedup.ms", overrides.get("dedup.ms", "0")) != 0
        is_of_topic = overrides.get("dedup.scope", "topic") == "topic"
        if self.copies.is_spread and partitions > 1 and has_ids and is_of_topic:
            text = f"dedup.scope is topic, but {partitions} partitions may have {partitions} leaders"
            raise InvalidOption(f"{text}: in a cluster set dedup.scope to key, or have one partition")

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
            case _ if isinstance(fact, AccountFact):
                self._accounts.apply(fact)
                self._show_access()

    def forget(self, key: bytes) -> None:
        if key.startswith(SCHEDULE_KEY):
            self._schedules.pop(key.removeprefix(SCHEDULE_KEY).decode(), None)
        elif self._accounts.forget(key):
            self._show_access()
        elif not self.groups.forget(key):
            self._forget(key.decode())

    def _show_access(self) -> None:
        """With a revision of its own: whoever changes a rule does not change topics."""
        self.access = self._accounts.image(next(self._next_revisions))

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
        yield from self._accounts.facts()
        yield from self._topics.values()

    def next_deadline_ms(self) -> int | None:
        return None


def topic_of(stored: TopicStored) -> Topic:
    return Topic(stored.name, stored.topic_id, stored.partitions, MappingProxyType(dict(stored.overrides)))
