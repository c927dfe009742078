"""One consumer group of KIP-848: heartbeats in, assignments out. Nobody stops while others change: members hear only
what concerns them, and each goes its own way to the group's target.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from goqueue.machines.groups.commands import (
    CodeReply,
    Heartbeat,
    JoinGroup,
    JoinReply,
    KnownTopics,
    LeaveGroup,
    LeaveReply,
    SyncGroup,
    SyncReply,
    TopicsChanged,
)
from goqueue.machines.groups.consumer import classic_members as classic
from goqueue.machines.groups.consumer.draft import Draft
from goqueue.machines.groups.consumer.facts import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    RELEASE_EPOCH,
    UNCHANGED,
    ConsumerGroupCounts,
    ConsumerGroupDescription,
    ConsumerGroupKept,
    ConsumerGroupOptions,
    ConsumerHeartbeat,
    ConsumerHeartbeatReply,
    ConsumerMember,
    ConsumerTopicsKnown,
    DescribeConsumerGroup,
    FindConsumerMember,
    FoundConsumerMember,
    MemberState,
    changed,
    unpacked,
)
from goqueue.machines.groups.consumer.reconcile import reconciled
from goqueue.machines.groups.consumer.refusals import malformed, misplaced
from goqueue.machines.groups.consumer.state import ConsumerGroupState
from goqueue.machines.groups.consumer.subscriptions import Subscriptions
from goqueue.machines.machine import Fact, Outcome, Tick
from goqueue.model.codes import Code
from goqueue.model.topics import Topic

OVERDUE = 0
JOINED, LEFT, SILENT, SLOW = "joined", "left", "silent", "slow to revoke"
SUBSCRIPTION, ASSIGNOR, TOPICS = "subscription changed", "assignor changed", "topics changed"
DEFAULT_OPTIONS = ConsumerGroupOptions()


class ConsumerGroup:
    """Invariant: `_state` changes in `apply` and `forget` only."""

    def __init__(self, group_id: str, options: ConsumerGroupOptions = DEFAULT_OPTIONS) -> None:
        self._options = options
        self._state = ConsumerGroupState(group_id)

    def decide(self, command: Any, ticket: int, now_ms: int) -> Outcome:
        match command:
            case ConsumerHeartbeat():
                facts, reply = self._heartbeat(command, now_ms)
                return Outcome(facts, [(ticket, reply)])
            case JoinGroup() | SyncGroup() | Heartbeat() | LeaveGroup():
                return self._decide_classic(command, ticket, now_ms)
            case TopicsChanged():
                return Outcome(self._change_topics(command.topics, now_ms), [])
            case Tick():
                return Outcome(self._pass_deadlines(now_ms), [])
            case DescribeConsumerGroup():
                return Outcome([], [(ticket, self.describe())])
            case FindConsumerMember():
                return Outcome([], [(ticket, self._find(command))])
            case _:
                raise TypeError(f"{type(command).__name__} is no command for a consumer group")

    def know(self, known: KnownTopics) -> None:
        """Read the topics there, as all groups do."""
        self._state.known = known

    def apply(self, fact: Fact) -> None:
        self._state.apply(fact)

    def forget(self, key: bytes) -> None:
        self._state.forget(key)

    def facts(self) -> Iterator[Fact]:
        return self._state.facts()

    def next_deadline_ms(self) -> int | None:
        if len(self._state.sessions) < len(self._state.members):
            return OVERDUE  # after a restart: clocks start with the first tick
        dues = list(self._state.revocation_dues.values())
        session_due_ms = self._state.sessions.earliest_ms()
        return min(dues if session_due_ms is None else [*dues, session_due_ms], default=None)

    # -- what others ask

    @property
    def state(self) -> ConsumerGroupState:
        """To be read only."""
        return self._state

    @property
    def state_name(self) -> str:
        return self._state.name()

    @property
    def counts(self) -> ConsumerGroupCounts:
        return self._state.counts

    @property
    def is_empty(self) -> bool:
        return not self._state.members

    def subscribed_topics(self) -> frozenset[str]:
        """Named by a member, or found by its expression."""
        named = {name for member in self._state.members.values() for name in member.topic_names}
        return frozenset(named.union(self._state.group.topics if self._state.group is not None else ()))

    def check_commit(self, member_id: str, member_epoch: int) -> Code:
        """Whether this member may commit offsets now. Without members anybody may who does not claim to be one."""
        if member_epoch < JOIN_EPOCH and self.is_empty:
            return Code.NONE
        member = self._state.members.get(member_id)
        if member is None:
            return Code.UNKNOWN_MEMBER_ID
        if member_epoch == member.epoch:
            return Code.NONE
        return Code.ILLEGAL_GENERATION if member.classic_protocols else Code.STALE_MEMBER_EPOCH

    def describe(self) -> ConsumerGroupDescription:
        group = self._state.group or ConsumerGroupKept(self._state.group_id)
        return ConsumerGroupDescription(
            group_id=group.group_id,
            state=self._state.name(),
            epoch=group.epoch,
            target_epoch=group.target_epoch,
            assignor=group.assignor,
            members=tuple(sorted(self._state.members.values(), key=lambda member: member.member_id)),
            created_at_ms=group.created_at_ms,
            heard_ms={member_id: self._state.sessions.heard_ms(member_id) for member_id in self._state.members},
            counts=self._state.counts,
        )

    def _find(self, command: FindConsumerMember) -> FoundConsumerMember:
        state = self._state
        member = state.members.get(command.member_id)
        if state.group is None or member is None:
            code = Code.UNKNOWN_MEMBER_ID if state.members else Code.GROUP_ID_NOT_FOUND
            return FoundConsumerMember(code, f"{command.member_id!r} is not a member of group {state.group_id!r}")
        return FoundConsumerMember(
            member=member,
            is_stable=not state.unsettled and state.has_current_targets and member.epoch == state.group.epoch,
            session_ms=member.session_ms or self._options.session_ms,
            revocation_due_ms=state.revocation_dues.get(member.member_id),
        )

    # -- decisions

    def _draft(self, now_ms: int, topics: Mapping[str, Topic] | None = None) -> Draft:
        known = topics if topics is not None else self._state.topics
        return Draft(self._state, self._options, Subscriptions(self._state.group_id, known or {}), now_ms)

    def _heartbeat(self, command: ConsumerHeartbeat, now_ms: int) -> tuple[list[Fact], ConsumerHeartbeatReply]:
        refused = malformed(command, self._options) or misplaced(command, self._state, self._options)
        if refused is not None:
            return [], refused
        if command.member_epoch < JOIN_EPOCH:
            return self._leave(command, now_ms)
        return self._serve(command, now_ms)

    def _serve(self, command: ConsumerHeartbeat, now_ms: int) -> tuple[list[Fact], ConsumerHeartbeatReply]:
        """A heartbeat that there is nothing to say against."""
        is_join = command.member_epoch == JOIN_EPOCH
        draft = self._draft(now_ms)
        before = self._predecessor(command)
        if before is not None and before.member_id != command.member_id:
            draft.drop(before.member_id)
        known = changed(before or ConsumerMember(command.member_id, joined_at_ms=now_ms), member_id=command.member_id)
        draft.put(_told(known, command))
        if command.has_leases:
            draft.note_leases()
        self._begin_epoch_if_due(draft, before, command)
        draft.assign()
        member = reconciled(
            draft.member(command.member_id),
            draft.group.target_epoch,
            owned=None if command.owned is None else unpacked(command.owned),
            is_belated=not is_join and command.member_epoch != known.epoch,
            is_free=lambda partition: draft.is_free_for(command.member_id, partition),
        )
        draft.put(member)
        missed_something = is_join or command.is_full or command.member_epoch != known.epoch
        is_told = missed_something or member.assigned != known.assigned
        reply = ConsumerHeartbeatReply(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._interval_ms(member, command.heartbeat_ms or self._options.heartbeat_ms),
            assignment=member.assigned if is_told else None,
            member=member,
        )
        return [*draft.facts(), draft.heard(member.member_id)], reply

    def _interval_ms(self, member: ConsumerMember, heartbeat_ms: int) -> int:
        """Members that have what they shall have are not hurried by others that have not."""
        options = self._options

        def affordable_ms(beating: int) -> int:
            return beating * 1000 // options.heartbeats_per_second_max

        calm_ms = max(heartbeat_ms, affordable_ms(len(self._state.members)))
        if member.is_settled:
            return calm_ms
        return min(calm_ms, max(options.settling_heartbeat_ms, affordable_ms(len(self._state.unsettled))))

    def _predecessor(self, command: ConsumerHeartbeat) -> ConsumerMember | None:
        """Whom this member continues: itself, or the one that released the same instance id."""
        holder = self._state.instances.get(command.instance_id) if command.instance_id is not None else None
        return self._state.members.get(holder if holder is not None else command.member_id)

    def _begin_epoch_if_due(self, draft: Draft, before: ConsumerMember | None, command: ConsumerHeartbeat) -> None:
        after = draft.member(command.member_id)
        subscription = (after.topic_names, after.topic_regex)
        if before is None or (before.topic_names, before.topic_regex) != subscription:
            draft.look_again(is_due=True, reason=JOINED if before is None else SUBSCRIPTION)
        elif before.member_id != after.member_id and after.member_id in self._state.members:
            draft.look_again(is_due=True, reason=JOINED)  # it takes another's place, and its own falls vacant
        elif before.server_assignor != after.server_assignor:
            draft.look_again(is_due=draft.wanted_assignor() != draft.group.assignor, reason=ASSIGNOR)

    def _leave(self, command: ConsumerHeartbeat, now_ms: int) -> tuple[list[Fact], ConsumerHeartbeatReply]:
        draft = self._draft(now_ms)
        if command.member_epoch == LEAVE_EPOCH:
            draft.drop(command.member_id)
            draft.look_again(is_due=True, reason=LEFT)
        else:
            member = draft.member(command.member_id)
            draft.put(changed(member, epoch=RELEASE_EPOCH, state=MemberState.STABLE, revoking=()))
        reply = ConsumerHeartbeatReply(member_id=command.member_id, member_epoch=command.member_epoch)
        return draft.facts(), reply

    # -- members that speak the classic protocol

    def _decide_classic(
        self, command: JoinGroup | SyncGroup | Heartbeat | LeaveGroup, ticket: int, now_ms: int
    ) -> Outcome:
        match command:
            case JoinGroup():
                return self._join(command, ticket, now_ms)
            case LeaveGroup():
                return self._let_go(command, ticket, now_ms)
        return self._answer_classic(command, ticket, now_ms)

    def _join(self, command: JoinGroup, ticket: int, now_ms: int) -> Outcome:
        code = classic.join_refusal(self._state, self._options, command)
        if code is Code.NONE and not command.member_id and command.instance_id is None:
            code = Code.MEMBER_ID_REQUIRED if command.knows_member_id_required else Code.NONE
        if code is not Code.NONE:
            member_id = command.new_member_id if code is Code.MEMBER_ID_REQUIRED else command.member_id
            return Outcome([], [(ticket, JoinReply(code, member_id))])
        facts, reply = self._serve(classic.as_heartbeat(self._state, command), now_ms)
        assert reply.member is not None
        return Outcome(facts, [(ticket, classic.join_reply(reply.member))])

    def _answer_classic(self, command: SyncGroup | Heartbeat, ticket: int, now_ms: int) -> Outcome:
        member = classic.spoken(self._state, command)
        if not isinstance(member, ConsumerMember):
            refused = SyncReply(member) if isinstance(command, SyncGroup) else CodeReply(member)
            return Outcome([], [(ticket, refused)])
        draft = self._draft(now_ms)
        facts: list[Fact] = [draft.heard(member.member_id)]
        reply: SyncReply | CodeReply
        if isinstance(command, SyncGroup):
            reply = classic.sync_reply(self._state, member, command)
        else:
            is_over = classic.must_join_again(self._state, member)
            reply = CodeReply(Code.REBALANCE_IN_PROGRESS if is_over else Code.NONE)
        if reply.code is Code.REBALANCE_IN_PROGRESS and member.member_id not in self._state.revocation_dues:
            facts.append(draft.revocation_due(member))
        return Outcome(facts, [(ticket, reply)])

    def _let_go(self, command: LeaveGroup, ticket: int, now_ms: int) -> Outcome:
        draft = self._draft(now_ms)
        found = [classic.leaver(self._state, leaving) for leaving in command.members]
        gone = [member.member_id for member in found if isinstance(member, ConsumerMember)]
        for member_id in gone:
            draft.drop(member_id)
        if gone:
            draft.look_again(is_due=True, reason=LEFT)
        codes = tuple(Code.NONE if isinstance(each, ConsumerMember) else each for each in found)
        return Outcome(draft.facts() if gone else [], [(ticket, LeaveReply(Code.NONE, codes))])

    def _change_topics(self, topics: Mapping[str, Topic], now_ms: int) -> list[Fact]:
        """Only begins the epoch; targets are made with the next heartbeat, not for all groups at once."""
        facts: list[Fact] = [ConsumerTopicsKnown(self._state.group_id, topics)]
        if self._state.group is not None:
            draft = self._draft(now_ms, topics)
            draft.look_again(is_due=False, reason=TOPICS)
            facts += draft.facts()
        return facts

    def _pass_deadlines(self, now_ms: int) -> list[Fact]:
        draft = self._draft(now_ms)
        silent = self._state.sessions.silent(now_ms)
        for member_id in silent:
            draft.drop(member_id)
        slow = [member_id for member_id, due_ms in self._state.revocation_dues.items() if due_ms <= now_ms]
        for member_id in slow:
            draft.time_out_revocation(member_id)
        if silent or slow:
            draft.look_again(is_due=True, reason=SILENT if silent else SLOW)
        facts = draft.facts()
        if len(self._state.sessions) < len(self._state.members):
            for member_id, member in self._state.members.items():
                if member_id not in self._state.sessions:
                    facts.append(draft.heard(member_id))
                    if member.state is MemberState.UNREVOKED:
                        facts.append(draft.revocation_due(member))
        return facts


def _told(member: ConsumerMember, command: ConsumerHeartbeat) -> ConsumerMember:
    """The member with what it says about itself."""
    fields: dict[str, Any] = {"client_id": command.client_id, "client_host": command.client_host}
    for field in ("instance_id", "rack_id", "server_assignor", "is_cooperative"):
        if getattr(command, field) is not None:
            fields[field] = getattr(command, field)
    if command.rebalance_timeout_ms != UNCHANGED:
        fields["rebalance_timeout_ms"] = command.rebalance_timeout_ms
    if command.session_ms != UNCHANGED:
        fields["session_ms"] = command.session_ms
    if command.member_epoch == JOIN_EPOCH or command.classic_protocols is not None:
        fields["classic_protocols"] = command.classic_protocols or ()
        if member.classic_protocols and command.session_ms == UNCHANGED:
            fields["session_ms"] = 0  # its own was that of the classic protocol
    if command.subscribed_topic_names is not None:
        fields["topic_names"] = tuple(sorted(set(command.subscribed_topic_names)))
    if command.subscribed_topic_regex is not None:
        fields["topic_regex"] = command.subscribed_topic_regex or None
    return changed(member, **fields)
