"""Consumers of both protocols that read one topic in one group, on the machine of all groups."""

import struct
from collections.abc import Iterable
from typing import Any

from goqueue.machines.groups.classic.payloads import (
    assignment_of_partitions,
    partitions_of_assignment,
    partitions_owned,
)
from goqueue.machines.groups.commands import (
    GroupProtocol,
    Heartbeat,
    JoinReply,
    LeaveGroup,
    LeavingMember,
    ListGroups,
    SyncGroup,
    SyncReply,
    TopicsChanged,
)
from goqueue.machines.groups.consumer.facts import ConsumerHeartbeat, packed, unpacked
from goqueue.machines.groups.consumer.kind import consumer_kind
from goqueue.model.codes import Code
from goqueue.model.topics import Topic
from tests.unit.machines.consumer_groups import topic_id
from tests.unit.machines.group_driver import Driver, join

TOPIC = "orders"
PARTITIONS = 6
ALL = set(range(PARTITIONS))
# What a client answers by joining again, as the same member and with what it has.
TRY_AGAIN = {Code.REBALANCE_IN_PROGRESS, Code.COORDINATOR_LOAD_IN_PROGRESS}


def new_driver() -> Driver:
    driver = Driver(kinds=(consumer_kind(),))
    announce(driver)
    return driver


def announce(driver: Driver) -> None:
    driver.ask(TopicsChanged({TOPIC: Topic(TOPIC, topic_id(TOPIC), PARTITIONS, {})}))


def subscription(owned: Iterable[int] = (), version: int = 1) -> bytes:
    name = TOPIC.encode()
    data = struct.pack(f">hiH{len(name)}si", version, 1, len(name), name, -1)
    return data + assignment_of_partitions({TOPIC: sorted(owned)} if owned else {})[2:-4]


def kind_of(driver: Driver) -> str:
    (group,) = driver.ask(ListGroups(driver.machine.page(None, 1000))).groups
    return str(group.type)


class ClassicClient:
    """`is_cooperative`: it keeps what it has while it joins, and gives up first what others shall have."""

    def __init__(self, driver: Driver, name: str, *, is_cooperative: bool = False) -> None:
        self.driver = driver
        self.name = name
        self.member_id = ""
        self.generation = -1
        self.owned: set[int] = set()
        self.codes: list[Code] = []
        """What it was told instead of what it asked for."""
        self._is_cooperative = is_cooperative
        self._ticket: int | None = None

    def step(self) -> None:
        """Say the next thing, unless it still waits for an answer."""
        if self._ticket is not None:
            reply = self.driver.replies.get(self._ticket)
            if reply is not None:
                self._ticket = None
                self._hear(reply)
        elif self.generation < 0:
            self._join()
        else:
            code = self.driver.ask(Heartbeat("g", self.generation, self.member_id)).code
            if code is not Code.NONE:
                self._refused(code)

    def lose_connection(self) -> None:
        """The node was restarted: what it asked for is not answered, and it asks again."""
        if self._ticket is not None:
            self._ticket = None
            self.generation = -1

    def leave(self) -> Code:
        (code,) = self.driver.ask(LeaveGroup("g", (LeavingMember(self.member_id),))).codes
        self.owned = set()
        return Code(code)

    def _join(self) -> None:
        if not self._is_cooperative:
            self.owned = set()
        protocols = (GroupProtocol("cooperative" if self._is_cooperative else "eager", subscription(self.owned)),)
        both = (*protocols, GroupProtocol("any", subscription(self.owned)))
        self._ticket = self.driver.send(join(self.member_id, self.name, protocols=both))

    def _hear(self, reply: Any) -> None:
        if reply.code is Code.MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
        elif reply.code is not Code.NONE:
            self._refused(reply.code)
        elif isinstance(reply, JoinReply):
            self.generation = reply.generation
            assignments = self._assigned(reply) if reply.leader == self.member_id else ()
            self._ticket = self.driver.send(
                SyncGroup("g", self.generation, self.member_id, assignments=tuple(assignments))
            )
        elif isinstance(reply, SyncReply):
            assigned = {each.partition for each in partitions_of_assignment(reply.assignment) or ()}
            gives_up = self.owned - assigned
            self.owned = assigned
            if gives_up:
                self.generation = -1

    def _assigned(self, reply: JoinReply) -> Iterable[tuple[str, bytes]]:
        """As a leader: to everybody an even share, but nothing that another one still has."""
        owners = {one.partition: each.member_id for each in reply.members for one in partitions_owned(each.metadata)}
        for number, each in enumerate(reply.members):
            share = range(number, PARTITIONS, len(reply.members))
            free = [one for one in share if owners.get(one, each.member_id) == each.member_id]
            yield each.member_id, assignment_of_partitions({TOPIC: free})

    def _refused(self, code: Code) -> None:
        self.codes.append(code)
        self.generation = -1
        if code not in TRY_AGAIN:
            self.owned = set()
        if code is Code.UNKNOWN_MEMBER_ID:
            self.member_id = ""


class NewClient:
    def __init__(self, driver: Driver, name: str) -> None:
        self.driver = driver
        self.member_id = name
        self.epoch = 0
        self.owned: set[int] = set()
        self.codes: list[Code] = []

    def step(self) -> None:
        is_join = not self.epoch
        reply = self.driver.ask(
            ConsumerHeartbeat(
                "g",
                self.member_id,
                self.epoch,
                rebalance_timeout_ms=10_000 if is_join else -1,
                subscribed_topic_names=(TOPIC,) if is_join else None,
                owned=packed((topic_id(TOPIC), each) for each in self.owned),
            )
        )
        if reply.code is not Code.NONE:
            self.codes.append(reply.code)
            self.epoch, self.owned = 0, set()
            return
        self.epoch = reply.member_epoch
        if reply.assignment is not None:
            self.owned = {number for _, number in unpacked(reply.assignment)}

    def leave(self) -> Code:
        code: Code = self.driver.ask(ConsumerHeartbeat("g", self.member_id, -1)).code
        self.owned = set()
        return code


Client = ClassicClient | NewClient


def check_disjoint(clients: Iterable[Client]) -> None:
    seen: set[int] = set()
    for client in clients:
        assert not seen & client.owned, "two members have one partition"
        seen |= client.owned


def settle(driver: Driver, *clients: Client) -> None:
    """Until each has said so often what it has to say that nothing can be left to be told."""
    for _ in range(30):
        for client in clients:
            client.step()
            check_disjoint(clients)
        driver.advance(500)
    assert sorted(one for client in clients for one in client.owned) == sorted(ALL)
