"""What a worker has fetched ahead is no longer its own when the node that leased it is gone."""

from collections import Counter

from goqueue.client import Admin, Job, Producer, Worker
from goqueue.testing import Process, Simulation
from goqueue.testing.virtual_loop import let_pass


def test_a_job_that_waits_in_a_worker_is_not_begun_when_its_lease_ended_with_the_node() -> None:
    handled: Counter[bytes | None] = Counter()

    async def scenario(sim: Simulation) -> None:
        (node,) = sim.nodes
        slow, quick, boss = sim.process("slow"), sim.process("quick"), sim.process("boss")

        async def prepare() -> None:
            async with Admin(node.http, **boss.ports) as admin:
                await admin.create_topic("jobs", partitions=1, lease_ms=60_000)
            async with Producer(node.kafka, **boss.ports) as producer:
                await producer.send_many("jobs", [b"one", b"two", b"three"])

        async def work(me: Process, seconds: float) -> None:
            worker = Worker(node.kafka, "jobs", group="crew", concurrency=1, prefetch=5, **me.ports)

            @worker.handle
            async def handle(job: Job) -> None:
                handled[job.value] += 1
                await let_pass(seconds)

            await worker.run()

        await boss.spawn(prepare())
        slow.spawn(work(slow, 6))
        await let_pass(2)
        node.crash("kill")
        await node.start()
        quick.spawn(work(quick, 0))
        await let_pass(120)

    Simulation(1).run(scenario)
    # The one that was in hand is delivered again; the others were never begun.
    assert handled == {b"one": 2, b"two": 1, b"three": 1}
