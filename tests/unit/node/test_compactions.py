"""Compactions at somebody's wish: never two of one log at a time, and none that leaves a log worse than before."""

import asyncio
import errno
import os

import pytest
from structlog.testing import capture_logs

from goqueue.model.refusal import Refused
from goqueue.node.compactions import Compactions
from goqueue.runtime.clock import SettledClock
from goqueue.storage import compaction
from goqueue.storage.swap import Manifest
from goqueue.testing import MemoryBroker, broker
from tests.unit.testing.loops import in_loop


async def with_prices(b: MemoryBroker) -> None:
    await b.create_topic("prices", cleanup_policy="compact")
    for number in range(4):
        await b.publish("prices", b"%d" % number, key=b"k")


class Slow:
    """Compacts when it is allowed to."""

    def __init__(self, b: MemoryBroker) -> None:
        self._b = b
        self.may_go_on = asyncio.Event()
        self.begun = 0

    async def run(self, plan: compaction.Plan) -> Manifest | None:
        self.begun += 1
        await self.may_go_on.wait()
        return compaction.compact(self._b.disk, plan)


def compactions(b: MemoryBroker, run: Slow) -> Compactions:
    return Compactions(b._live().node.replicas, SettledClock(b.broker.clock), run.run)


@in_loop
async def test_two_at_once_do_not_disturb_each_other() -> None:
    async with broker() as b:
        await with_prices(b)
        slow = Slow(b)
        both = compactions(b, slow)
        first = asyncio.create_task(both.now("prices", 0, False))
        await b.advance(0)
        with pytest.raises(Refused, match="already"):
            await both.now("prices", 0, False)
        await both.keep_up(b.broker.topics.replica("prices", 0).log)
        await b.publish("prices", b"meanwhile", key=b"k")
        slow.may_go_on.set()
        result = await first
        assert (slow.begun, result.is_done, result.records_before, result.records_after) == (1, True, 4, 1)
        assert [each.value for each in await b.read("prices")] == [b"3", b"meanwhile"]
        assert (await both.now("prices", 0, False)).records_after == 1


@in_loop
async def test_one_that_is_given_up_can_be_asked_for_again() -> None:
    async with broker() as b:
        await with_prices(b)
        slow = Slow(b)
        one = compactions(b, slow)
        task = asyncio.create_task(one.now("prices", 0, False))
        await b.advance(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        slow.may_go_on.set()
        assert (await one.now("prices", 0, False)).is_done


@in_loop
async def test_a_disk_that_fails_while_outputs_are_written_leaves_the_log_as_it_was() -> None:
    async with broker() as b:
        await with_prices(b)
        fault = b.faults.add("sync", errno.EIO, prefix="logs/prices/0/cleaned")
        with pytest.raises(Refused):
            await b.broker.compact("prices", 0, False)
        assert fault.hits
        assert len(await b.read("prices")) == 4
        b.faults.clear()
        assert (await b.broker.compact("prices", 0, False)).is_done
        assert [each.value for each in await b.read("prices")] == [b"3"]


@in_loop
async def test_what_is_not_there_or_not_compacted_is_refused() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        for topic in ("orders", "none"):
            with pytest.raises(Refused):
                await b.broker.compact(topic, 0, False)


@in_loop
async def test_a_system_that_has_no_room_for_one_more_process_costs_a_compaction_and_nothing_else() -> None:
    async def no_room(plan: compaction.Plan) -> Manifest | None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    async with broker() as b:
        await with_prices(b)
        log = b.broker.topics.replica("prices", 0).log
        log.roll(b.broker.clock.now_ms())
        log.sync()
        with capture_logs() as told:
            await Compactions(b._live().node.replicas, SettledClock(b.broker.clock), no_room).keep_up(log)
        assert [each["log"] for each in told if each["event"] == "compaction failed"] == [log.directory]
        slow = Slow(b)
        slow.may_go_on.set()
        await compactions(b, slow).keep_up(log)
        assert slow.begun == 1, "it is tried again"
