"""Time in a test: it stands still until it is advanced, and then everything happens at its own moment."""

import asyncio

import pytest

from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.testing import MemoryBroker, broker
from tests.unit.testing.loops import in_loop

START_MS = 1_767_225_600_000
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


@in_loop
async def test_everything_happens_at_its_own_moment() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        for minutes in (30, 10, 20):
            await b.publish("orders", b"%d" % minutes, delay=f"{minutes}m")
        await b.advance("1 day")
        assert [(one.value, one.timestamp - START_MS) for one in await b.read("orders")] == [
            (b"10", 10 * MINUTE_MS),
            (b"20", 20 * MINUTE_MS),
            (b"30", 30 * MINUTE_MS),
        ]
        assert b.now_ms == START_MS + 24 * 60 * MINUTE_MS


@in_loop
async def test_cron_fires_at_the_hour_of_its_place() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        first = await b.repeat("nightly", "orders", b"go", cron="0 3 * * *", timezone="Europe/Berlin")
        assert first == START_MS + 2 * HOUR_MS
        await b.advance("3 days")
        fired = [START_MS + (2 + 24 * day) * HOUR_MS for day in range(3)]
        assert [(one.value, one.timestamp) for one in await b.read("orders")] == [(b"go", at) for at in fired]
        await b.stop_repeating("nightly")
        await b.advance("3 days")
        assert len(await b.read("orders")) == 3
        with pytest.raises(Refused):
            await b.stop_repeating("nightly")
        with pytest.raises(Refused):
            await b.repeat("wrong", "orders", b"go", cron="every day")


async def work(b: MemoryBroker, seen: list[tuple[bytes | None, int]]) -> None:
    while True:
        for message in await b.receive("orders", group="workers", wait="1h", lease="5s"):
            seen.append((message.value, b.now_ms - START_MS))
            await message.ack()


@in_loop
async def test_a_worker_keeps_up_with_a_long_advance() -> None:
    """Its leases are of seconds, the advance is of days: each message is settled when it comes, none twice."""
    seen: list[tuple[bytes | None, int]] = []
    async with broker() as b:
        await b.create_topic("orders")
        worker = asyncio.ensure_future(work(b, seen))
        for hours in range(1, 49):
            await b.publish("orders", b"%d" % hours, delay=f"{hours}h")
        await b.advance("3 days")
        worker.cancel()
        assert seen == [(b"%d" % hours, hours * 60 * MINUTE_MS) for hours in range(1, 49)]
        lag = await b.lag("orders", "workers")
        assert (lag.ready, lag.leased, lag.waiting) == (0, 0, 0)


@in_loop
async def test_a_receive_in_vain_waits_as_long_as_it_said() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        waiting = asyncio.ensure_future(b.receive("orders", wait="20s"))
        await b.advance("19999ms")
        assert not waiting.done()
        await b.advance("1ms")
        assert waiting.done()
        assert await waiting == []


@in_loop
async def test_retention_goes_with_the_time() -> None:
    async with broker() as b:
        await b.create_topic("orders", retention_ms=MINUTE_MS, segment_ms=1000)
        await b.publish("orders", b"old")
        await b.advance("10m")
        await b.publish("orders", b"new")
        await b.advance("30s")
        assert [record.value for record in await b.read("orders")] == [b"new"]


@in_loop
async def test_the_virtual_clock_can_be_set_and_is_advanced_once_at_a_time() -> None:
    async with broker(now="2030-05-06T07:08:09Z") as b:
        assert b.now_ms == 1_904_281_689_000
        one, other = await asyncio.gather(b.advance("1h"), b.advance("1h"), return_exceptions=True)
        assert one is None
        assert isinstance(other, GoQueueError)
        await b.advance(1)
        assert b.now_ms == 1_904_281_689_000 + 60 * MINUTE_MS + 1


@in_loop
async def test_a_task_that_never_rests_does_not_stop_time() -> None:
    async with broker() as b:
        await b.create_topic("orders")

        async def restless() -> None:
            while True:
                await b.receive("orders")

        task = asyncio.ensure_future(restless())
        await b.advance("1h")
        assert b.now_ms == START_MS + 60 * MINUTE_MS
        task.cancel()


@in_loop
async def test_the_real_clock_goes_by_itself() -> None:
    async with broker(clock="real") as b:
        await b.create_topic("orders")
        await b.publish("orders", b"soon", delay="1ms")
        (first,) = await b.receive("orders", wait="30s", lease="1ms")
        (second,) = await b.receive("orders", wait="30s", lease="30s")
        assert (first.value, first.attempt, second.value, second.attempt) == (b"soon", 1, b"soon", 2)
        await second.ack()
        assert await b.receive("orders", wait="1ms") == []
        with pytest.raises(GoQueueError, match="virtual"):
            await b.advance("1s")
    with pytest.raises(ValueError, match="only the virtual clock"):
        broker(clock="real", now=0)


def test_nothing_runs_while_nobody_asks() -> None:
    """No polling: an idle broker gives its event loop nothing to do."""

    class CountingLoop(asyncio.SelectorEventLoop):
        turns = 0

        def _run_once(self) -> None:
            self.turns += 1
            super()._run_once()  # type: ignore[misc]

    async def idle() -> int:
        async with broker() as b:
            await b.create_topic("orders")
            waiting = asyncio.ensure_future(b.receive("orders", wait="1h"))
            await b.advance(0)
            before = loop.turns
            done = loop.create_future()
            loop.call_later(0.05, done.set_result, None)
            await done
            waiting.cancel()
            return loop.turns - before

    loop = CountingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(idle()) <= 4
