"""KIP-848 groups among all groups: the consumer group machine, as `Groups` wants to see one."""

from typing import Any

from goqueue.machines.groups.commands import (
    CONSUMER,
    CommitOffsets,
    CommitTransactionOffsets,
    FetchOffsets,
    ListedGroup,
    TopicsChanged,
)
from goqueue.machines.groups.consumer.facts import (
    CONSUMER_MEMBER,
    JOIN_EPOCH,
    ConsumerGroupDescription,
    ConsumerGroupGone,
    ConsumerGroupKept,
    ConsumerGroupMeasured,
    ConsumerGroupOptions,
    ConsumerHeard,
    ConsumerHeartbeat,
    ConsumerMemberGone,
    ConsumerMemberKept,
    ConsumerRevocationDue,
    ConsumerTopicsKnown,
    DescribeConsumerGroup,
    FindConsumerMember,
    FoundConsumerMember,
    refusal,
)
from goqueue.machines.groups.consumer.group import DEFAULT_OPTIONS, ConsumerGroup
from goqueue.machines.groups.consumer.state import bytes_of
from goqueue.machines.groups.kinds import GroupKind
from goqueue.machines.machine import Fact
from goqueue.model.codes import Code

PROTOCOL_TYPE = "consumer"


class ListedConsumerGroup(ConsumerGroup):
    """One group, with what only the machine of all groups asks."""

    kind = CONSUMER

    @property
    def group_id(self) -> str:
        return self._state.group_id

    def admit_commit(
        self,
        command: CommitOffsets | CommitTransactionOffsets,
        now_ms: int,  # noqa: ARG002  a member of this kind shows that it lives by heartbeats alone
    ) -> tuple[Code, list[Fact]]:
        return self.check_commit(command.member_id, command.generation), []

    def fetch_refusal(self, command: FetchOffsets) -> Code:
        """Who does not claim to be a member may look."""
        if command.member_id is None or command.member_epoch < JOIN_EPOCH:
            return Code.NONE
        return self.check_commit(command.member_id, command.member_epoch)

    def empty_since_ms(self) -> int | None:
        if not self.is_empty:
            return None
        return self._state.group.empty_since_ms if self._state.group is not None else 0

    def keeps_progress(self) -> bool:
        return self._state.group is not None and self._state.group.has_leases

    def deadline_set_ms(self, fact: Any) -> int | None:
        return fact.session_due_ms if isinstance(fact, ConsumerHeard) else self.next_deadline_ms()

    def held_bytes(self) -> int:
        return self._state.held_bytes

    def replaced_bytes(self, command: Any) -> int:
        member = self._state.members.get(command.member_id)
        return 0 if member is None else bytes_of(member)

    def listed(self) -> ListedGroup:
        epoch = 0 if self._state.group is None else self._state.group.epoch
        return ListedGroup(
            self.group_id, PROTOCOL_TYPE, self.state_name, CONSUMER, members=len(self._state.members), generation=epoch
        )

    def retire(self) -> list[Fact]:
        members: list[Fact] = [ConsumerMemberGone(self.group_id, one.member_id) for one in self.describe().members]
        return [*members, ConsumerGroupGone(self.group_id)]


def consumer_kind(options: ConsumerGroupOptions = DEFAULT_OPTIONS) -> GroupKind:
    return GroupKind(
        name=CONSUMER,
        make=lambda group_id: ListedConsumerGroup(group_id, options),
        commands=(ConsumerHeartbeat, DescribeConsumerGroup, FindConsumerMember),
        facts=(
            ConsumerGroupKept,
            ConsumerMemberKept,
            ConsumerHeard,
            ConsumerRevocationDue,
            ConsumerTopicsKnown,
            ConsumerGroupMeasured,
        ),
        opens=lambda command: isinstance(command, ConsumerHeartbeat) and command.member_epoch == JOIN_EPOCH,
        refuse=_refuse,
        refuse_foreign=lambda command: _refuse(command, Code.GROUP_ID_NOT_FOUND),
        part_names=(CONSUMER_MEMBER,),
        announcements=(TopicsChanged,),
        topics_in=_topics_in,
    )


def _topics_in(fact: Any) -> tuple[str, ...] | None:
    if not isinstance(fact, ConsumerMemberKept):
        return ()
    return None if fact.member.topic_regex is not None else fact.member.topic_names


def _refuse(command: Any, code: Code) -> Any:
    if isinstance(command, ConsumerHeartbeat):
        return refusal(code, code.name.lower().replace("_", " "))
    if isinstance(command, FindConsumerMember):
        return FoundConsumerMember(code, f"there is no consumer group {command.group_id!r}")
    return ConsumerGroupDescription(command.group_id, "Dead", 0, 0, "", ())
