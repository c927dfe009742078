"""One share group of KIP-932: heartbeats in, assignments out. Partitions are shared, so a rebalance makes nobody wait:
there is nothing to give up before another may have it.
"""

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

import msgspec

from goqueue.machines.groups.assignors import Subscriber
from goqueue.machines.groups.commands import MEMBER_BYTES_MAX, KnownTopics, TopicsChanged
from goqueue.machines.groups.consumer.facts import JOIN_EPOCH, LEAVE_EPOCH, packed, unpacked
from goqueue.machines.groups.share.assignor import SHARED, assign_shared
from goqueue.machines.groups.share.facts import (
    DescribeShareGroup,
    ShareGroupDescription,
    ShareGroupOptions,
    ShareHeard,
    ShareHeartbeat,
    ShareHeartbeatReply,
    ShareMember,
    ShareMemberChanged,
    ShareMemberGone,
    ShareTimesSet,
    ShareTopicsKnown,
    changed,
    refusal,
)
from goqueue.machines.groups.share.state import ShareGroupState
from goqueue.machines.machine import Fact, Outcome, Tick
from goqueue.model.codes import Code
from goqueue.model.tenancy import are_of_one_tenant
from goqueue.model.topics import Topic

DEFAULT_OPTIONS = ShareGroupOptions()


