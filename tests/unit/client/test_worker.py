"""Workers against a real broker in process: what they settle stays settled, what they do not comes again."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from goqueue.client import InvalidArgument, Job, LeaseLost, Reject, RetryLater, Worker
from goqueue.ports.network import LoopNetwork
from goqueue.testing import MemoryBroker, broker
from tests.unit.testing.loops import in_loop, turn

GROUP = "packers"

P = TypeVar("P", bound=asyncio.BaseProtocol)


@asynccontextmanager
async def orders(partitions: int = 3, **options: Any) -> AsyncIterator[MemoryBroker]:
    async with broker(clock="real", kafka=True) as b:
        await b.create_topic("orders", partitions, **options)
        yield b


def worker(b: MemoryBroker, **options: Any) -> Worker:
    return Worker(b.kafka, "orders", group=GROUP, **options)


def worker_of(b: MemoryBroker, topic: str) -> Worker:
    return Worker(b.kafka, topic, group="readers")


async def publish(b: MemoryBroker, count: int, start: int = 0) -> set[bytes]:
    values = [b"%d" % number for number in range(start, start + count)]
    await b.publish_many("orders", values)
    return set(values)


async def run_until(w: Worker, is_done: asyncio.Event) -> None:
    """Run it, and stop it when `is_done` is set."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(w.run())
        await is_done.wait()
        w.stop()


@in_loop
async def test_every_message_is_handled_once_and_settled() -> None:
    async with orders() as b:
        sent = await publish(b, 500)
        seen: Counter[bytes | None] = Counter()
        done = asyncio.Event()
        w = worker(b)

        @w.handle
        async def pack(job: Job) -> None:
            seen[job.value] += 1
            if len(seen) == len(sent):
                done.set()

        await run_until(w, done)
        assert seen == Counter(sent)
        lag = await b.lag("orders", GROUP)
        assert (lag.ready, lag.leased, lag.waiting) == (0, 0, 0)


@in_loop
async def test_two_workers_share_a_queue() -> None:
    async with orders(partitions=1) as b:
        sent = await publish(b, 200)
        seen: dict[str, list[bytes | None]] = {"anna": [], "ben": []}
        done = asyncio.Event()
        workers = []
        for name in ("anna", "ben"):
            w = worker(b, concurrency=2, prefetch=0)
            workers.append(w)

            @w.handle
            async def pack(job: Job, name: str = name) -> None:
                seen[name].append(job.value)
                await turn()
                if sum(map(len, seen.values())) == len(sent):
                    done.set()

        async with asyncio.TaskGroup() as tasks:
            for w in workers:
                tasks.create_task(w.run())
            await done.wait()
            for w in workers:
                w.stop()
        assert Counter(seen["anna"] + seen["ben"]) == Counter(sent)
        assert seen["anna"]
        assert seen["ben"]


@in_loop
async def test_no_more_are_handled_at_once_than_allowed() -> None:
    async with orders() as b:
        sent = await publish(b, 60)
        at_once, most, count = 0, 0, 0
        done = asyncio.Event()
        w = worker(b, concurrency=7)

        @w.handle
        async def pack(_job: Job) -> None:
            nonlocal at_once, most, count
            at_once += 1
            most = max(most, at_once)
            for _ in range(5):
                await turn()
            at_once -= 1
            count += 1
            if count == len(sent):
                done.set()

        await run_until(w, done)
        assert most == 7


@in_loop
async def test_a_failed_job_comes_again_until_it_is_a_dead_letter() -> None:
    async with orders(attempts_max=3) as b:
        await publish(b, 1)
        attempts: list[int] = []
        w = worker(b, retry=lambda attempt: attempt)  # milliseconds

        @w.handle
        async def pack(job: Job) -> None:
            attempts.append(job.attempt)
            raise ValueError("no such customer")

        async with asyncio.TaskGroup() as tasks, worker_of(b, "orders.dlq") as reader:
            await b.create_topic("orders.dlq")
            tasks.create_task(w.run())
            assert await reader.next() is not None
            w.stop()
        (letter,) = await b.dead_letters("orders")
        assert attempts == [1, 2, 3]
        assert (letter.reason, letter.error, letter.attempts) == ("attempts", "ValueError: no such customer", 3)


