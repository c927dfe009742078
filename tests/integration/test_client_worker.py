"""Workers against a real node: what is acked never comes again, and nothing else is lost, over kill -9 too."""

import asyncio
from collections import Counter

from goqueue.client import ClientError, Job, Producer, Worker, sync
from tests.integration.conftest import CreateTopic
from tests.integration.process import Node

MESSAGES = 2000


async def publish(address: str, topic: str, count: int) -> set[bytes]:
    values = [b"%d" % number for number in range(count)]
    async with Producer(address) as producer:
        await producer.send_many(topic, [{"value": value} for value in values])
    return set(values)


def test_acked_jobs_stay_acked_over_kill_9(own_node: Node, group: str) -> None:
    node = own_node

    async def work() -> None:
        sent = await publish(node.address, "orders", MESSAGES)
        acked: list[bytes | None] = []
        unknown: set[bytes | None] = set()
        seen: Counter[bytes | None] = Counter()
        half, done = asyncio.Event(), asyncio.Event()
        worker = Worker(node.address, "orders", group=group, concurrency=20)

        @worker.handle
        async def pack(job: Job) -> None:
            seen[job.value] += 1
            try:
                await job.ack()
                acked.append(job.value)
            except ClientError:  # whether it was done is not known: it may come again
                unknown.add(job.value)
            if len(acked) > MESSAGES // 2:
                half.set()
            if unknown.union(acked) == sent:
                done.set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run())
            await half.wait()
            node.kill()
            before = set(acked)
            await asyncio.to_thread(node.start)
            await done.wait()
            worker.stop()
        assert max(Counter(acked).values()) == 1
        assert unknown.union(acked) == sent
        assert len(unknown) <= 40  # what was in hand
        assert all(seen[value] == 1 for value in before)

    asyncio.run(asyncio.wait_for(work(), 120))


def test_workers_without_async(node: Node, make_topic: CreateTopic, group: str) -> None:
    topic = make_topic(3)
    with sync.Producer(node.address) as producer:
        producer.send_many(topic, [{"value": b"%d" % number} for number in range(100)])
    seen: list[bytes | None] = []
    worker = sync.Worker(node.address, topic, group=group)

    @worker.handle
    def pack(job: sync.Job) -> None:
        if job.attempt == 1 and job.value == b"7":
            job.nack(delay=1)
            return
        seen.append(job.value)
        if len(seen) == 100:
            worker.stop()

    worker.run()
    assert Counter(seen) == Counter(b"%d" % number for number in range(100))
    with sync.Worker(node.address, topic, group=f"{group}-2") as loop:
        values = []
        for job in loop:
            values.append(job.value)
            job.ack()
            if len(values) == 100:
                loop.stop()
    assert Counter(values) == Counter(seen)
