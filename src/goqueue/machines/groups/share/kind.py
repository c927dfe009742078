"""Share groups among all groups: the share group machine, as `Groups` wants to see one."""

from typing import Any

from goqueue.machines.groups.commands import (
    SHARE,
    CommitOffsets,
    CommitTransactionOffsets,
    FetchOffsets,
    ListedGroup,
    TopicsChanged,
)
from goqueue.machines.groups.consumer.facts import JOIN_EPOCH
from goqueue.machines.groups.kinds import GroupKind
from goqueue.machines.groups.share.facts import (
    DescribeShareGroup,
    ShareGroupChanged,
    ShareGroupDescription,
    ShareGroupGone,
    ShareGroupOptions,
    ShareHeard,
    ShareHeartbeat,
    ShareMemberChanged,
    ShareMemberGone,
    ShareTimesSet,
    ShareTopicsKnown,
    refusal,
)
from goqueue.machines.groups.share.group import DEFAULT_OPTIONS, ShareGroup
from goqueue.machines.groups.share.state import bytes_of
from goqueue.machines.machine import Fact
from goqueue.model.codes import Code


class ListedShareGroup(ShareGroup):
    """One group, with what only the machine of all groups asks."""

    kind = SHARE

    @property
    def group_id(self) -> str:
        return self._state.group_id

    def admit_commit(
        self,
        command: CommitOffsets | CommitTransactionOffsets,  # noqa: ARG002  none may be committed
        now_ms: int,  # noqa: ARG002  likewise
    ) -> tuple[Code, list[Fact]]:
        """A share group has no offsets, with members or without."""
        return Code.GROUP_ID_NOT_FOUND, []

    def fetch_refusal(self, command: FetchOffsets) -> Code:  # noqa: ARG002  there is nothing to hide
        """Whoever looks for offsets finds none, as in Kafka."""
        return Code.NONE

    def empty_since_ms(self) -> int | None:
        """When is not kept: there are no offsets that would have to outlive it."""
        return 0 if self.is_empty else None

    def keeps_progress(self) -> bool:
        return False

    def deadline_set_ms(self, fact: Any) -> int | None:
        return fact.at_ms + self._state.session_ms if isinstance(fact, ShareHeard) else self.next_deadline_ms()

    def held_bytes(self) -> int:
        return self._state.held_bytes

    def replaced_bytes(self, command: Any) -> int:
        member = self._state.members.get(command.member_id)
        return 0 if member is None else bytes_of(member)

    def listed(self) -> ListedGroup:
        return ListedGroup(self.group_id, SHARE, self.state_name, SHARE, members=len(self._state.members))

    def retire(self) -> list[Fact]:
        return [ShareGroupGone(self.group_id)]


def share_kind(options: ShareGroupOptions = DEFAULT_OPTIONS) -> GroupKind:
    return GroupKind(
        name=SHARE,
        make=lambda group_id: ListedShareGroup(group_id, options),
        commands=(ShareHeartbeat, DescribeShareGroup),
        facts=(ShareGroupChanged, ShareMemberChanged, ShareMemberGone, ShareHeard, ShareTimesSet, ShareTopicsKnown),
        opens=lambda command: isinstance(command, ShareHeartbeat) and command.member_epoch == JOIN_EPOCH,
        refuse=_refuse,
        refuse_foreign=_refuse_foreign,
        announcements=(TopicsChanged,),
        topics_in=lambda fact: fact.member.topic_names if isinstance(fact, ShareMemberChanged) else (),
        is_exclusive=True,
    )


def _refuse(command: Any, code: Code) -> Any:
    if isinstance(command, ShareHeartbeat):
        return refusal(code, code.name.lower().replace("_", " "))
    return ShareGroupDescription(command.group_id, "Dead", 0, 0, "", ())


def _refuse_foreign(command: Any) -> Any:
    if isinstance(command, ShareHeartbeat):
        return refusal(Code.GROUP_ID_NOT_FOUND, f"group {command.group_id!r} is not a share group")
    return _refuse(command, Code.GROUP_ID_NOT_FOUND)
