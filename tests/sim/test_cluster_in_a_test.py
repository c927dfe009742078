"""`goqueue.testing.cluster()`, as users' tests have it: in the event loop of what runs the test, on virtual time."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from goqueue.client import Admin, ClientError, Consumer, Producer
from goqueue.testing import Cluster, cluster


async def make(c: Cluster, topic: str = "orders", partitions: int = 1) -> None:
    async with Admin(c.http, **c.ports) as admin:
        await admin.create_topic(topic, partitions=partitions)
    await c.settled()


def leader(c: Cluster, topic: str = "orders") -> int:
    return c.node(1).broker.topics.image.topics[topic].placements[0].leader


async def read(c: Cluster, count: int) -> list[bytes | None]:
    async with Consumer(c.kafka, "orders", **c.ports) as consumer:
        return [(await anext(consumer)).value for _ in range(count)]


async def go_on_without_the_leader(c: Cluster) -> None:
    await make(c)
    async with Producer(c.kafka, **c.ports) as producer:
        for number, trouble in enumerate((c.kill, c.pause)):
            await producer.send("orders", b"before %d" % number)
            old = leader(c)
            trouble(old)
            await producer.send("orders", b"after %d" % number)
            if trouble == c.kill:
                await c.start(old)
            c.heal()
            await c.settled()
    assert await read(c, 4) == [b"before 0", b"after 0", b"before 1", b"after 1"]


async def cut_a_client_off(c: Cluster) -> None:
    await make(c)
    shop = c.process("shop")
    async with Producer(c.kafka, delivery_timeout="2s", **shop.ports) as producer:
        await producer.send("orders", b"one")
        for number in (1, 2, 3):
            c.cut("shop", number)
        with pytest.raises(ClientError):
            await producer.send("orders", b"two")
        c.heal()
        await producer.send("orders", b"three")


async def cut_a_node_from_etcd(c: Cluster) -> None:
    await make(c)
    old = leader(c)
    c.cut(old, "etcd")
    for other in {1, 2, 3} - {old}:
        c.cut(old, other)
    await c.advance("10s")
    other = min({1, 2, 3} - {old})
    assert c.node(other).broker.topics.image.topics["orders"].placements[0].leader != old
    c.heal()
    await c.settled()


async def wait_for_three_days(c: Cluster) -> None:
    await make(c)
    async with Producer(c.kafka, **c.ports) as producer:
        await producer.send("orders", b"later", delay="3 days")
    async with Consumer(c.kafka, "orders", **c.ports) as consumer:
        assert await consumer.poll(timeout="5s") == []
        before_ms = c.now_ms
        await c.advance("3 days")
        assert c.now_ms - before_ms >= 3 * 86_400_000
        (message,) = await consumer.poll(timeout="10s")
        assert message.value == b"later"


SCENARIOS = [go_on_without_the_leader, cut_a_client_off, cut_a_node_from_etcd, wait_for_three_days]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_in_the_loop_of_a_test(scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        async with cluster() as c:
            await scenario(c)

    asyncio.run(main())


@pytest.mark.parametrize("scenario", SCENARIOS[:1])
def test_in_a_loop_of_its_own(scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    cluster(seed=2).run(scenario)


def test_a_stop_in_good_order_and_a_loss_of_power(goqueue_cluster: Cluster) -> None:
    async def scenario(c: Cluster) -> None:
        await make(c)
        async with Producer(c.kafka, **c.ports) as producer:
            await producer.send("orders", b"one")
            await c.stop(1)
            await producer.send("orders", b"two")
            c.kill(2, "power")
            await c.start(1)
            await producer.send("orders", b"three")
        await c.start(2)
        await c.settled()
        assert await read(c, 3) == [b"one", b"two", b"three"]

    goqueue_cluster.run(scenario)


def test_the_loop_is_what_it_was_when_the_cluster_is_gone() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        kind, is_near = type(loop), asyncio.Event()
        far = loop.call_later(3600, pytest.fail, "an hour has not passed")
        async with cluster(nodes=2) as c:
            await c.advance("60s")
            loop.call_later(0.001, is_near.set)
        assert type(loop) is kind
        assert abs(loop.time() - time.monotonic()) < 60
        assert 3500 < far.when() - loop.time() < 3540.5, "what is left of an hour after a minute"
        await is_near.wait()
        far.cancel()
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and not task.done()] == []

    asyncio.run(main())


def test_a_test_that_waits_for_what_never_happens_ends() -> None:
    async def main() -> None:
        async with cluster(nodes=2, limit="20s"):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(main())


def test_two_clusters_in_one_loop_are_refused() -> None:
    async def main() -> None:
        async with cluster(nodes=1), cluster(nodes=1):
            pass

    with pytest.raises(RuntimeError, match="one simulation at a time"):
        asyncio.run(main())
