"""What groups may hold: ids of a length, and so many bytes in all groups together, so that nobody fills the memory with
members of many groups, each of which is small enough.
"""

from collections.abc import Iterable
from typing import Any, Protocol

from goqueue.machines.groups.commands import GroupProtocol, JoinGroup, SyncGroup
from goqueue.model.codes import Code
from goqueue.model.ids import GROUP_ID_CHARS_MAX, MEMBER_ID_CHARS_MAX

FLAT_BYTES = 256
"""Of a member, beside what it tells of itself."""


class Holder(Protocol):
    def held_bytes(self) -> int: ...

    def replaced_bytes(self, command: Any) -> int: ...


class GroupLimits:
    """Invariant: `_held` has every group that holds something, and `total` is the sum."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: dict[str, int] = {}
        self.total = 0

    def note(self, group_id: str, held_bytes: int) -> None:
        self.total += held_bytes - self._held.pop(group_id, 0)
        if held_bytes:
            self._held[group_id] = held_bytes

    def refusal(self, command: Any, group: Holder | None) -> Code:
        """Why a command to a group is not taken at all."""
        if not is_group_id(command.group_id):
            return Code.INVALID_GROUP_ID
        if any(
            len(getattr(command, name, None) or "") > MEMBER_ID_CHARS_MAX
            for name in ("member_id", "instance_id", "client_id")
        ):
            return Code.INVALID_REQUEST
        told = told_bytes(command)
        if not told or self.total + told <= self._bytes_max:
            return Code.NONE
        more = told - (0 if group is None else group.replaced_bytes(command))
        return Code.GROUP_MAX_SIZE_REACHED if more > 0 and self.total + more > self._bytes_max else Code.NONE


def is_group_id(group_id: str) -> bool:
    return bool(group_id) and not is_too_long(group_id)


def is_too_long(group_id: str) -> bool:
    return len(group_id) > GROUP_ID_CHARS_MAX


def told_bytes(command: Any) -> int:
    """What would be kept of a command; 0: nothing, as of a heartbeat that says nothing new."""
    if isinstance(command, JoinGroup):
        return member_bytes(command, command.protocols)
    if isinstance(command, SyncGroup):
        return sum(len(assignment) for _, assignment in command.assignments)
    names = getattr(command, "subscribed_topic_names", None)
    regex = getattr(command, "subscribed_topic_regex", None)
    if names is None and regex is None:
        return 0
    return member_bytes(command, getattr(command, "classic_protocols", None) or (), names or (), regex)


def member_bytes(
    member: Any, protocols: Iterable[GroupProtocol], topic_names: Iterable[str] = (), regex: str | None = None
) -> int:
    """Of a member, or of a command by which somebody becomes one."""
    ids = (member.member_id, getattr(member, "instance_id", None), member.client_id, member.client_host, regex)
    told = sum(len(each.name) + len(each.metadata) for each in protocols) + sum(map(len, topic_names))
    return FLAT_BYTES + told + sum(len(each) for each in ids if each)
