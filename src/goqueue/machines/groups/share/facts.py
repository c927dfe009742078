"""What a share group (KIP-932) can be told, what it answers and what it remembers.

Nothing of it is stored: what members have done stands with the deliveries, and a member that is no longer known joins
again within a heartbeat.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from goqueue.machines.groups.commands import SHARE, GroupCommand, Sized, ledger_key
from goqueue.machines.groups.consumer.facts import JOIN_EPOCH, Assignment
from goqueue.machines.machine import Fact
from goqueue.model.codes import Code
from goqueue.model.topics import Topic


class ShareGroupOptions(Sized, frozen=True, kw_only=True):
    session_ms: int = 45_000
    heartbeat_ms: int = 3_000
    settling_heartbeat_ms: int = 500
    """While partitions change hands, and for members that have none yet: they hear soon of what they wait for."""
    topics_max: int = 10_000
    """That one member may name: all of them are kept."""


# -- commands


class ShareHeartbeat(GroupCommand["ShareHeartbeatReply"], frozen=True):
    """None stands for "as I said before"."""

    member_id: str
    member_epoch: int
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] | None = None
    client_id: str = ""
    client_host: str = ""
    session_ms: int | None = None
    """What this group's options say, if they do; so also the next."""
    heartbeat_ms: int | None = None


class DescribeShareGroup(GroupCommand["ShareGroupDescription"], frozen=True):
    pass


# -- replies


class ShareHeartbeatReply(msgspec.Struct, frozen=True):
    code: Code = Code.NONE
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
    """None: unchanged."""


class ShareMember(msgspec.Struct, frozen=True):
    """Partitions are shared, so nobody waits for one: what a member shall have it gets with its next heartbeat."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: tuple[str, ...] = ()
    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    """What a member says whose last answer was lost."""
    assigned: Assignment = ()
    """What it was told."""
    target: Assignment = ()


class ShareGroupDescription(msgspec.Struct, frozen=True):
    group_id: str
    state: str
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[ShareMember, ...]


# -- facts


class SoftFact(Fact, frozen=True):
    durable: ClassVar[bool] = False
    group_id: str


class ShareGroupChanged(SoftFact, frozen=True):
    epoch: int = 0
    target_epoch: int = 0
    """The epoch that the members' targets were made for. Behind `epoch`: new targets are due."""
    topics: dict[str, tuple[bytes, int]] = msgspec.field(default_factory=dict)
    """The topics that members subscribe to: id and number of partitions at this epoch."""


class ShareGroupGone(SoftFact, frozen=True):
    is_tombstone: ClassVar[bool] = True

    def key(self) -> bytes:
        return ledger_key(SHARE, self.group_id)


class ShareMemberChanged(SoftFact, frozen=True):
    member: ShareMember


class ShareMemberGone(SoftFact, frozen=True):
    member_id: str


class ShareHeard(SoftFact, frozen=True):
    """A member is alive."""

    member_id: str
    at_ms: int


class ShareTimesSet(SoftFact, frozen=True):
    session_ms: int
    heartbeat_ms: int


class ShareTopicsKnown(SoftFact, frozen=True):
    topics: Mapping[str, Topic]


def refusal(code: Code, message: str) -> ShareHeartbeatReply:
    return ShareHeartbeatReply(code=code, message=message)


def changed(member: ShareMember, **fields: Any) -> ShareMember:
    return msgspec.structs.replace(member, **fields)
