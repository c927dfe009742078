"""What a share group knows, and how facts change it; what it decides is written elsewhere."""

from collections import OrderedDict
from collections.abc import Mapping

from goqueue.machines.groups.commands import KnownTopics
from goqueue.machines.groups.limits import member_bytes
from goqueue.machines.groups.share.facts import (
    ShareGroupChanged,
    ShareGroupOptions,
    ShareHeard,
    ShareMember,
    ShareMemberChanged,
    ShareMemberGone,
    ShareTimesSet,
    ShareTopicsKnown,
)
from goqueue.machines.machine import Fact
from goqueue.model.topics import Topic


class ShareGroupState:
    """Invariant: `unsettled` names the members that have not been told of what they shall have.
    Invariant: `heard` is in the order of its times, and has every member.
    """

    def __init__(self, group_id: str, options: ShareGroupOptions) -> None:
        self.group_id = group_id
        self.group = ShareGroupChanged(group_id)
        self.members: dict[str, ShareMember] = {}
        self.held_bytes = 0
        """Of all that members tell of themselves."""
        self.unsettled: set[str] = set()
        self.known = KnownTopics()
        self.heard: OrderedDict[str, int] = OrderedDict()
        self.session_ms = options.session_ms
        self.heartbeat_ms = options.heartbeat_ms

    @property
    def topics(self) -> Mapping[str, Topic] | None:
        return self.known.topics

    def apply(self, fact: Fact) -> None:
        match fact:
            case ShareHeard():
                self.heard[fact.member_id] = fact.at_ms
                self.heard.move_to_end(fact.member_id)
            case ShareMemberChanged():
                self._keep(fact.member)
            case ShareMemberGone():
                self._drop(fact.member_id)
            case ShareGroupChanged():
                self.group = fact
            case ShareTimesSet():
                self.session_ms, self.heartbeat_ms = fact.session_ms, fact.heartbeat_ms
            case ShareTopicsKnown():
                self.known.topics = fact.topics
            case _:
                raise TypeError(f"{type(fact).__name__} says nothing about a share group")

    def _keep(self, member: ShareMember) -> None:
        before = self.members.get(member.member_id)
        self.held_bytes += bytes_of(member) - (0 if before is None else bytes_of(before))
        self.members[member.member_id] = member
        if member.assigned == member.target:
            self.unsettled.discard(member.member_id)
        else:
            self.unsettled.add(member.member_id)

    def _drop(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self.held_bytes -= 0 if member is None else bytes_of(member)
        self.heard.pop(member_id, None)
        self.unsettled.discard(member_id)

    def name(self) -> str:
        """As Kafka calls the state of such a group."""
        if not self.group.epoch:
            return "Dead"
        return "Stable" if self.members else "Empty"


def bytes_of(member: ShareMember) -> int:
    return member_bytes(member, (), member.topic_names)
