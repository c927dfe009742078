"""A decision in the making: changes lie over the group's state, which only `apply` may touch, and end as facts."""

from collections import Counter

import msgspec

from goqueue.machines.groups.assignors import ASSIGNORS, Subscriber
from goqueue.machines.groups.consumer.facts import (
    ConsumerGroupKept,
    ConsumerGroupMeasured,
    ConsumerGroupOptions,
    ConsumerHeard,
    ConsumerMember,
    ConsumerMemberGone,
    ConsumerMemberKept,
    ConsumerRevocationDue,
    MemberState,
    changed,
    packed,
    unpacked,
)
from goqueue.machines.groups.consumer.state import ConsumerGroupState
from goqueue.machines.groups.consumer.subscriptions import Subscriptions
from goqueue.machines.machine import Fact


class Draft:
    """Invariant: `_state` is only read; `_kept` and `_dropped` are what changes in its members, and are disjoint.

    A heartbeat that changes one member costs nothing for the others: they are looked at only to assign.
    """

    def __init__(
        self, state: ConsumerGroupState, options: ConsumerGroupOptions, subscriptions: Subscriptions, now_ms: int
    ) -> None:
        self._state = state
        self._options = options
        self._subscriptions = subscriptions
        self._now_ms = now_ms
        self._group = state.group or ConsumerGroupKept(
            state.group_id, assignor=options.default_assignor, created_at_ms=now_ms
        )
        self._kept: dict[str, ConsumerMember] = {}
        self._dropped: dict[str, None] = {}
        self._reason = ""
        self._moved = 0
        self._revoked = 0
        self._revocation_timeouts = 0

    def note_leases(self) -> None:
        if not self._group.has_leases:
            self._group = msgspec.structs.replace(self._group, has_leases=True)

    @property
    def group(self) -> ConsumerGroupKept:
        return self._group

    def member(self, member_id: str) -> ConsumerMember:
        return self._kept.get(member_id) or self._state.members[member_id]

    def put(self, member: ConsumerMember) -> None:
        self._dropped.pop(member.member_id, None)
        self._kept[member.member_id] = member

    def drop(self, member_id: str) -> None:
        self._kept.pop(member_id, None)
        self._dropped[member_id] = None

    def time_out_revocation(self, member_id: str) -> None:
        self.drop(member_id)
        self._revocation_timeouts += 1

    def members(self) -> list[ConsumerMember]:
        """All as they will be."""
        merged = self._state.members | self._kept
        return [member for member_id, member in merged.items() if member_id not in self._dropped]

    def look_again(self, is_due: bool, reason: str) -> None:
        """Begin a new epoch if `is_due`, or if the topics that members mean have changed."""
        members, group = self.members(), self._group
        used = self._subscriptions.used(members)
        if is_due or used != group.topics:
            empty_since_ms = 0 if members else group.empty_since_ms or self._now_ms
            self._group = msgspec.structs.replace(
                group, epoch=group.epoch + 1, topics=used, empty_since_ms=empty_since_ms
            )
            self._reason = reason

    def wanted_assignor(self) -> str:
        """The one that most members ask for; of equals, the first by name."""
        votes = Counter(member.server_assignor for member in self.members())
        asked = [(-count, name) for name, count in votes.items() if name is not None]
        return min(asked)[1] if asked else self._options.default_assignor

    def assign(self) -> None:
        """Make targets for the present epoch, unless there are."""
        if self._group.target_epoch == self._group.epoch:
            return
        assignor = self.wanted_assignor()
        self._group = msgspec.structs.replace(self._group, target_epoch=self._group.epoch, assignor=assignor)
        topics = self._group.topics
        # Static members keep their place in the order when they come back under another id.
        ordered = sorted(self.members(), key=lambda each: (each.instance_id or each.member_id, each.member_id))
        before = {each.member_id: unpacked(each.target) for each in ordered}
        topic_ids: dict[frozenset[str], frozenset[bytes]] = {}
        subscribers = {}
        for member in ordered:
            names = self._subscriptions.names(member)
            if names not in topic_ids:
                topic_ids[names] = frozenset(topics[name][0] for name in names)
            subscribers[member.member_id] = Subscriber(topic_ids[names], before[member.member_id])
        targets = ASSIGNORS[assignor](subscribers, dict(topics.values()))
        for member in ordered:
            had, gets = before[member.member_id], targets[member.member_id]
            moved = len(gets) - len(had.intersection(gets))
            if moved or len(gets) != len(had):
                self.put(changed(member, target=packed(gets)))
                self._moved += moved

    def is_free_for(self, member_id: str, partition: tuple[bytes, int]) -> bool:
        return self._state.owners.get(partition, member_id) == member_id

    def facts(self) -> list[Fact]:
        group_id = self._state.group_id
        facts: list[Fact] = [] if self._group is self._state.group else [self._group]
        facts.extend(ConsumerMemberGone(group_id, each) for each in self._dropped if each in self._state.members)
        for member_id, member in self._kept.items():
            before = self._state.members.get(member_id)
            if member != before:
                facts.append(ConsumerMemberKept(group_id, member))
                if member.state is MemberState.UNREVOKED and (before is None or member.revoking != before.revoking):
                    self._revoked += len(unpacked(member.revoking))
                    facts.append(self.revocation_due(member))
        counts = (int(bool(self._reason)), self._moved, self._revocation_timeouts, self._revoked)
        if any(counts):
            facts.append(ConsumerGroupMeasured(group_id, self._now_ms, *counts, self._reason))
        return facts

    def revocation_due(self, member: ConsumerMember) -> ConsumerRevocationDue:
        due_ms = self._now_ms + member.rebalance_timeout_ms
        return ConsumerRevocationDue(self._state.group_id, member.member_id, due_ms)

    def heard(self, member_id: str) -> ConsumerHeard:
        session_ms = self.member(member_id).session_ms or self._options.session_ms
        due_ms = self._now_ms + session_ms
        return ConsumerHeard(self._state.group_id, member_id, self._now_ms, due_ms)
