"""What a test can do to its broker's disk and to the process around it, and what is left then."""

import asyncio
import errno

import pytest

from goqueue.model.errors import DiskFull, GoQueueError
from goqueue.testing import BrokerDown, MemoryBroker, PowerLost, ReceiptExpired, broker
from tests.unit.testing.loops import in_loop


async def values(b: MemoryBroker, topic: str = "orders") -> list[bytes | None]:
    return [record.value for record in await b.read(topic)]


@in_loop
async def test_what_was_acknowledged_survives_a_kill_and_a_loss_of_power() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        await b.publish("orders", b"one")
        (message,) = await b.receive("orders")
        await message.ack()
        await b.publish("orders", b"later", delay="1h")
        for kind in ("kill", "power"):
            await b.crash(kind)
            await b.restart()
            await b.publish("orders", kind.encode())
        await b.advance("1h")
        assert await values(b) == [b"one", b"kill", b"power", b"later"]
        assert [each.value for each in await b.receive("orders")] == [b"kill", b"power", b"later"]


@in_loop
async def test_a_restart_in_good_order_keeps_everything_but_leases() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        await b.publish_many("orders", [b"1", b"2"])
        (one,) = await b.receive("orders", max_messages=1)
        await b.restart()
        lag = await b.lag("orders")
        assert (lag.ready, lag.leased) == (2, 0)
        assert [each.value for each in await b.receive("orders")] == [b"1", b"2"]
        with pytest.raises(ReceiptExpired):
            await one.ack()


@in_loop
async def test_while_it_is_down_every_call_says_so() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        waiting = asyncio.ensure_future(b.receive("orders", wait="1h"))
        await b.advance(0)
        await b.crash()
        with pytest.raises(BrokerDown, match="crashed"):
            await waiting
        for call in (lambda: b.publish("orders", b"x"), b.topics, lambda: b.advance("1h")):
            with pytest.raises(BrokerDown, match="crashed"):
                await call()
        await b.restart()
        await b.publish("orders", b"x")
        assert await values(b) == [b"x"]


@in_loop
async def test_nothing_of_the_old_life_happens_after_a_crash() -> None:
    async with broker() as b:
        await b.create_topic("orders", lease_ms=1000)
        await b.publish("orders", b"x")
        await b.receive("orders")
        await b.publish("orders", b"later", delay="1h")
        await b.crash()
        before = b.disk.op_count
        assert b._virtual is not None
        b._virtual.advance(2 * 3_600_000)
        assert b.disk.op_count == before
        await b.restart()
        await b.advance(0)
        assert await values(b) == [b"x", b"later"]


@in_loop
async def test_power_is_lost_before_a_slow_disk_has_synced() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        await b.publish("orders", b"safe")
        b.slow_disk("50ms")
        publishing = asyncio.ensure_future(b.publish("orders", b"lost"))
        await b.advance("49ms")
        assert not publishing.done()
        assert await values(b) == [b"safe"]
        await b.crash("power")
        with pytest.raises(BrokerDown):
            await publishing
        await b.restart()
        assert await values(b) == [b"safe"]
        publishing = asyncio.ensure_future(b.publish("orders", b"slow"))
        await b.advance("50ms")
        assert (await publishing).offset == 1
        assert await values(b) == [b"safe", b"slow"]


@in_loop
async def test_a_receive_need_not_wait_for_the_sync_of_an_acknowledgement() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        await b.publish_many("orders", [b"1", b"2"])
        (one,) = await b.receive("orders", max_messages=1)
        b.slow_disk("50ms")
        settling = asyncio.ensure_future(one.ack())
        await b.advance("10ms")
        assert not settling.done()
        (two,) = await b.receive("orders", max_messages=1)
        assert two.value == b"2"
        await b.advance("40ms")
        assert settling.done()
        await settling


@in_loop
async def test_a_killed_process_leaves_what_it_wrote() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        b.slow_disk("50ms")
        publishing = asyncio.ensure_future(b.publish("orders", b"written"))
        await b.advance("1ms")
        await b.crash("kill")
        with pytest.raises(BrokerDown):
            await publishing
        await b.restart()
        assert await values(b) == [b"written"]


@pytest.mark.parametrize("seed", range(8))
def test_a_torn_disk_never_shows_half_a_record(seed: int) -> None:
    @in_loop
    async def tear() -> None:
        large = bytes(range(256)) * 16
        async with broker() as b:
            await b.create_topic("orders")
            await b.publish("orders", b"safe")
            b.slow_disk("50ms")
            publishing = [asyncio.ensure_future(b.publish("orders", large)) for _ in range(3)]
            await b.advance("1ms")
            await b.crash("power", seed=seed)
            await asyncio.gather(*publishing, return_exceptions=True)
            await b.restart()
            first, *others = await values(b)
            assert first == b"safe"
            assert set(others) <= {large}

    tear()


@in_loop
async def test_durability_os_is_synced_by_the_clock() -> None:
    async with broker() as b:
        await b.create_topic("orders", durability="os")
        await b.publish("orders", b"safe")
        await b.advance("1s")
        await b.publish("orders", b"lost")
        await b.crash("power")
        await b.restart()
        assert await values(b) == [b"safe"]


@in_loop
async def test_a_failing_sync_is_told_to_whoever_publishes() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        await b.create_topic("others")
        await b.publish("orders", b"safe")
        fault = b.faults.add("sync", errno.EIO, prefix="logs/orders/")
        with pytest.raises(GoQueueError, match="sync"):
            await b.publish("orders", b"lost")
        assert fault.hits == 1
        with pytest.raises(GoQueueError, match="out of service"):
            await b.publish("orders", b"refused")
        await b.publish("others", b"x")
        b.faults.clear()
        await b.restart()
        await b.publish("orders", b"again")
        assert await values(b) == [b"safe", b"lost", b"again"]  # it was written, and nobody was told that it is safe


@in_loop
async def test_a_full_disk_refuses_and_goes_on_when_there_is_room() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        b.disk.capacity_bytes = 0
        large = bytes(512 * 1024)
        answers = await asyncio.gather(*(b.publish("orders", large) for _ in range(20)), return_exceptions=True)
        assert {type(answer) for answer in answers[-5:]} == {DiskFull}
        stored = [answer for answer in answers if not isinstance(answer, DiskFull)]
        b.disk.capacity_bytes = None
        await b.publish("orders", large)
        assert await values(b) == [large] * (len(stored) + 1)


@in_loop
async def test_power_can_be_lost_at_any_operation() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        await b.publish("orders", b"safe")
        b.disk.crash_at(b.disk.op_count)
        with pytest.raises(PowerLost):
            await b.publish("orders", b"lost")
        with pytest.raises(BrokerDown):
            await b.topics()
        await b.crash("power")
        await b.restart()
        assert await values(b) == [b"safe"]


@in_loop
async def test_a_disk_outlives_its_broker() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        await b.publish("orders", b"x")
    async with broker(disk=b.disk, now="2026-02-01T00:00:00Z") as again:
        assert await values(again) == [b"x"]
        with pytest.raises(ValueError, match="power"):
            await again.crash("flood")  # type: ignore[arg-type]


@in_loop
async def test_a_start_that_fails_can_be_tried_again() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        await b.publish("orders", b"x")
        await b.crash()
        b.faults.add("read", errno.EIO, prefix="logs/@metadata/", forever=True)
        with pytest.raises(GoQueueError):
            await b.restart()
        with pytest.raises(BrokerDown):
            await b.topics()
        b.faults.clear()
        await b.restart()
        assert await values(b) == [b"x"]