@in_loop
async def test_a_handler_may_reject_or_ask_for_a_retry() -> None:
    async with orders() as b:
        await publish(b, 2)
        seen: list[tuple[bytes | None, int]] = []
        done = asyncio.Event()
        w = worker(b)

        @w.handle
        async def pack(job: Job) -> None:
            seen.append((job.value, job.attempt))
            if job.value == b"0":
                raise Reject("never")
            if job.attempt == 1:
                raise RetryLater("not yet", delay="20ms")
            done.set()

        await run_until(w, done)
        assert sorted(seen) == [(b"0", 1), (b"1", 1), (b"1", 2)]
        (letter,) = await b.dead_letters("orders")
        assert (letter.reason, letter.error) == ("rejected", "never")


@in_loop
async def test_a_handler_that_is_not_async_runs_in_a_thread() -> None:
    import threading

    async with orders() as b:
        await publish(b, 3)
        threads: set[int] = set()
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        w = worker(b)

        @w.handle
        def pack(_job: Job) -> None:
            threads.add(threading.get_ident())
            loop.call_soon_threadsafe(done.set)

        await run_until(w, done)
        assert threading.get_ident() not in threads


@in_loop
async def test_a_lease_is_kept_alive_while_its_job_is_handled() -> None:
    async with orders(lease_ms=200) as b:
        await publish(b, 1)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        seen: list[int] = []
        done = asyncio.Event()
        w = worker(b)

        @w.handle
        async def pack(job: Job) -> None:
            seen.append(job.attempt)
            loop.call_at(began_s + 1, done.set)  # five leases long
            await done.wait()

        await run_until(w, done)
        assert seen == [1]
        assert (await b.lag("orders", GROUP)).leased == 0


@in_loop
async def test_what_is_held_for_too_long_goes_to_others() -> None:
    async with orders(partitions=1, lease_ms=100) as b:
        await publish(b, 1)
        async with worker(b, hold=50, concurrency=1, prefetch=0) as first:
            job = await first.next()
            assert job is not None
            async with worker(b) as second:
                again = await second.next()
                assert again is not None
                assert (job.value, again.value, again.attempt) == (b"0", b"0", 2)
                with pytest.raises(LeaseLost):
                    await job.ack()
                await again.ack()


class Cut(LoopNetwork):
    """Its connections break when it says so."""

    def __init__(self) -> None:
        super().__init__()
        self._made: list[asyncio.Transport] = []

    async def connect(self, make: Callable[[], P], host: str, port: int) -> tuple[asyncio.Transport, P]:
        made = await super().connect(make, host, port)
        self._made.append(made[0])
        return made

    def cut(self) -> None:
        for each in self._made:
            each.abort()


SETTLINGS: dict[str, Callable[[Job], Awaitable[None]]] = {
    "ack": lambda job: job.ack(),
    "nack": lambda job: job.nack("1h"),
    "reject": lambda job: job.reject("no"),
    "extend": lambda job: job.extend("1h"),
}


@pytest.mark.parametrize("how", SETTLINGS)
@in_loop
async def test_who_settles_after_a_lost_connection_does_not_settle_the_next_delivery(how: str) -> None:
    async with orders(partitions=1) as b:
        await publish(b, 1)
        network = Cut()
        async with worker(b, concurrency=2, prefetch=0, network=network) as w:
            job = await w.next()
            assert job is not None
            network.cut()
            again = await w.next()
            assert again is not None
            assert again.offset == job.offset
            with pytest.raises(LeaseLost):
                await SETTLINGS[how](job)
            assert (await b.lag("orders", GROUP)).leased == 1
            await again.ack()
        lag = await b.lag("orders", GROUP)
        assert (lag.ready, lag.leased, lag.waiting) == (0, 0, 0)


