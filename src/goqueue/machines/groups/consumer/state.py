"""What a consumer group knows, and how facts change it; what it decides is written elsewhere."""

from collections.abc import Iterator, Mapping

import msgspec

from goqueue.machines.groups.commands import CONSUMER, KnownTopics, key_parts
from goqueue.machines.groups.consumer.facts import (
    ConsumerGroupCounts,
    ConsumerGroupKept,
    ConsumerGroupMeasured,
    ConsumerHeard,
    ConsumerMember,
    ConsumerMemberKept,
    ConsumerRevocationDue,
    ConsumerTopicsKnown,
    MemberState,
    unpacked,
)
from goqueue.machines.groups.consumer.sessions import Sessions
from goqueue.machines.groups.limits import member_bytes
from goqueue.machines.machine import Fact
from goqueue.model.topics import Topic


class ConsumerGroupState:
    """Invariant: `owners` has each partition in `assigned` or `revoking` of a member, with that member's id.
    Invariant: `instances` names exactly the static members.
    Invariant: `unsettled` names the members that have not exactly what they shall have.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group: ConsumerGroupKept | None = None
        self.members: dict[str, ConsumerMember] = {}
        self.held_bytes = 0
        """Of all that members tell of themselves."""
        self.instances: dict[str, str] = {}
        self.owners: dict[tuple[bytes, int], str] = {}
        self.unsettled: set[str] = set()
        self.known = KnownTopics()
        self.sessions = Sessions()
        self.revocation_dues: dict[str, int] = {}
        self.counts = ConsumerGroupCounts()
        self.rebalancing_since_ms: int | None = None

    def durable(self) -> tuple[object, ...]:
        """All that a restart must bring back."""
        return self.group, self.members, self.instances, self.owners, self.unsettled

    @property
    def topics(self) -> Mapping[str, Topic] | None:
        return self.known.topics

    def apply(self, fact: Fact) -> None:
        match fact:
            case ConsumerHeard():
                self._hear(fact)
            case ConsumerMemberKept():
                self._keep(fact.member)
            case ConsumerGroupKept():
                self.group = fact
            case ConsumerRevocationDue():
                self.revocation_dues[fact.member_id] = fact.due_ms
            case ConsumerTopicsKnown():
                self.known.topics = fact.topics
            case ConsumerGroupMeasured():
                self._measure(fact)
            case Fact(is_tombstone=True):
                self.forget(fact.key())
            case _:
                raise TypeError(f"{type(fact).__name__} says nothing about a consumer group")

    def forget(self, key: bytes) -> None:
        kind, _group_id, *rest = key_parts(key)
        if kind == CONSUMER:
            self.group = None
        else:
            self._drop(str(rest[0]))

    def facts(self) -> Iterator[Fact]:
        if self.group is not None:
            yield self.group
        for member in self.members.values():
            yield ConsumerMemberKept(self.group_id, member)

    def _keep(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._release(before)
            self.held_bytes -= bytes_of(before)
        self.held_bytes += bytes_of(member)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        for partition in unpacked(member.assigned) | unpacked(member.revoking):
            self.owners[partition] = member.member_id
        if member.is_settled:
            self.unsettled.discard(member.member_id)
        else:
            self.unsettled.add(member.member_id)
        if member.state is not MemberState.UNREVOKED:
            self.revocation_dues.pop(member.member_id, None)

    def _drop(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        self.held_bytes -= bytes_of(member)
        self.unsettled.discard(member_id)
        self.sessions.drop(member_id)
        self.revocation_dues.pop(member_id, None)

    def _release(self, member: ConsumerMember) -> None:
        """Another member may have got its partitions or its instance id already: what that one has stays."""
        for partition in unpacked(member.assigned) | unpacked(member.revoking):
            if self.owners.get(partition) == member.member_id:
                del self.owners[partition]
        if member.instance_id is not None and self.instances.get(member.instance_id) == member.member_id:
            del self.instances[member.instance_id]

    def _hear(self, fact: ConsumerHeard) -> None:
        self.sessions.hear(fact.member_id, fact.at_ms, fact.session_due_ms)
        if self.rebalancing_since_ms is not None and not self.unsettled and self.has_current_targets:
            took_ms = fact.at_ms - self.rebalancing_since_ms
            self.counts = msgspec.structs.replace(
                self.counts,
                rebalance_ms_last=took_ms,
                settled=self.counts.settled + 1,
                settled_ms=self.counts.settled_ms + took_ms,
            )
            self.rebalancing_since_ms = None

    def _measure(self, fact: ConsumerGroupMeasured) -> None:
        if fact.rebalances and self.rebalancing_since_ms is None:
            self.rebalancing_since_ms = fact.at_ms
        self.counts = msgspec.structs.replace(
            self.counts,
            rebalances=self.counts.rebalances + fact.rebalances,
            partitions_moved=self.counts.partitions_moved + fact.partitions_moved,
            revocation_timeouts=self.counts.revocation_timeouts + fact.revocation_timeouts,
            partitions_revoked=self.counts.partitions_revoked + fact.partitions_revoked,
            rebalance_at_ms=fact.at_ms if fact.rebalances else self.counts.rebalance_at_ms,
            by_reason=_counted(self.counts.by_reason, fact.reason),
        )

    @property
    def has_current_targets(self) -> bool:
        return self.group is None or self.group.target_epoch == self.group.epoch

    def name(self) -> str:
        """As Kafka calls the state of such a group."""
        if self.group is None:
            return "Dead"
        if not self.members:
            return "Empty"
        if not self.has_current_targets:
            return "Assigning"
        epoch = self.group.target_epoch
        is_stable = all(each.state is MemberState.STABLE and each.epoch == epoch for each in self.members.values())
        return "Stable" if is_stable else "Reconciling"


def bytes_of(member: ConsumerMember) -> int:
    return member_bytes(member, member.classic_protocols, member.topic_names, member.topic_regex)


def _counted(by_reason: dict[str, int], reason: str) -> dict[str, int]:
    return {**by_reason, reason: by_reason.get(reason, 0) + 1} if reason else by_reason
