"""Every request of Kafka that waits for copies is answered, whatever becomes of the node that leads: its copies are cut
off, it loses its session, or it hands over. A client that is told nothing waits for as long as it can.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from goqueue.broker.shards import REPLY_MS_MAX, shard_of_group, shard_of_transaction
from goqueue.broker.transactions.enlisting import SETTLE_MS_MAX
from goqueue.client.admin import Admin
from goqueue.client.connection import Limits, connect
from goqueue.machines.transactions.commands import CodeReply
from goqueue.model.codes import Code
from goqueue.model.transactions import Writer
from goqueue.records.build import build_batch
from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.simulation import Process, Simulation
from goqueue.wire.kafka.messages import classic_groups, consumer_groups, offsets, produce
from goqueue.wire.kafka.messages import transactions as wire
from goqueue.wire.kafka.notation import Message

ORDERS = "orders"
PRODUCE_MS = 3000
SLACK_S = 2.0
"""For what takes no part of the time-out itself: a look at who has waited too long, a session that ends."""

Asked = dict[str, "asyncio.Future[Any]"]


def name_at(node: SimulatedNode, prefix: str, ledger: str, shard_of: Callable[[str], int]) -> str:
    """One whose coordinator is there."""
    image = node.broker.topics.image
    names = (f"{prefix}-{number}" for number in count())
    return next(each for each in names if image.placement(ledger, shard_of(each)).leader == node.number)


class Client:
    """Asks one node, each time over a connection of its own: what waits holds up nobody else."""

    def __init__(self, me: Process, node: SimulatedNode) -> None:
        self._me = me
        self._node = node
        self.group = name_at(node, "group", "@groups", shard_of_group)
        self._writers = count()

    async def send(self, request: Message, version: int | None = None) -> "asyncio.Future[Any]":
        ports, limits = self._me.ports, Limits(request_s_max=300.0)
        connection = await connect(self._node.kafka, "c", ports["clock"], ports["network"], limits, "1")
        return connection.send(request, version=version)

    async def writer(self, partition: int | None = None, group: str = "") -> tuple[str, int, int]:
        """With a transaction that is open in a partition, or with offsets of a group."""
        prefix = f"writer-{next(self._writers)}"
        name = name_at(self._node, prefix, "@transactions", shard_of_transaction)
        made = await (await self.send(wire.InitProducerIdRequest(name, 60_000)))
        assert made.error_code == Code.NONE
        who = name, made.producer_id, made.producer_epoch
        if partition is not None:
            topics = [wire.AddPartitionsToTxnTopic(ORDERS, [partition])]
            added = await (await self.send(wire.AddPartitionsToTxnRequest([], *who, topics), 3))
            assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == Code.NONE
        if group:
            joined = await (await self.send(wire.AddOffsetsToTxnRequest(*who, group)))
            assert joined.error_code == Code.NONE
        return who

    def commit(self, partition: int) -> tuple[Message, int]:
        topic = offsets.OffsetCommitRequestTopic(
            ORDERS, partitions=[offsets.OffsetCommitRequestPartition(partition, 1)]
        )
        return offsets.OffsetCommitRequest(self.group, topics=[topic]), 8

    async def requests(self, partition: int) -> dict[str, tuple[Message, int | None]]:
        """Each needs its leader or coordinator to store something."""
        committed = await (await self.send(*self.commit(partition)))
        assert committed.topics[0].partitions[0].error_code == Code.NONE
        opened, ending, commits = await self.writer(), await self.writer(partition), await self.writer(group=self.group)
        new = name_at(self._node, "new", "@transactions", shard_of_transaction)
        data = produce.PartitionProduceData(partition, memoryview(build_batch([(1, None, b"one", [])])))
        in_transaction = wire.TxnOffsetCommitRequestPartition(partition, 1)
        classic = name_at(self._node, "classic", "@groups", shard_of_group)
        modern = name_at(self._node, "modern", "@groups", shard_of_group)
        protocol = classic_groups.JoinGroupRequestProtocol("range", b"")
        beat = consumer_groups.ConsumerGroupHeartbeatRequest(modern, "one", 0, subscribed_topic_names=[ORDERS])
        beat.rebalance_timeout_ms, beat.topic_partitions = 30_000, []
        return {
            "Produce": (
                produce.ProduceRequest(None, -1, PRODUCE_MS, [produce.TopicProduceData(ORDERS, partition_data=[data])]),
                9,
            ),
            "InitProducerId": (wire.InitProducerIdRequest(new, 60_000), None),
            "AddPartitionsToTxn": (
                wire.AddPartitionsToTxnRequest([], *opened, [wire.AddPartitionsToTxnTopic(ORDERS, [partition])]),
                3,
            ),
            "AddOffsetsToTxn": (wire.AddOffsetsToTxnRequest(*opened, self.group), None),
            "EndTxn": (wire.EndTxnRequest(*ending, True), 3),
            "TxnOffsetCommit": (
                wire.TxnOffsetCommitRequest(
                    commits[0],
                    self.group,
                    *commits[1:],
                    topics=[wire.TxnOffsetCommitRequestTopic(ORDERS, partitions=[in_transaction])],
                ),
                3,
            ),
            "OffsetCommit": self.commit(partition),
            "JoinGroup": (
                classic_groups.JoinGroupRequest(classic, 30_000, 30_000, "", None, "consumer", [protocol]),
                3,
            ),
            "ConsumerGroupHeartbeat": (beat, 1),
        }


async def cluster(sim: Simulation, me: Process) -> tuple[SimulatedNode, int]:
    """A node, and a partition that it leads."""
    await sim.let_pass("8s")
    async with Admin(sim.nodes[0].http, **me.ports) as admin:
        await admin.create_topic(ORDERS, partitions=6)
    await sim.let_pass("1s")
    node = sim.nodes[1]
    placements = node.broker.topics.image.topics[ORDERS].placements
    return node, next(number for number, one in enumerate(placements) if one.leader == node.number)


def cut_off(sim: Simulation, node: SimulatedNode) -> None:
    for other in sim.nodes:
        if other is not node:
            sim.network.cut(node.name, other.name)


def cut_off_from_all(sim: Simulation, node: SimulatedNode) -> None:
    assert sim.etcd is not None
    cut_off(sim, node)
    sim.etcd.cut(node.name)


async def answered(sim: Simulation, asked: Asked, within_s: float) -> None:
    began_s, waiting = sim.loop.time(), dict(asked)
    while waiting:
        late = sorted(waiting)
        assert sim.loop.time() - began_s <= within_s, f"no answer after {within_s} s: {late}"
        await sim.let_pass("100ms")
        waiting = {name: each for name, each in waiting.items() if not each.done()}


@pytest.mark.parametrize("trouble", [cut_off, cut_off_from_all], ids=["from its copies", "from etcd too"])
def test_a_leader_that_is_cut_off_answers_all_who_wait_for_it(
    trouble: Callable[[Simulation, SimulatedNode], None],
) -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        node, partition = await cluster(sim, me)
        client = Client(me, node)
        requests = await client.requests(partition)
        await sim.let_pass("1s")
        trouble(sim, node)
        asked = {name: await client.send(*request) for name, request in requests.items()}
        (produced,) = [asked.pop("Produce")]
        await answered(sim, {"Produce": produced}, PRODUCE_MS / 1000 + SLACK_S)
        await answered(sim, asked, (REPLY_MS_MAX - PRODUCE_MS) / 1000 + SLACK_S)
        assert asked["OffsetCommit"].result().topics[0].partitions[0].error_code != Code.NONE, "no copy has it"
        assert asked["EndTxn"].result().error_code != Code.NONE, "no copy has it"
        assert not sim.loop.exceptions

    Simulation(seed=21, nodes=3, cluster=True).run(scenario, limit="3m")


def test_a_leader_that_hands_over_answers_all_who_came_meanwhile() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        node, partition = await cluster(sim, me)
        client = Client(me, node)
        requests = await client.requests(partition)
        await sim.let_pass("1s")
        led = [one for one in node.replicas.hosts() if one.role.is_leader]
        for replica in led:
            replica.rest()  # as the stop does
        asked = {name: await client.send(*request) for name, request in requests.items()}
        await sim.let_pass("100ms")
        assert [name for name, each in asked.items() if each.done()] == [], "they wait for who leads next"
        stopping = me.spawn(node.stop())
        await answered(sim, asked, SLACK_S)
        await stopping
        assert not sim.loop.exceptions

    Simulation(seed=22, nodes=3, cluster=True).run(scenario, limit="3m")


def test_a_write_of_a_transaction_is_answered_though_the_one_before_does_not_end() -> None:
    """Its coordinator, on another node, is asked again and again whether that is over."""

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        node, partition = await cluster(sim, me)
        other = next(each for each in sim.nodes if each is not node)
        name = name_at(other, "writer", "@transactions", shard_of_transaction)
        asks: list[object] = []

        def says_that_it_is_not_over(_command: object, _joins: bool, on_reply: Callable[[CodeReply], None]) -> None:
            asks.append(None)
            on_reply(CodeReply(Code.CONCURRENT_TRANSACTIONS))

        assert node.broker.transactions.markers.elsewhere is not None
        node.broker.transactions.markers.elsewhere.enlist = says_that_it_is_not_over  # type: ignore[method-assign,assignment]
        told: list[Code] = []
        enlisting = node.broker.transactions.enlisting
        enlisting.add_partitions(Writer(name, 1, 0), ((ORDERS, partition),), 0, told.append)
        await sim.let_pass(SETTLE_MS_MAX - 100)
        assert told == []
        assert len(asks) > 1
        await sim.let_pass(200)
        assert told == [Code.CONCURRENT_TRANSACTIONS]
        assert enlisting.is_idle
        assert not sim.loop.exceptions

    Simulation(seed=23, nodes=3, cluster=True).run(scenario, limit="3m")
