"""Transactions, groups, queues and delays whose coordinators and partitions are on different nodes."""

from goqueue.broker.shards import shard_of_group, shard_of_transaction
from goqueue.client.admin import Admin
from goqueue.client.consumer import Consumer
from goqueue.client.producer import Producer
from goqueue.machines.delays.commands import RecurringReply
from goqueue.machines.deliveries.commands import How, Place, Settle, Settlement
from goqueue.machines.groups import commands
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.lag import GroupLag
from goqueue.model.recurring import Recurring
from goqueue.model.refusal import Refused
from goqueue.records.partitioners import partition_for
from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.simulation import Process, Simulation

PARTITIONS = 6


async def made(sim: Simulation, me: Process, *topics: str) -> None:
    await sim.let_pass("2s")
    async with Admin(sim.nodes[0].http, **me.ports) as admin:
        for topic in topics:
            await admin.create_topic(topic, partitions=PARTITIONS)
    await sim.let_pass("1s")


async def read(
    sim: Simulation, me: Process, topic: str, count: int, node: SimulatedNode | None = None
) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with Consumer((node or sim.nodes[0]).kafka, topic, isolation="committed", **me.ports) as consumer:
        for _ in range(40):
            found += [message.value for message in await consumer.poll(timeout="500ms")]
            if len(found) >= count:
                break
        found += [message.value for message in await consumer.poll(timeout="1s")]
    return sorted(found, key=lambda value: value or b"")


def test_transactions_span_partitions_of_several_nodes() -> None:
    """Each partition asks the coordinator, wherever that is, and each gets the marker."""

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await made(sim, me, "orders")
        expected = []
        for number in range(4):  # their coordinators are on different nodes
            async with Producer(sim.nodes[1].kafka, transactional_id=f"writer-{number}", **me.ports) as producer:
                for turn in range(2):
                    async with producer.transaction():
                        for partition in range(PARTITIONS):
                            value = b"%d-%d-%d" % (number, turn, partition)
                            await producer.send("orders", value, partition=partition)
                            expected.append(value)
                try:
                    async with producer.transaction():
                        for partition in range(PARTITIONS):
                            await producer.send("orders", b"never", partition=partition)
                        raise ValueError("abort")
                except ValueError:
                    pass
        image = sim.nodes[0].broker.topics.image
        led = [placement.leader for placement in image.topics["orders"].placements]
        coordinators = {image.placement("@transactions", shard_of_transaction(f"writer-{n}")).leader for n in range(4)}
        assert set(led) - coordinators, "else nothing was tried"
        assert await read(sim, me, "orders", len(expected)) == sorted(expected)
        assert not sim.loop.exceptions

    Simulation(seed=11, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="5m")


def test_offsets_of_a_group_are_part_of_a_transaction_whose_coordinator_is_elsewhere() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await made(sim, me, "orders", "done")
        async with Producer(sim.nodes[0].kafka, **me.ports) as plain:
            for number in range(12):
                await plain.send("orders", b"%d" % number, partition=number % PARTITIONS)
        for number in range(3):
            name = f"copier-{number}"
            async with (
                Producer(sim.nodes[2].kafka, transactional_id=name, **me.ports) as producer,
                producer.transaction(),
            ):
                await producer.send("done", name.encode(), partition=number)
                await producer.send_offsets({("orders", number): number + 1}, group=f"group-{number}")
        await sim.let_pass("2s")
        for number in range(3):
            shard = shard_of_group(f"group-{number}")
            owner = next(node for node in sim.nodes if node.broker.groups.is_led(shard))
            known = {each.group_id: offsets for each, offsets in owner.broker.groups.measured()}[f"group-{number}"]
            assert {tuple(place): one.offset for place, one in known.items()} == {("orders", number): number + 1}
        assert not sim.loop.exceptions

    Simulation(seed=12, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="5m")


def test_delayed_records_of_a_transaction_wait_for_its_end_wherever_its_coordinator_is() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await made(sim, me, "later")
        async with (
            Producer(sim.nodes[1].kafka, transactional_id="writer", **me.ports) as producer,
            producer.transaction(),
        ):
            for partition in range(PARTITIONS):
                await producer.send("later", b"%d" % partition, partition=partition, delay="5s")
        await sim.let_pass("7s")
        assert await read(sim, me, "later", PARTITIONS) == [b"%d" % number for number in range(PARTITIONS)]
        assert not sim.loop.exceptions

    Simulation(seed=13, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="5m")