@pytest.mark.parametrize("how", SETTLINGS)
@in_loop
async def test_who_settles_after_its_lease_does_not_settle_the_next_delivery_to_the_same_worker(how: str) -> None:
    async with orders(partitions=1) as b:
        await publish(b, 1)
        async with worker(b, concurrency=2, prefetch=0) as w:
            job = await w.next()
            assert job is not None
            await job.extend("1ms")  # and the worker does not know that it has to renew it
            again = await w.next()
            assert again is not None
            assert again.offset == job.offset
            with pytest.raises(LeaseLost):
                await SETTLINGS[how](job)
            assert (await b.lag("orders", GROUP)).leased == 1
            await again.ack()
        lag = await b.lag("orders", GROUP)
        assert (lag.ready, lag.leased, lag.waiting) == (0, 0, 0)


@in_loop
async def test_a_loop_settles_by_hand() -> None:
    async with orders() as b:
        await publish(b, 3)
        async with worker(b) as w:
            seen = []
            async for job in w:
                seen.append(job.value)
                await job.ack()
                with pytest.raises(InvalidArgument):
                    await job.nack()
                if len(seen) == 3:
                    w.stop()
        assert sorted(map(bytes, seen)) == [b"0", b"1", b"2"]  # type: ignore[arg-type]


@in_loop
async def test_what_was_not_settled_goes_back_uncounted_when_a_worker_closes() -> None:
    async with orders(partitions=1) as b:
        await publish(b, 5)
        async with worker(b) as w:
            job = await w.next()
            assert job is not None
            await job.ack()
        found = await b.receive("orders", GROUP, max_messages=10)
        assert [(each.value, each.attempt) for each in found] == [(b"%d" % number, 1) for number in range(1, 5)]


@in_loop
async def test_urgent_messages_are_handled_first() -> None:
    async with orders(partitions=1) as b:
        await publish(b, 3)
        await b.publish("orders", b"urgent", priority="critical")
        async with worker(b) as w:
            job = await w.next()
            assert job is not None
            assert (job.value, job.priority) == (b"urgent", "critical")


@in_loop
async def test_stop_finishes_what_is_at_hand() -> None:
    async with orders(partitions=1) as b:
        await publish(b, 20)
        begun, go_on = asyncio.Event(), asyncio.Event()
        handled: list[bytes | None] = []
        w = worker(b, concurrency=2)

        @w.handle
        async def pack(job: Job) -> None:
            begun.set()
            await go_on.wait()
            handled.append(job.value)

        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(w.run())
            await begun.wait()
            w.stop()
            assert not running.done()
            go_on.set()
        found = await b.receive("orders", GROUP, max_messages=100)
        assert {each.value for each in found}.isdisjoint(handled)
        assert len(found) + len(handled) == 20


@in_loop
async def test_a_worker_lives_through_a_restart_of_the_broker() -> None:
    async with orders() as b:
        sent = await publish(b, 100)
        seen: Counter[bytes | None] = Counter()
        half, done = asyncio.Event(), asyncio.Event()
        w = worker(b, concurrency=4)

        @w.handle
        async def pack(job: Job) -> None:
            seen[job.value] += 1
            if len(seen) >= 50:
                half.set()
            if len(seen) == 100:
                done.set()
            await turn()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(w.run())
            await half.wait()
            await b.crash()
            await b.restart()
            await done.wait()
            w.stop()
        assert set(seen) == sent
        lag = await b.lag("orders", GROUP)
        assert (lag.ready, lag.leased) == (0, 0)


@pytest.mark.parametrize(
    "options",
    [{"concurrency": 0}, {"prefetch": -1}, {"start": "now"}, {"lease": "soon"}, {"hold": -1}, {"stop_timeout": "x"}],
)
def test_what_cannot_be_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        Worker("127.0.0.1:9092", "orders", group=GROUP, **options)


@in_loop
async def test_a_worker_without_a_handler_says_so() -> None:
    with pytest.raises(InvalidArgument):
        await Worker("127.0.0.1:9092", "orders", group=GROUP).run()
