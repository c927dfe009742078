"""Plays the coordinator of the groups: a ledger in memory, a clock that is told, decisions that only read."""

from collections import Counter
from copy import deepcopy
from typing import Any

import msgspec

from goqueue.machines.groups.classic.group import ClassicGroup
from goqueue.machines.groups.classic.state import ClassicGeneration
from goqueue.machines.groups.commands import (
    CommitOffsets,
    DescribedGroup,
    DescribeGroup,
    FetchedOffset,
    FetchOffsets,
    FetchOffsetsReply,
    GroupOptions,
    GroupProtocol,
    Heartbeat,
    JoinGroup,
    JoinReply,
    LeaveGroup,
    LeaveReply,
    LeavingMember,
    OffsetToCommit,
    SyncGroup,
    SyncReply,
)
from goqueue.machines.groups.consumer.facts import StoredConsumerFact
from goqueue.machines.groups.limits import member_bytes
from goqueue.machines.groups.machine import Groups
from goqueue.machines.groups.offsets import CoordinatorNoted, OffsetCommitted, OffsetPending
from goqueue.machines.machine import Fact, Tick
from goqueue.model.codes import Code

STORED = msgspec.msgpack.Decoder(
    ClassicGeneration | StoredConsumerFact | OffsetCommitted | OffsetPending | CoordinatorNoted
)
SESSION_MS = 10_000
REBALANCE_MS = 60_000


def subscription(*topics: str) -> bytes:
    """Consumer metadata, version 1, with an owned partition at the end that nobody needs to understand."""
    names = [name.encode() for name in topics]
    head = b"\x00\x01" + len(topics).to_bytes(4)
    return head + b"".join(len(name).to_bytes(2) + name for name in names) + b"\xff\xff\xff\xff\x00\x00\x00\x00"


RANGE = (GroupProtocol("range", subscription("orders")),)


def join(member_id: str = "", new_id: str = "", group_id: str = "g", **fields: Any) -> JoinGroup:
    defaults: dict[str, Any] = {
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": "consumer",
        "protocols": RANGE,
        "client_id": "app",
        "client_host": "/127.0.0.1",
    }
    return JoinGroup(group_id=group_id, member_id=member_id, new_member_id=new_id, **(defaults | fields))


def at(topic: str, partition: int, offset: int, **fields: Any) -> OffsetToCommit:
    return OffsetToCommit(topic, partition, offset, **fields)


def state_of(machine: Groups) -> Any:
    """All that a decision might have changed by mistake."""
    groups = {
        group_id: group._state if isinstance(group, ClassicGroup) else vars(getattr(group, "_state", group))
        for group_id, group in machine._groups.items()
    }
    offsets = {name: value for name, value in vars(machine._offsets).items() if name != "_options"}
    noted = (machine._deadlines._noted._due_ms, machine._next_expiry_ms, machine._known.topics)
    return deepcopy((groups, offsets, noted))


def members_of(group: Any) -> list[Any]:
    if isinstance(group, ClassicGroup):
        return [seat.member for seat in group._state.seats.values()]
    return list(group._state.members.values()) if hasattr(group, "_state") else []


def bytes_of(member: Any) -> int:
    protocols = getattr(member, "protocols", ()) or getattr(member, "classic_protocols", ())
    names, regex = getattr(member, "topic_names", ()), getattr(member, "topic_regex", None)
    return member_bytes(member, protocols, names, regex) + len(getattr(member, "assignment", b""))


def check_counts(machine: Groups) -> None:
    """What is counted along the way is what a count would give."""
    held = {name: group.held_bytes() for name, group in machine._groups.items() if group.held_bytes()}
    assert machine._limits._held == held
    assert machine._limits.total == sum(held.values())
    for group in machine._groups.values():
        assert group.held_bytes() == sum(map(bytes_of, members_of(group)))
        if isinstance(group, ClassicGroup):
            state = group._state
            assert state.joined == sum(seat.join_ticket is not None for seat in state.seats.values())
            offered = Counter(name for seat in state.seats.values() for name in seat.member.protocol_names())
            assert state.offers == offered
            assert type(state.seats) is dict, "a draft was kept"


