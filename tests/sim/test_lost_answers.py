"""An answer that is lost with its connection may have said what will not be said again unless it is asked for."""

from goqueue.client import Admin, Consumer, Job, Producer, Worker
from goqueue.testing import Process, Simulation
from goqueue.testing.virtual_loop import let_pass

VALUES = {b"%d" % number for number in range(20)}


async def publish(me: Process, address: str, topic: str) -> None:
    async with Producer(address, **me.ports) as producer:
        for number in range(20):
            await producer.send(topic, b"%d" % number, partition=number % 2)


async def lose_answers(sim: Simulation, name: str, seconds: float) -> None:
    """What the node says to this host does not arrive, until it has given up on the connections."""
    sim.network.cut(sim.nodes[0].name, name, both_ways=False)
    await let_pass(seconds)
    sim.network.reset(name)
    sim.network.heal()


def test_a_consumer_gets_partitions_whose_assignment_was_told_in_an_answer_that_was_lost() -> None:
    async def scenario(sim: Simulation) -> None:
        (node,), seen = sim.nodes, set[bytes | None]()
        admin, first, second = sim.process("admin"), sim.process("first"), sim.process("second")

        async def prepare() -> None:
            async with Admin(node.http, **admin.ports) as each:
                await each.create_topic("orders", partitions=2)
            await publish(admin, node.kafka, "orders")

        async def read() -> None:
            async with Consumer(node.kafka, "orders", group="g", **second.ports) as consumer:
                async for message in consumer:
                    seen.add(message.value)

        async def give_one_up() -> None:
            """Has both partitions until it comes back for the next message; then the other is told of one."""

            def cut(places: object) -> None:
                sim.network.cut(node.name, "second", both_ways=False)

            async with Consumer(node.kafka, "orders", group="g", on_revoked=cut, **first.ports) as consumer:
                await consumer.poll(1)
                second.spawn(read())
                await let_pass(10)
                await consumer.poll(1)
                await let_pass(3600)

        await admin.spawn(prepare())
        first.spawn(give_one_up())
        await let_pass(15)
        assert seen == set()
        sim.network.reset("second")
        sim.network.heal()
        await let_pass(30)
        assert len(seen) == 10

    Simulation(1).run(scenario)


def test_a_worker_gets_partitions_whose_assignment_was_told_in_an_answer_that_was_lost() -> None:
    async def scenario(sim: Simulation) -> None:
        (node,), seen = sim.nodes, set[bytes | None]()
        admin, crew = sim.process("admin"), sim.process("crew")

        async def prepare() -> None:
            async with Admin(node.http, **admin.ports) as each:
                await each.create_topic("jobs", partitions=2)
            await publish(admin, node.kafka, "jobs")

        async def work() -> None:
            worker = Worker(node.kafka, "jobs", group="crew", **crew.ports)

            @worker.handle
            async def handle(job: Job) -> None:
                seen.add(job.value)

            await worker.run()

        crew.spawn(work())
        await let_pass(5)
        preparing = admin.spawn(prepare())
        await lose_answers(sim, "crew", 20)
        await preparing
        await let_pass(60)
        assert seen == VALUES

    Simulation(1).run(scenario)
