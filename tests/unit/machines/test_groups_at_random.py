"""Members that come, go, hang, come back and lie, over virtual time and crashes: what must hold whatever happens."""

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from goqueue.machines.groups.classic.group import ClassicGroup
from goqueue.machines.groups.classic.state import Phase
from goqueue.machines.groups.commands import (
    CommitOffsets,
    CommitTransactionOffsets,
    DeleteGroup,
    DeleteOffsets,
    EndTransactionOffsets,
    FetchOffsets,
    GroupOptions,
    GroupProtocol,
    Heartbeat,
    JoinReply,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
    SyncReply,
    TopicDeleted,
)
from goqueue.machines.groups.machine import Groups
from goqueue.model.codes import Code
from goqueue.model.topic_partition import TopicPartition
from tests.layers import more_often
from tests.unit.machines.group_driver import REBALANCE_MS, SESSION_MS, Driver, at, join, subscription

PARTITIONS = 6
OPTIONS = GroupOptions(size_max=5, offset_retention_ms=600_000, expiry_interval_ms=60_000)
clients = st.integers(0, 5)
ages = st.sampled_from([0, 0, 0, 0, 1, 2])
"""How many generations behind a client speaks."""


class Client(msgspec.Struct):
    """What a client knows: clients 0 and 1 are static, client 5 speaks an old version."""

    number: int
    member_id: str = ""
    generation: int = -1
    leads: tuple[str, ...] = ()
    """The members that it is to assign partitions to."""
    has_assignment: bool = False

    @property
    def instance_id(self) -> str | None:
        return f"instance-{self.number}" if self.number < 2 else None

    @property
    def owner(self) -> str:
        return self.instance_id or self.member_id


