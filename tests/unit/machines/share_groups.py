"""A share group on nothing but memory, and members that speak with it, over virtual time."""

from collections.abc import Mapping
from typing import Any

from goqueue.machines.groups.commands import TopicsChanged
from goqueue.machines.groups.consumer.facts import unpacked
from goqueue.machines.groups.share.facts import (
    ShareGroupOptions,
    ShareHeartbeat,
    ShareHeartbeatReply,
    ShareMember,
)
from goqueue.machines.groups.share.group import ShareGroup
from goqueue.machines.machine import Fact, Tick
from goqueue.model.codes import Code
from goqueue.model.topics import Topic

Partition = tuple[bytes, int]
OPTIONS = ShareGroupOptions(session_ms=45_000, heartbeat_ms=3_000, settling_heartbeat_ms=500, size_max=20)


class Host:
    """What a coordinator does: decide, apply, answer."""

    def __init__(self, known: Mapping[str, Topic], options: ShareGroupOptions = OPTIONS) -> None:
        self.topics = dict(known)
        self.now_ms = 1_000_000
        self.facts: list[Fact] = []
        """Of the last command."""
        self.group = ShareGroup("g", options)
        self.tell(TopicsChanged(self.topics))

    def tell(self, command: Any) -> Any:
        before = contents(self.group)
        outcome = self.group.decide(command, 7, self.now_ms)
        assert contents(self.group) == before, "decide has changed something"
        self.facts = outcome.facts
        for fact in outcome.facts:
            assert not fact.durable
            self.group.apply(fact)
        assert all(ticket == 7 for ticket, _ in outcome.replies)
        return outcome.replies[0][1] if outcome.replies else None

    def advance(self, by_ms: int) -> None:
        """Let time pass, with a tick at every deadline on the way."""
        end_ms = self.now_ms + by_ms
        while (due_ms := self.group.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.tell(Tick())
        self.now_ms = end_ms

    def change_topics(self, known: Mapping[str, Topic]) -> None:
        self.topics = dict(known)
        self.tell(TopicsChanged(self.topics))

    @property
    def members(self) -> dict[str, ShareMember]:
        return {member.member_id: member for member in self.group.describe().members}


def contents(group: ShareGroup) -> dict[str, Any]:
    """All that a group knows, copied."""
    return {name: value.copy() if hasattr(value, "copy") else value for name, value in vars(group._state).items()}


class Reader:
    """Does what Kafka's clients do: says only what has changed, or all after an error."""

    def __init__(self, host: Host, member_id: str, *names: str) -> None:
        self.host = host
        self.member_id = member_id
        self.names = names
        self.epoch = 0
        self.reads: set[Partition] = set()
        self.has_doubts = True

    def command(self, epoch: int | None = None, **fields: Any) -> ShareHeartbeat:
        return ShareHeartbeat(
            group_id="g",
            member_id=self.member_id,
            member_epoch=self.epoch if epoch is None else epoch,
            subscribed_topic_names=self.names if self.has_doubts else None,
            client_id="client",
            client_host="/127.0.0.1",
            **fields,
        )

    def beat(self, loses_reply: bool = False, **fields: Any) -> ShareHeartbeatReply:
        reply: ShareHeartbeatReply = self.host.tell(self.command(**fields))
        if loses_reply:
            self.has_doubts = True
        elif reply.code in (Code.FENCED_MEMBER_EPOCH, Code.UNKNOWN_MEMBER_ID):
            self.epoch, self.has_doubts, self.reads = 0, True, set()
        elif reply.code is Code.NONE:
            self.epoch, self.has_doubts = reply.member_epoch, False
            if reply.assignment is not None:
                self.reads = unpacked(reply.assignment)
        return reply

    def leave(self) -> ShareHeartbeatReply:
        reply: ShareHeartbeatReply = self.host.tell(self.command(-1))
        self.epoch, self.has_doubts, self.reads = 0, True, set()
        return reply