class Driver:
    def __init__(self, options: GroupOptions | None = None, kinds: Any = ()) -> None:
        self.options = options or GroupOptions()
        self.kinds = kinds
        self.machine = Groups(self.options, kinds)
        self.now_ms = 1_000_000
        self.replies: dict[int, Any] = {}
        self.ledger: dict[bytes, bytes | None] = {}
        """As compaction leaves it: the latest value of each key, None for a tombstone, in the order of the latest."""
        self._tickets = 0

    # Speaking to the machine

    def send(self, command: Any) -> int:
        """Decide and apply; the ticket under which a reply is found, now or later."""
        self._tickets += 1
        self._decide(command, self._tickets)
        return self._tickets

    def ask(self, command: Any) -> Any:
        return self.replies[self.send(command)]

    def _decide(self, command: Any, ticket: int) -> None:
        before = state_of(self.machine)
        outcome = self.machine.decide(command, ticket, self.now_ms)
        assert state_of(self.machine) == before, f"deciding {command} changed the state"
        for fact in outcome.facts:
            self._store(fact)
            self.machine.apply(fact)
        check_counts(self.machine)
        for answered, reply in outcome.replies:
            assert answered not in self.replies, f"ticket {answered} is answered twice"
            assert 0 < answered <= self._tickets
            self.replies[answered] = reply

    def _store(self, fact: Fact) -> None:
        if not fact.durable:
            return
        key = fact.key()
        self.ledger.pop(key, None)
        self.ledger[key] = None if fact.is_tombstone else msgspec.msgpack.encode(fact)

    def advance(self, ms: int) -> None:
        """Let time pass as the coordinator does: a tick at every deadline on the way."""
        end_ms = self.now_ms + ms
        for _ in range(10_000):
            deadline_ms = self.machine.next_deadline_ms()
            if deadline_ms is None or deadline_ms > end_ms:
                self.now_ms = end_ms
                return
            self.now_ms = max(self.now_ms, deadline_ms)
            self._decide(Tick(), 0)
        raise AssertionError("deadlines that never pass")

    # After a crash

    def replayed(self) -> Groups:
        """A machine rebuilt from the ledger alone."""
        machine = Groups(self.options, self.kinds)
        for key, value in self.ledger.items():
            if value is None:
                machine.forget(key)
            else:
                machine.apply(STORED.decode(value))
        return machine

    def restart(self) -> None:
        self.machine = self.replayed()
        self.advance(0)

    # Short ways

    def join_new(self, member_id: str, **fields: Any) -> int:
        """Both steps of a first join."""
        told = self.ask(join(new_id=member_id, **fields))
        assert told.code is Code.MEMBER_ID_REQUIRED
        return self.send(join(told.member_id, **fields))

    def join_reply(self, ticket: int) -> JoinReply:
        reply = self.replies[ticket]
        assert isinstance(reply, JoinReply)
        return reply

    def sync(self, member_id: str, generation: int, group_id: str = "g", **assignments: bytes) -> int:
        return self.send(SyncGroup(group_id, generation, member_id, assignments=tuple(assignments.items())))

    def sync_reply(self, ticket: int) -> SyncReply:
        reply = self.replies[ticket]
        assert isinstance(reply, SyncReply)
        return reply

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> Code:
        code: Code = self.ask(Heartbeat("g", generation, member_id, instance_id)).code
        return code

    def leave(self, *members: LeavingMember) -> tuple[Code, ...]:
        reply = self.ask(LeaveGroup("g", members))
        assert isinstance(reply, LeaveReply)
        assert reply.code is Code.NONE
        return reply.codes

    def stable(self, *member_ids: str, group_id: str = "g") -> int:
        """Bring these members into one stable generation, each assigned its own id; the generation."""
        told = [self.send(join(new_id=each, group_id=group_id)) for each in member_ids]
        tickets = [self.send(join(self.replies[ticket].member_id, group_id=group_id)) for ticket in told]
        reply = self.join_reply(tickets[0])
        own = {member_id: member_id.encode() for member_id in member_ids}
        for member_id in member_ids:
            leads = member_id == reply.leader
            self.sync(member_id, reply.generation, group_id, **(own if leads else {}))
        assert self.describe(group_id).state == "Stable"
        return reply.generation

    def describe(self, group_id: str = "g") -> DescribedGroup:
        described = self.ask(DescribeGroup(group_id))
        assert isinstance(described, DescribedGroup)
        return described

    def commit(self, *offsets: OffsetToCommit, member_id: str = "", generation: int = -1, **fields: Any) -> list[Code]:
        command = CommitOffsets(
            fields.pop("group_id", "g"), offsets, generation=generation, member_id=member_id, **fields
        )
        return list(self.ask(command).codes)

    def fetch(self, group_id: str = "g", **fields: Any) -> dict[tuple[str, int], FetchedOffset]:
        reply = self.ask(FetchOffsets(group_id, fields.pop("partitions", None), **fields))
        assert isinstance(reply, FetchOffsetsReply)
        assert reply.code is Code.NONE
        return {(each.topic, each.partition): each for each in reply.offsets}

    def offsets(self, group_id: str = "g") -> dict[tuple[str, int], int]:
        return {place: each.offset for place, each in self.fetch(group_id).items()}