class ShareGroup:
    """Invariant: `_state` changes in `apply` only."""

    def __init__(self, group_id: str, options: ShareGroupOptions = DEFAULT_OPTIONS) -> None:
        self._options = options
        self._state = ShareGroupState(group_id, options)

    def decide(self, command: Any, ticket: int, now_ms: int) -> Outcome:
        match command:
            case ShareHeartbeat():
                facts, reply = self._heartbeat(command, now_ms)
                return Outcome(facts, [(ticket, reply)])
            case TopicsChanged():
                return Outcome(self._change_topics(command.topics), [])
            case Tick():
                return Outcome(self._pass_sessions(now_ms), [])
            case DescribeShareGroup():
                return Outcome([], [(ticket, self.describe())])
            case _:
                raise TypeError(f"{type(command).__name__} is no command for a share group")

    def know(self, known: KnownTopics) -> None:
        """Read the topics there, as all groups do."""
        self._state.known = known

    def apply(self, fact: Fact) -> None:
        self._state.apply(fact)

    def forget(self, key: bytes) -> None:
        raise TypeError(f"{key!r}: no part of a share group is stored")

    def facts(self) -> Iterator[Fact]:
        return iter(())

    def next_deadline_ms(self) -> int | None:
        heard_first_ms = next(iter(self._state.heard.values()), None)
        return None if heard_first_ms is None else heard_first_ms + self._state.session_ms

    # -- what others ask

    @property
    def state_name(self) -> str:
        return self._state.name()

    @property
    def is_empty(self) -> bool:
        return not self._state.members

    def subscribed_topics(self) -> frozenset[str]:
        return frozenset(name for member in self._state.members.values() for name in member.topic_names)

    def describe(self) -> ShareGroupDescription:
        group = self._state.group
        return ShareGroupDescription(
            group_id=group.group_id,
            state=self._state.name(),
            epoch=group.epoch,
            target_epoch=group.target_epoch,
            assignor=SHARED,
            members=tuple(sorted(self._state.members.values(), key=lambda member: member.member_id)),
        )

    # -- decisions

    def _heartbeat(self, command: ShareHeartbeat, now_ms: int) -> tuple[list[Fact], ShareHeartbeatReply]:
        refused = self._malformed(command) or self._misplaced(command)
        if refused is not None:
            return [], refused
        state = self._state
        if command.member_epoch == LEAVE_EPOCH:
            draft = _Draft(state, state.topics or {})
            draft.drop(command.member_id)
            draft.look_again(is_due=True)
            return draft.facts(), ShareHeartbeatReply(member_id=command.member_id, member_epoch=LEAVE_EPOCH)
        known = state.members.get(command.member_id)
        before = known or ShareMember(command.member_id)
        draft = _Draft(state, state.topics or {})
        draft.put(_told(before, command))
        draft.look_again(is_due=known is None or draft.member(command.member_id).topic_names != before.topic_names)
        draft.assign()
        member = draft.settle(command.member_id)
        is_join_or_full = command.member_epoch == JOIN_EPOCH or command.subscribed_topic_names is not None
        is_told = is_join_or_full or command.member_epoch != before.epoch or member.assigned != before.assigned
        others_wait = len(state.unsettled) > (member.member_id in state.unsettled)
        is_settling = others_wait or not member.assigned or member.assigned != before.assigned
        times = self._times(command)
        heartbeat_ms = times[0].heartbeat_ms if times else state.heartbeat_ms
        reply = ShareHeartbeatReply(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=min(heartbeat_ms, self._options.settling_heartbeat_ms)
            if is_settling
            else heartbeat_ms,
            assignment=member.assigned if is_told else None,
        )
        return [*times, *draft.facts(), ShareHeard(state.group_id, member.member_id, now_ms)], reply

    def _times(self, command: ShareHeartbeat) -> list[ShareTimesSet]:
        """The group's options hold for all of its members, and last as long as they are told."""
        session_ms = self._options.session_ms if command.session_ms is None else command.session_ms
        heartbeat_ms = self._options.heartbeat_ms if command.heartbeat_ms is None else command.heartbeat_ms
        heartbeat_ms = min(heartbeat_ms, session_ms // 3)  # two may be late
        if (session_ms, heartbeat_ms) == (self._state.session_ms, self._state.heartbeat_ms):
            return []
        return [ShareTimesSet(self._state.group_id, session_ms, heartbeat_ms)]

    def _change_topics(self, topics: Mapping[str, Topic]) -> list[Fact]:
        """Only begins the epoch; targets are made with the next heartbeat, not for all groups at once."""
        draft = _Draft(self._state, topics)
        if self._state.group.epoch:
            draft.look_again(is_due=False)
        return [ShareTopicsKnown(self._state.group_id, topics), *draft.facts()]

    def _pass_sessions(self, now_ms: int) -> list[Fact]:
        draft = _Draft(self._state, self._state.topics or {})
        end_ms = now_ms - self._state.session_ms
        silent = [member_id for member_id, _ in takewhile(lambda each: each[1] <= end_ms, self._state.heard.items())]
        for member_id in silent:
            draft.drop(member_id)
        if silent:
            draft.look_again(is_due=True)
        return draft.facts()

    # -- refusals

    def _malformed(self, command: ShareHeartbeat) -> ShareHeartbeatReply | None:
        names = command.subscribed_topic_names
        rules = {
            "the id of a member is empty": not command.member_id,
            "a rack is empty": command.rack_id == "",
            "there is no such member epoch": command.member_epoch < LEAVE_EPOCH,
            "who joins names topics": command.member_epoch == JOIN_EPOCH and not names,
            "too many topics": names is not None and len(names) > self._options.topics_max,
            "the names of topics are too long": sum(map(len, names or ())) > MEMBER_BYTES_MAX,
        }
        problem = next((problem for problem, is_broken in rules.items() if is_broken), None)
        return None if problem is None else refusal(Code.INVALID_REQUEST, problem)

    def _misplaced(self, command: ShareHeartbeat) -> ShareHeartbeatReply | None:
        state, said = self._state, command.member_epoch
        if state.topics is None:
            return refusal(Code.COORDINATOR_LOAD_IN_PROGRESS, "the topics are not known yet")
        member = state.members.get(command.member_id)
        if member is None:
            if said != JOIN_EPOCH:
                return refusal(
                    Code.UNKNOWN_MEMBER_ID, f"{command.member_id!r} is not a member of group {state.group_id!r}"
                )
            size_max = self._options.size_of(state.group_id)
            if len(state.members) >= size_max:
                return refusal(Code.GROUP_MAX_SIZE_REACHED, f"the group may have {size_max} members, and has as many")
        elif said not in (JOIN_EPOCH, LEAVE_EPOCH, member.epoch, member.previous_epoch):
            return refusal(Code.FENCED_MEMBER_EPOCH, f"epoch {said} is not {member.epoch}: join again")
        return None


def _told(member: ShareMember, command: ShareHeartbeat) -> ShareMember:
    """The member with what it says about itself."""
    fields: dict[str, Any] = {"client_id": command.client_id, "client_host": command.client_host}
    if command.rack_id is not None:
        fields["rack_id"] = command.rack_id
    if command.subscribed_topic_names is not None:
        fields["topic_names"] = tuple(sorted(set(command.subscribed_topic_names)))
    return changed(member, **fields)


class _Draft:
    """A decision in the making: changes lie over the group's state, which only `apply` may touch, and end as facts.

    Invariant: `_kept` and `_dropped` are what changes in the members, and are disjoint.
    """

    def __init__(self, state: ShareGroupState, topics: Mapping[str, Topic]) -> None:
        self._state = state
        self._topics = topics
        self._group = state.group
        self._kept: dict[str, ShareMember] = {}
        self._dropped: dict[str, None] = {}

    def member(self, member_id: str) -> ShareMember:
        return self._kept.get(member_id) or self._state.members[member_id]

    def put(self, member: ShareMember) -> None:
        self._kept[member.member_id] = member

    def drop(self, member_id: str) -> None:
        self._dropped[member_id] = None

    def members(self) -> list[ShareMember]:
        merged = self._state.members | self._kept
        return [member for member_id, member in merged.items() if member_id not in self._dropped]

    def look_again(self, is_due: bool) -> None:
        """Begin a new epoch if `is_due`, or if the topics that members mean have changed."""
        if not is_due and self._topics is self._state.topics:
            return
        said = {name for member in self.members() for name in member.topic_names}
        names = {name for name in said if are_of_one_tenant(self._state.group_id, name)}
        used = {
            name: (self._topics[name].id, self._topics[name].partitions) for name in sorted(names & self._topics.keys())
        }
        if is_due or used != self._group.topics:
            self._group = msgspec.structs.replace(self._group, epoch=self._group.epoch + 1, topics=used)

    def assign(self) -> None:
        """Make targets for the present epoch, unless there are."""
        if self._group.target_epoch == self._group.epoch:
            return
        self._group = msgspec.structs.replace(self._group, target_epoch=self._group.epoch)
        topics = self._group.topics
        ordered = sorted(self.members(), key=lambda each: each.member_id)
        topic_ids = {
            names: frozenset(topics[name][0] for name in names if name in topics)
            for names in {each.topic_names for each in ordered}
        }
        subscribers = {
            each.member_id: Subscriber(topic_ids[each.topic_names], unpacked(each.target)) for each in ordered
        }
        targets = assign_shared(subscribers, dict(topics.values()))
        for member in ordered:
            target = packed(targets[member.member_id])
            if target != member.target:
                self.put(changed(member, target=target))

    def settle(self, member_id: str) -> ShareMember:
        """The member that speaks is told what it shall have."""
        member, epoch = self.member(member_id), self._group.target_epoch
        if member.epoch != epoch:
            member = changed(member, epoch=epoch, previous_epoch=member.epoch)
        if member.assigned != member.target:
            member = changed(member, assigned=member.target)
        self.put(member)
        return member

    def facts(self) -> list[Fact]:
        group_id = self._state.group_id
        facts: list[Fact] = [] if self._group is self._state.group else [self._group]
        facts.extend(ShareMemberGone(group_id, each) for each in self._dropped if each in self._state.members)
        facts.extend(
            ShareMemberChanged(group_id, member)
            for member_id, member in self._kept.items()
            if member != self._state.members.get(member_id)
        )
        return facts