def test_dead_letters_are_written_wherever_their_partition_is_led() -> None:
    """Before the message is settled, though the two may be on different nodes."""

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("2s")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("jobs", partitions=PARTITIONS, dead_letter_topic="graves")
            await admin.create_topic("graves", partitions=1)
        await sim.let_pass("1s")
        async with Producer(sim.nodes[0].kafka, **me.ports) as producer:
            for partition in range(PARTITIONS):
                await producer.send("jobs", b"%d" % partition, partition=partition)
        leaders = [one.leader for one in sim.nodes[0].broker.topics.image.topics["jobs"].placements]
        for partition, leader in enumerate(leaders):
            queues, place = sim.nodes[leader - 1].broker.queues, Place("crew", "jobs", partition)
            queues.open(place, "earliest", lambda error: None)
            await sim.let_pass("1s")
            queues.observe(place)
            leased = queues.lease(place, "worker", 1, None)
            assert not isinstance(leased, GoQueueError)
            queues.submit(Settle(place, (Settlement(0, 0, How.REJECT, 0, lease=leased.lease),)), lambda reply: None)
        await sim.let_pass("5s")
        assert await read(sim, me, "graves", PARTITIONS) == [b"%d" % number for number in range(PARTITIONS)]
        for partition, leader in enumerate(leaders):
            assert sim.nodes[leader - 1].broker.queues.settled_below(Place("crew", "jobs", partition)) == 1
        assert not sim.loop.exceptions

    Simulation(seed=14, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="5m")


def test_a_group_has_one_kind_though_its_deliveries_are_on_other_nodes() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await made(sim, me, "jobs")
        led = {
            one.leader: number for number, one in enumerate(sim.nodes[0].broker.topics.image.topics["jobs"].placements)
        }
        answers: dict[str, list[object]] = {"queue": [], "stream": []}
        coordinator = next(node for node in sim.nodes if node.broker.groups.is_led(shard_of_group("crew")))
        other = next(node for node in sim.nodes if node is not coordinator)
        number = led[other.broker.identity.node_id]
        other.broker.queues.open(Place("crew", "jobs", number), "earliest", answers["queue"].append)
        await sim.let_pass("3s")
        assert answers["queue"] == [None]
        join = commands.JoinGroup("crew", "", "m", 10_000, 10_000, "consumer", (commands.GroupProtocol("range", b""),))
        coordinator.broker.groups.submit(join, answers["stream"].append)
        commit = commands.CommitOffsets("flock", (commands.OffsetToCommit("jobs", 0, 0),))
        flock = next(node for node in sim.nodes if node.broker.groups.is_led(shard_of_group("flock")))
        flock.broker.groups.submit(commit, answers["stream"].append)
        await sim.let_pass("3s")
        assert [reply.code for reply in answers["stream"][:1]] == [Code.INCONSISTENT_GROUP_PROTOCOL]  # type: ignore[attr-defined]
        stranger = next(node for node in sim.nodes if node is not flock)
        number = led[stranger.broker.identity.node_id]
        stranger.broker.queues.open(Place("flock", "jobs", number), "earliest", answers["queue"].append)
        await sim.let_pass("3s")
        refused = answers["queue"][1]
        assert isinstance(refused, Refused)
        assert refused.code is Code.INCONSISTENT_GROUP_PROTOCOL
        assert not sim.loop.exceptions

    Simulation(seed=15, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="5m")


def test_of_two_first_uses_of_a_name_at_once_at_most_one_decides_its_kind() -> None:
    """As queue on the node that leads a partition, as stream at the coordinator, which is another."""

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await made(sim, me, "jobs")
        placements = sim.nodes[0].broker.topics.image.topics["jobs"].placements
        dice, made_of = sim.dice("uses"), dict.fromkeys(("queue", "stream", "neither"), 0)
        for attempt in range(40):
            name = f"crew-{attempt}"
            coordinator = next(node for node in sim.nodes if node.broker.groups.is_led(shard_of_group(name)))
            number = next(n for n, one in enumerate(placements) if one.leader != coordinator.broker.identity.node_id)
            opened: list[GoQueueError | None] = []
            committed: list[commands.CommitReply | GoQueueError] = []
            queues = sim.nodes[placements[number].leader - 1].broker.queues
            commit = commands.CommitOffsets(name, (commands.OffsetToCommit("jobs", 0, 0),))
            is_queue_first = dice.random() < 0.5
            for is_queue in (is_queue_first, not is_queue_first):
                if is_queue:
                    queues.open(Place(name, "jobs", number), "earliest", opened.append)
                else:
                    coordinator.broker.groups.submit(commit, committed.append)
                await sim.let_pass(dice.randrange(4))
            await sim.let_pass("1s")
            (queue,), (stream,) = opened, committed
            is_stream = isinstance(stream, commands.CommitReply) and stream.codes == (Code.NONE,)
            assert queue is not None or not is_stream, f"{name} is a queue and a stream"
            made_of["queue" if queue is None else "stream" if is_stream else "neither"] += 1
        assert made_of["queue"] > 5
        assert made_of["stream"] > 5
        assert not sim.loop.exceptions

    Simulation(seed=18, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="5m")


