"""A consumer group on a ledger in memory, and consumers that speak with it, over virtual time."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import msgspec

from goqueue.machines.groups.commands import TopicsChanged
from goqueue.machines.groups.consumer.facts import (
    ConsumerGroupOptions,
    ConsumerHeartbeat,
    ConsumerHeartbeatReply,
    ConsumerMember,
    StoredConsumerFact,
    packed,
    unpacked,
)
from goqueue.machines.groups.consumer.group import ConsumerGroup
from goqueue.machines.groups.consumer.sessions import Sessions
from goqueue.machines.machine import Fact, Tick
from goqueue.model.codes import Code
from goqueue.model.topics import Topic

Partition = tuple[bytes, int]
OPTIONS = ConsumerGroupOptions(session_ms=30_000, heartbeat_ms=3_000, settling_heartbeat_ms=500)
REBALANCE_MS = 10_000


def topic_id(name: str, incarnation: int = 0) -> bytes:
    return f"{name}#{incarnation}".encode().ljust(16, b".")


def topics(**counts: int) -> dict[str, Topic]:
    return {name: Topic(name, topic_id(name), count) for name, count in counts.items()}


def all_of(known: Mapping[str, Topic], *names: str) -> set[Partition]:
    chosen = names or tuple(known)
    return {(known[name].id, number) for name in chosen for number in range(known[name].partitions)}


class Host:
    """What a coordinator does: decide, store, apply, answer. `ledger` is what compaction would leave."""

    def __init__(
        self, known: Mapping[str, Topic], group_id: str = "g", options: ConsumerGroupOptions = OPTIONS
    ) -> None:
        self.group_id = group_id
        self.options = options
        self.topics = dict(known)
        self.now_ms = 1_000_000
        self.history: list[tuple[bytes, bytes | None]] = []
        self.ledger: dict[bytes, bytes | None] = {}
        self.facts: list[Fact] = []
        """Of the last command."""
        self.group = ConsumerGroup(group_id, options)
        self.tell(TopicsChanged(self.topics))

    def tell(self, command: Any) -> Any:
        before = contents(self.group)
        outcome = self.group.decide(command, 7, self.now_ms)
        assert contents(self.group) == before, "decide has changed something"
        self.store(outcome.facts)
        assert all(ticket == 7 for ticket, _ in outcome.replies)
        return outcome.replies[0][1] if outcome.replies else None

    def store(self, facts: list[Fact]) -> None:
        self.facts = facts
        for fact in facts:
            if fact.durable:
                value = None if fact.is_tombstone else msgspec.msgpack.encode(fact)
                self.history.append((fact.key(), value))
                self.ledger.pop(fact.key(), None)
                self.ledger[fact.key()] = value
            self.group.apply(fact)

    def durable_facts(self) -> list[Fact]:
        return [fact for fact in self.facts if fact.durable]

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

    def replayed(self, compacted: bool) -> ConsumerGroup:
        group = ConsumerGroup(self.group_id, self.options)
        for key, value in list(self.ledger.items()) if compacted else self.history:
            if value is None:
                group.forget(key)
            else:
                group.apply(msgspec.msgpack.decode(value, type=StoredConsumerFact))
        return group

    def restart(self) -> None:
        self.group = self.replayed(compacted=True)
        self.tell(TopicsChanged(self.topics))

    @property
    def members(self) -> dict[str, ConsumerMember]:
        return {member.member_id: member for member in self.group.describe().members}

    def targets(self) -> dict[str, set[Partition]]:
        return {member_id: unpacked(member.target) for member_id, member in self.members.items()}


def contents(group: ConsumerGroup) -> dict[str, Any]:
    """All that a group knows, copied."""
    return {
        name: deepcopy(value) if isinstance(value, Sessions) else value.copy() if hasattr(value, "copy") else value
        for name, value in vars(group._state).items()
    }


class Consumer:
    """Does what Kafka's clients do: says only what has changed, or all after an error; gives up before it acks."""

    def __init__(
        self,
        host: Host,
        member_id: str,
        *names: str,
        regex: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = None,
    ) -> None:
        self.host = host
        self.member_id = member_id
        self.names = names
        self.regex = regex
        self.instance_id = instance_id
        self.assignor = assignor
        self.epoch = 0
        self.holds: set[Partition] = set()
        """What it was told to have and has not given up."""
        self.wanted: set[Partition] = set()
        """What it was told last."""
        self.has_doubts = True
        """The next heartbeat says everything."""
        self.reported: set[Partition] = set()

    def command(self, epoch: int | None = None) -> ConsumerHeartbeat:
        is_full = self.has_doubts
        return ConsumerHeartbeat(
            group_id=self.host.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch if epoch is None else epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=REBALANCE_MS if is_full else -1,
            subscribed_topic_names=self.names if is_full else None,
            subscribed_topic_regex=self.regex if is_full else None,
            server_assignor=self.assignor if is_full else None,
            owned=packed(self.holds) if is_full or self.holds != self.reported else None,
            client_id="client",
            client_host="/127.0.0.1",
        )

    def beat(self, loses_reply: bool = False) -> ConsumerHeartbeatReply:
        command = self.command()
        reply: ConsumerHeartbeatReply = self.host.tell(command)
        if loses_reply:
            self.has_doubts = True
            return reply
        if reply.code in (Code.FENCED_MEMBER_EPOCH, Code.UNKNOWN_MEMBER_ID):
            self.abandon()
            return reply
        if reply.code == Code.NONE:
            self.epoch = reply.member_epoch
            self.has_doubts = False
            if command.owned is not None:
                self.reported = unpacked(command.owned)
            if reply.assignment is not None:
                self.wanted = unpacked(reply.assignment)
                self.holds |= self.wanted
        return reply

    def give_up(self) -> None:
        self.holds &= self.wanted

    def cycle(self) -> ConsumerHeartbeatReply:
        """A heartbeat, what it asks for, and the ack that follows at once."""
        reply = self.beat()
        if reply.assignment is not None or self.holds != self.wanted:
            self.give_up()
            reply = self.beat()
        return reply

    def abandon(self) -> None:
        """What a fenced client does: it starts anew under its old id."""
        self.epoch, self.has_doubts = 0, True
        self.holds, self.wanted, self.reported = set(), set(), set()

    def leave(self, epoch: int = -1) -> ConsumerHeartbeatReply:
        reply: ConsumerHeartbeatReply = self.host.tell(self.command(epoch))
        self.abandon()
        return reply

    @property
    def member(self) -> ConsumerMember:
        return self.host.members[self.member_id]


def settle(host: Host, *consumers: Consumer, rounds: int = 8) -> None:
    """Heartbeats until nobody hears anything new."""
    for _ in range(rounds):
        host.advance(500)
        codes = {consumer.cycle().code for consumer in consumers}
        if host.group.state_name == "Stable" and codes == {Code.NONE}:
            return
    raise AssertionError(f"{host.group.state_name} after {rounds} rounds: {host.group.describe()}")