class GroupsAtRandom(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(OPTIONS)
        self.clients = [Client(number) for number in range(6)]
        self.waiting: dict[int, Client] = {}
        self.owners: dict[tuple[int, bytes], str] = {}
        """(generation, partition) -> who was told that it owns it."""
        self.ids = 0
        self.last_generation = 0

    # Clients

    def _send(self, client: Client, command: Any) -> None:
        self.waiting[self.driver.send(command)] = client
        self._hear()

    def _hear(self) -> None:
        for ticket in [each for each in self.waiting if each in self.driver.replies]:
            client, reply = self.waiting.pop(ticket), self.driver.replies[ticket]
            if isinstance(reply, JoinReply):
                self._hear_join(client, reply)
            elif isinstance(reply, SyncReply):
                self._hear_sync(client, reply)

    def _hear_join(self, client: Client, reply: JoinReply) -> None:
        if reply.code in (Code.NONE, Code.MEMBER_ID_REQUIRED):
            client.member_id, client.generation, client.has_assignment = reply.member_id, reply.generation, False
            leads = reply.leader == reply.member_id and not reply.skip_assignment
            client.leads = tuple(each.member_id for each in reply.members) if leads else ()
            assert bool(reply.members) == (reply.code is Code.NONE and reply.leader == reply.member_id)
        elif reply.code is not Code.REBALANCE_IN_PROGRESS and client.member_id == reply.member_id:
            client.member_id, client.generation = "", -1

    def _hear_sync(self, client: Client, reply: SyncReply) -> None:
        if reply.code is not Code.NONE:
            client.generation = -1
            return
        client.has_assignment = True
        for partition in reply.assignment.split():
            owner = self.owners.setdefault((client.generation, partition), client.owner)
            assert owner == client.owner, f"{owner} and {client.owner} own {partition!r} in {client.generation}"

    @rule(data=st.data(), numbers=st.lists(clients, min_size=3, max_size=15))
    def do_as_they_should(self, data: st.DataObject, numbers: list[int]) -> None:
        """What a real client would do next, so that groups become stable at all."""
        for number in numbers:
            client = self.clients[number]
            if client in self.waiting.values():
                continue
            if client.generation < 0:
                self._join(client, ("x", "y"), True)
            elif not client.has_assignment:
                self._sync(data, client, 0)
            elif self._beat(client, 0) is not Code.NONE:
                client.generation = -1

    @rule(number=clients, protocols=st.sampled_from([("x", "y"), ("y", "x"), ("y",)]), skips=st.booleans())
    def joins(self, number: int, protocols: tuple[str, ...], skips: bool) -> None:
        self._join(self.clients[number], protocols, skips)

    @rule(number=clients)
    def restarts_and_joins(self, number: int) -> None:
        client = self.clients[number] = Client(number)
        self._join(client, ("x", "y"), True)

    def _join(self, client: Client, protocols: tuple[str, ...], skips: bool) -> None:
        self.ids += 1
        command = join(
            client.member_id,
            f"m{self.ids}",
            protocols=tuple(GroupProtocol(name, subscription("orders")) for name in protocols),
            instance_id=client.instance_id,
            knows_member_id_required=client.number != 5,
            knows_skip_assignment=skips,
        )
        self._send(client, command)

    @rule(data=st.data(), number=clients, age=ages)
    def syncs(self, data: st.DataObject, number: int, age: int) -> None:
        self._sync(data, self.clients[number], age)

    def _sync(self, data: st.DataObject, client: Client, age: int) -> None:
        shares: dict[str, list[bytes]] = {member_id: [] for member_id in client.leads}
        for partition in range(PARTITIONS if shares else 0):
            shares[data.draw(st.sampled_from(client.leads))].append(b"%d" % partition)
        assignments = tuple((member_id, b" ".join(share)) for member_id, share in shares.items())
        generation = client.generation - age
        command = SyncGroup("g", generation, client.member_id, client.instance_id, assignments=assignments)
        self._send(client, command)

    @rule(number=clients, age=ages)
    def beats(self, number: int, age: int) -> None:
        self._beat(self.clients[number], age)

    def _beat(self, client: Client, age: int) -> Code:
        generation = client.generation - age
        before = self.driver.describe()
        code: Code = self.driver.ask(Heartbeat("g", generation, client.member_id, client.instance_id)).code
        if code in (Code.NONE, Code.REBALANCE_IN_PROGRESS):
            assert generation == before.generation
            assert client.member_id in {each.member_id for each in before.members}
            assert (code is Code.REBALANCE_IN_PROGRESS) == (before.state == "PreparingRebalance")
        return code

    @rule(number=clients, by_instance=st.booleans())
    def leaves(self, number: int, by_instance: bool) -> None:
        client = self.clients[number]
        member_id = "" if by_instance and client.instance_id else client.member_id
        self.driver.ask(LeaveGroup("g", (LeavingMember(member_id, client.instance_id),)))
        self._hear()

    # Offsets

    @rule(number=clients, age=ages, partition=st.integers(0, 2), offset=st.integers(-1, 12))
    def commits(self, number: int, age: int, partition: int, offset: int) -> None:
        client = self.clients[number]
        generation = client.generation - age
        group, before = self.driver.describe(), self.driver.offsets()
        command = CommitOffsets(
            "g", (at("orders", partition, offset),), generation, client.member_id, client.instance_id
        )
        (code,) = self.driver.ask(command).codes
        if generation >= 0:
            is_member = client.member_id in {each.member_id for each in group.members}
            may_commit = is_member and generation == group.generation and group.state != "CompletingRebalance"
        else:
            may_commit = group.state in ("Empty", "Dead")
        assert (code is Code.NONE) == may_commit
        moved = {("orders", partition): offset} if code is Code.NONE else {}
        assert self.driver.offsets() == before | moved

    @rule(
        producer_id=st.integers(1, 2), partition=st.integers(0, 2), offset=st.integers(0, 10), epoch=st.integers(0, 1)
    )
    def pends(self, producer_id: int, partition: int, offset: int, epoch: int) -> None:
        before = self.driver.offsets()
        self.driver.ask(CommitTransactionOffsets("g", producer_id, epoch, (at("orders", partition, offset),)))
        assert self.driver.offsets() == before

    @rule(producer_id=st.integers(1, 2), committed=st.booleans(), epoch=st.integers(0, 1))
    def ends(self, producer_id: int, committed: bool, epoch: int) -> None:
        before = self.driver.offsets()
        self.driver.ask(EndTransactionOffsets(producer_id, epoch, committed, epoch))
        assert committed or self.driver.offsets() == before

    @rule(partition=st.integers(0, 2))
    def deletes_offsets(self, partition: int) -> None:
        self.driver.ask(DeleteOffsets("g", (TopicPartition("orders", partition),)))

    @rule()
    def deletes_topic(self) -> None:
        self.driver.ask(TopicDeleted("orders"))
        assert self.driver.offsets() == {}

    @rule()
    def deletes_group(self) -> None:
        state = self.driver.describe().state
        code = self.driver.ask(DeleteGroup("g")).code
        expected = {"Dead": Code.GROUP_ID_NOT_FOUND, "Empty": Code.NONE}
        if state != "Dead" or not self.driver.fetch():
            assert code is expected.get(state, Code.NON_EMPTY_GROUP)

    # Time and crashes

    @rule(ms=st.sampled_from([1, SESSION_MS // 2, SESSION_MS, REBALANCE_MS, 700_000]))
    def time_passes(self, ms: int) -> None:
        self.driver.advance(ms)
        self._hear()

    @precondition(lambda self: self.driver.ledger)
    @rule()
    def broker_restarts(self) -> None:
        self.driver.restart()
        self.waiting.clear()
        self.last_generation = 0

    # What always holds

    @invariant()
    def generations_only_rise(self) -> None:
        group = self._group()
        if group is None:
            self.owners.clear()
            self.last_generation = 0
        else:
            assert group._state.generation >= self.last_generation
            self.last_generation = group._state.generation

    @invariant()
    def tickets_wait_only_where_a_deadline_ends_the_wait(self) -> None:
        group = self._group()
        if group is None:
            assert not self.waiting
            return
        state = group._state
        joining = {seat.join_ticket for seat in state.seats.values()} - {None}
        syncing = {seat.sync_ticket for seat in state.seats.values()} - {None}
        assert joining | syncing == set(self.waiting)
        assert not joining or (state.phase is Phase.PREPARING and state.join_deadline_ms is not None)
        assert not syncing or (state.phase is Phase.COMPLETING and state.sync_deadline_ms is not None)
        assert state.instances == {
            seat.member.instance_id: key for key, seat in state.seats.items() if seat.member.instance_id is not None
        }
        assert bool(state.seats) == (state.phase is not Phase.EMPTY)
        assert len(state.seats) + len(state.pending) <= OPTIONS.size_max

    @invariant()
    def ledger_and_snapshot_bring_the_same_back(self) -> None:
        live = self.driver.machine
        facts = {fact.key(): fact for fact in live.facts()}
        snapshot = Groups(OPTIONS)
        for fact in facts.values():
            snapshot.apply(fact)
        for rebuilt in (self.driver.replayed(), snapshot):
            assert {fact.key(): fact for fact in rebuilt.facts()} == facts
            assert _seen(rebuilt, FetchOffsets("g", None)) == _seen(live, FetchOffsets("g", None))
            assert _seen(rebuilt, FetchOffsets("g", None, True)) == _seen(live, FetchOffsets("g", None, True))
            group = self._group()
            if group is not None and group._state.phase is Phase.STABLE:
                other = rebuilt._groups["g"]
                assert isinstance(other, ClassicGroup)
                assert other.described() == group.described()

    def _group(self) -> ClassicGroup | None:
        group = self.driver.machine._groups.get("g")
        assert group is None or isinstance(group, ClassicGroup)
        return group

    def teardown(self) -> None:
        """Once all deadlines have passed, everybody was answered and nobody is left."""
        self.driver.advance(OPTIONS.new_member_join_ms + 4 * REBALANCE_MS)
        self._hear()
        assert not self.waiting
        group = self._group()
        assert group is None or group._state.phase is Phase.EMPTY


def _seen(machine: Groups, command: FetchOffsets) -> Any:
    """What a fetch shows, in no particular order."""
    ((_ticket, reply),) = machine.decide(command, 1, 0).replies
    return sorted(reply.offsets, key=lambda each: (each.topic, each.partition))


TestGroupsAtRandom = GroupsAtRandom.TestCase
TestGroupsAtRandom.settings = settings(max_examples=30, stateful_step_count=40)
TestGroupsMoreOften = more_often(GroupsAtRandom, settings(max_examples=80, stateful_step_count=40))
