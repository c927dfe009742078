"""How the commands of the controller come about in etcd: each is a few steps that compare what they were decided from.
Whoever loses a race, or the answer, looks at what there is now and decides anew.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from goqueue.cluster.accounts import account_change, tenant_of_fact
from goqueue.cluster.mirror import Mirror
from goqueue.machines.accounts import AccountFact, KeyStored, RuleStored, UserStored
from goqueue.machines.cluster.election import Partition
from goqueue.machines.cluster.placement import TooFewNodes, assign, first_placement, hosts
from goqueue.machines.cluster.steward import cancel, reassign
from goqueue.machines.controller import topic_of
from goqueue.machines.controller_commands import AddPartitions, CreateTopic, DeleteTopic, Reassign, Result
from goqueue.machines.controller_facts import (
    ProducerIdsTaken,
    ScheduleForgotten,
    SchedulePlaced,
    TopicStored,
)
from goqueue.machines.group_options import GroupOptionsForgotten, GroupOptionsStored
from goqueue.machines.machine import Command, Fact
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import (
    ABSENT,
    Committed,
    Compare,
    Conflict,
    GroupKey,
    GroupValue,
    Key,
    PartitionKey,
    ProducerIdsKey,
    ProducerIdsValue,
    Put,
    ScheduleKey,
    ScheduleValue,
    Step,
    TenantKey,
    TopicKey,
    TopicValue,
    Value,
)
from goqueue.model.placements import Placement
from goqueue.model.tenancy import DEFAULT_TENANT, Tenant, tenant_said
from goqueue.model.topics import minimum_in_sync

COUNTED = (SchedulePlaced, UserStored, KeyStored, RuleStored)
"""Of which a tenant may have so many, as of its topics."""
PARTITIONS_PER_STEP = 100
"""etcd takes 128 operations in a transaction."""
GONE_MS_MAX = 5000
"""How long whoever deletes a topic waits for all nodes to remove it."""


class Reread(NamedTuple):
    """Wait until all that there is in etcd now is known here."""


class Until(NamedTuple):
    """Wait until this is so; True, or False after so long."""

    is_so: Callable[[], bool]
    ms_max: int


R = TypeVar("R")
Wanted: TypeAlias = Step | Reread | Until
Answer: TypeAlias = Committed | Conflict | GoQueueError | bool | None
Change: TypeAlias = Generator[Wanted, Answer, R]
"""Yields what it wants done and is sent what came of it: of a Step what a store says, of a Reread None, of an Until a
bool. Returns the reply."""


class Changes:
    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror

    def of(self, command: Command[R]) -> Change[R]:
        """What brings it about: it returns the reply that the command says."""
        return cast("Change[R]", self._of(command))  # each case below has the reply of its command

    def _of(self, command: Command[Any]) -> Change[Any]:
        match command:
            case CreateTopic():
                return self._create(command)
            case AddPartitions():
                return self._add_partitions(command)
            case DeleteTopic():
                return self._delete(command)
            case Reassign():
                return self._reassign(command)
            case _:
                return self._plain(command)

    def _decide(self, command: Command[R]) -> tuple[Sequence[Fact], R]:
        outcome = self._mirror.machine.decide(command, 0, 0)
        reply: R = outcome.replies[0][1]
        return outcome.facts, reply

    # -- what is one step

    def _plain(self, command: Command[R]) -> Change[R]:
        while True:
            facts, reply = self._decide(command)
            if not facts:
                return reply
            outcome = yield self._step(facts)
            if isinstance(outcome, Committed):
                return reply
            if not isinstance(outcome, Conflict):
                yield Reread()

    def _step(self, facts: Sequence[Fact]) -> Step:
        changes = [self._change(fact) for fact in facts]
        compares = tuple(Compare(key, self._mirror.revision_of(key)) for key, _ in changes)
        compares += self._tenants_as_known({tenant_of_fact(fact) for fact in facts})
        are_new = [self._mirror.revision_of(key) == ABSENT for key, _ in changes]
        counted = {tenant_of_fact(fact) for fact, is_new in zip(facts, are_new) if is_new and isinstance(fact, COUNTED)}
        puts = [put for tenant in sorted(counted) for put in self._counted(tenant)[1]]
        return Step(compares, (*(Put(key, value) for key, value in changes), *puts))

    def _tenants_as_known(self, tenants: Iterable[str]) -> tuple[Compare, ...]:
        """Nothing is made for a tenant that another node has begun to delete meanwhile."""
        keys = (TenantKey(each) for each in sorted(tenants) if each != DEFAULT_TENANT)
        return tuple(Compare(key, self._mirror.revision_of(key)) for key in keys)

    def _counted(self, tenant: str) -> tuple[tuple[Compare, ...], tuple[Put, ...]]:
        """Each topic, schedule and account that a tenant makes, or that gets more, changes the revision of the tenant.
        So of two that both have room for the last one, one looks again."""
        found = self._mirror.find(TenantKey(tenant))
        puts = (Put(TenantKey(tenant), found),) if isinstance(found, Tenant) else ()
        return self._tenants_as_known((tenant,)), puts

    def _change(self, fact: Fact) -> tuple[Key, Value | None]:  # noqa: PLR0911  one for each kind
        match fact:
            case TopicStored():
                stored = self._mirror.topic(fact.name)
                assert stored is not None, f"{fact.name} is changed and there is none"
                return TopicKey(fact.name), stored._replace(overrides=fact.overrides, is_deleting=fact.is_deleting)
            case ProducerIdsTaken():
                return ProducerIdsKey(), ProducerIdsValue(fact.end)
            case SchedulePlaced():
                return ScheduleKey(fact.name), ScheduleValue(fact.topic_id, fact.partition)
            case ScheduleForgotten():
                return ScheduleKey(fact.name), None
            case GroupOptionsStored():
                return GroupKey(fact.group_id), GroupValue(fact.options)
            case GroupOptionsForgotten():
                return GroupKey(fact.group_id), None
            case _ if isinstance(fact, AccountFact):
                return account_change(fact)
            case _:
                raise TypeError(f"no change of the metadata: {fact!r}")

    # -- topics

    def _create(self, command: CreateTopic) -> Change[Result]:
        key, reply = TopicKey(command.name), Result()
        while True:
            stored = self._mirror.topic(command.name)
            if stored is not None and stored.topic_id == command.topic_id:
                break  # by this very command, whose answer was lost
            facts, reply = self._decide(command)
            if not facts:
                return reply
            made = self._planned(command)
            if isinstance(made, Result):
                return made
            compares, puts = self._counted(tenant_said(command.name))
            outcome = yield Step((Compare(key, ABSENT), *compares), (Put(key, made), *puts))
            if not isinstance(outcome, Committed | Conflict):
                yield Reread()
        is_made = yield from self.finish(command.name, command.topic_id, command.assignments)
        if not is_made:
            return Result(Code.UNKNOWN_TOPIC_OR_PARTITION, f"{command.name!r} was deleted while it was made")
        topic = topic_of(self._mirror.machine.topics[command.name])
        return Result(topic=replace(topic, replication_factor=self._mirror.machine.copies.of(command.name)))

    def _planned(self, command: CreateTopic) -> TopicValue | Result:
        factor = self._mirror.machine.copies.planned(command)
        if isinstance(factor, Result):
            return factor
        if factor > len(self._mirror.members()):
            text = f"{factor} copies of each partition, but there are {len(self._mirror.members())} nodes to have them"
            return Result(Code.INVALID_REPLICATION_FACTOR, text)
        made = TopicValue(
            command.topic_id, command.partitions, command.overrides, is_making=True, replication_factor=factor
        )
        least = minimum_in_sync(made.overrides, factor)
        if any(placement is None for placement in self._placed(made, range(command.partitions), command.assignments)):
            text = f"fewer than {least} of the nodes that would have copies are alive (min.insync.replicas)"
            return Result(Code.INVALID_REPLICATION_FACTOR, text)
        return made

    def make_ledger(self, name: str, value: TopicValue) -> Change[Any]:
        """One of the broker's own, if there is none yet."""
        key = TopicKey(name)
        while self._mirror.topic(name) is None:
            outcome = yield Step((Compare(key, ABSENT),), (Put(key, value),))
            if not isinstance(outcome, Committed | Conflict):
                yield Reread()
        stored = self._mirror.topic(name)
        assert stored is not None
        return (yield from self.finish(name, stored.topic_id))

    def finish(self, name: str, topic_id: bytes, assignments: Sequence[tuple[int, ...]] = ()) -> Change[Any]:
        """Give a topic that is being made what it lacks; whoever began it may be dead. True: it is there. False: it is
        gone again, or too few nodes are alive."""
        key = TopicKey(name)
        while True:
            stored = self._mirror.topic(name)
            if stored is None or stored.topic_id != topic_id or stored.is_deleting:
                return False
            if not stored.is_making:
                return True
            missing = self._missing(stored, stored.partitions)
            compare = Compare(key, self._mirror.revision_of(key))
            if missing:
                step = self._placing(stored, compare, missing, assignments)
                if step is None:
                    return False
            else:
                step = Step((compare,), (Put(key, stored._replace(is_making=False)),))
            outcome = yield step
            if not isinstance(outcome, Committed | Conflict):
                yield Reread()

    def _add_partitions(self, command: AddPartitions) -> Change[Result]:
        """The new ones first, then their number: nobody is shown a partition that has no place."""
        key = TopicKey(command.name)
        while True:
            facts, reply = self._decide(command)
            stored = self._mirror.topic(command.name)
            if not facts or stored is None:
                return reply
            missing = self._missing(stored, command.partitions)
            compare = Compare(key, self._mirror.revision_of(key))
            if missing:
                assigned = (*((),) * stored.partitions, *command.assignments)
                step = self._placing(stored, compare, missing, assigned)
                if step is None:
                    return Result(Code.INVALID_REPLICATION_FACTOR, "too few nodes are alive (min.insync.replicas)")
            else:
                compares, puts = self._counted(tenant_said(command.name))
                step = Step((compare, *compares), (Put(key, stored._replace(partitions=command.partitions)), *puts))
            outcome = yield step
            if isinstance(outcome, Committed) and not missing:
                return reply
            if not isinstance(outcome, Committed | Conflict):
                yield Reread()

    def _missing(self, topic: TopicValue, partitions: int) -> list[int]:
        placed = self._mirror.placements(topic.topic_id)
        return [number for number in range(partitions) if number not in placed]

    def _placing(
        self, topic: TopicValue, compare: Compare, missing: Sequence[int], assignments: Sequence[tuple[int, ...]]
    ) -> Step | None:
        """None: too few nodes are alive."""
        some = missing[:PARTITIONS_PER_STEP]
        placements = [one for one in self._placed(topic, some, assignments) if one is not None]
        if len(placements) < len(some):
            return None
        keys = [PartitionKey(topic.topic_id, number) for number in some]
        new = (Compare(key, ABSENT) for key in keys)
        return Step((compare, *new), tuple(Put(key, value) for key, value in zip(keys, placements)))

    def _placed(
        self, topic: TopicValue, numbers: Iterable[int], assignments: Sequence[tuple[int, ...]]
    ) -> Iterable[Placement | None]:
        least = minimum_in_sync(topic.overrides, topic.replication_factor)
        members, alive = self._mirror.members(), self._mirror.nodes
        nodes = hosts(members, alive, topic.replication_factor)
        copies = min(topic.replication_factor, len(nodes))
        for number in numbers:
            assigned = assignments[number] if number < len(assignments) else ()
            try:
                yield first_placement(assigned or assign(topic.topic_id, number, nodes, copies), alive, least)
            except TooFewNodes:
                yield None

    def _reassign(self, command: Reassign) -> Change[Result]:
        """It is under way when this is answered: the steward ends it when all new copies are in sync."""
        key = TopicKey(command.name)
        while True:
            topic = self._mirror.topic(command.name)
            placed = None if topic is None else self._mirror.placements(topic.topic_id).get(command.partition)
            if topic is None or topic.is_deleting or placed is None or not isinstance(placed.value, Placement):
                return Result(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no such partition of {command.name!r}")
            least = minimum_in_sync(topic.overrides, topic.replication_factor)
            partition = Partition(PartitionKey(topic.topic_id, command.partition), placed.value, least)
            step = self._reassigning(partition, key, command.replicas)
            if isinstance(step, Result):
                return step
            outcome = yield step
            if isinstance(outcome, Committed):
                return Result()
            if not isinstance(outcome, Conflict):
                yield Reread()

    def _reassigning(self, partition: Partition, topic: TopicKey, replicas: tuple[int, ...] | None) -> Step | Result:
        revision = self._mirror.revision_of(topic)
        if replicas is None:
            step = cancel(partition, topic, revision)
            return step or Result(Code.NO_REASSIGNMENT_IN_PROGRESS, "nothing is under way")
        known = self._mirror.nodes
        if not replicas or len(set(replicas)) < len(replicas) or any(node not in known for node in replicas):
            text = f"copies on nodes {list(replicas)}: each may be named once, of the living ones {sorted(known)}"
            return Result(Code.INVALID_REPLICA_ASSIGNMENT, text)
        if len(replicas) < partition.minimum:
            text = f"{len(replicas)} copies, but {partition.minimum} have to be in sync (min.insync.replicas)"
            return Result(Code.INVALID_REPLICATION_FACTOR, text)
        return reassign(partition, topic, revision, replicas)

    def _delete(self, command: DeleteTopic) -> Change[Result]:
        was_sent = False
        wanted = self._mirror.topic(command.name)
        while True:
            stored = self._mirror.topic(command.name)
            is_same = wanted is not None and stored is not None and stored.topic_id == wanted.topic_id
            if was_sent and (not is_same or (stored is not None and stored.is_deleting)):
                reply = Result()  # it was done, and the answer lost
                break
            facts, reply = self._decide(command)
            if not facts:
                return reply
            outcome = yield self._step(facts)
            if isinstance(outcome, Committed):
                break
            if not isinstance(outcome, Conflict):
                was_sent = True
                yield Reread()

        def is_gone() -> bool:
            left = self._mirror.topic(command.name)
            return left is None or wanted is None or left.topic_id != wanted.topic_id

        yield Until(is_gone, GONE_MS_MAX)
        return reply