def test_a_first_use_waits_until_all_nodes_that_live_can_be_asked() -> None:
    """One that cannot may have the group as the other kind."""

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await made(sim, me, "jobs")
        coordinator = next(node for node in sim.nodes if node.broker.groups.is_led(shard_of_group("crew")))
        others = [node for node in sim.nodes if node is not coordinator]
        placements = sim.nodes[0].broker.topics.image.topics["jobs"].placements
        number = next(n for n, one in enumerate(placements) if one.leader == others[0].broker.identity.node_id)
        for other in others:
            sim.network.cut(coordinator.name, other.name)
        opened: list[GoQueueError | None] = []
        committed: list[commands.CommitReply | GoQueueError] = []
        others[0].broker.queues.open(Place("crew", "jobs", number), "earliest", opened.append)
        commit = commands.CommitOffsets("flock", (commands.OffsetToCommit("jobs", 0, 0),))
        flock = next(node for node in sim.nodes if node.broker.groups.is_led(shard_of_group("flock")))
        flock.broker.groups.submit(commit, committed.append)
        await sim.let_pass("3s")
        for answer in (*opened, *committed):
            assert isinstance(answer, GoQueueError)
            assert answer.retriable
        assert (len(opened), len(committed)) == (1, 1)

    Simulation(seed=19, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="5m")


def test_the_lag_of_a_group_counts_partitions_of_all_nodes() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await made(sim, me, "orders")
        async with Producer(sim.nodes[0].kafka, **me.ports) as producer:
            for number in range(2 * PARTITIONS):
                await producer.send("orders", b"x", partition=number % PARTITIONS)
        owner = next(node for node in sim.nodes if node.broker.groups.is_led(shard_of_group("flock")))
        offsets = tuple(commands.OffsetToCommit("orders", number, 1) for number in range(PARTITIONS))
        owner.broker.groups.submit(commands.CommitOffsets("flock", offsets), lambda reply: None)
        await sim.let_pass("1s")
        found: list[GroupLag | GoQueueError] = []
        owner.broker.lag.of_group("flock", found.append)
        await sim.let_pass("3s")
        assert isinstance(found[0], GroupLag)
        assert [(one.partition, one.end, one.lag) for one in found[0].partitions] == [
            (number, 2, 1) for number in range(PARTITIONS)
        ]
        assert not sim.loop.exceptions

    Simulation(seed=16, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="5m")


def test_a_recurring_schedule_that_is_moved_to_another_node_runs_there_only() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await made(sim, me, "ticks")
        placements = sim.nodes[0].broker.topics.image.topics["ticks"].placements
        partitioner = sim.nodes[0].broker.topics.partitioner(sim.nodes[0].broker.topics.image.topics["ticks"])
        keys = {partition_for(b"%d" % n, PARTITIONS, partitioner): b"%d" % n for n in range(100)}
        first = 0
        second = next(number for number in range(PARTITIONS) if placements[number].leader != placements[first].leader)
        nodes = {number: sim.nodes[placements[number].leader - 1] for number in (first, second)}
        for number in (first, second):
            replies: list[RecurringReply | GoQueueError] = []
            wanted = Recurring("tick", "ticks", "* * * * *", b"%d" % number, keys[number])
            nodes[number].broker.recurring.store(wanted, replies.append)
            await sim.let_pass("2s")
            assert isinstance(replies[0], RecurringReply)
            assert nodes[number].broker.recurring.find("tick") is not None
        old = nodes[first].broker.schedules.of("ticks", first)
        assert old is not None
        assert [one.name for one in old.peek().recurring()] == []
        assert not sim.loop.exceptions

    Simulation(seed=17, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="20m")
