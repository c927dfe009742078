"""The short calls of a broker in a test, for whoever looks after queues."""

from typing import Any

import pytest

from goqueue.machines.groups import commands
from goqueue.model.errors import InvalidFilter, InvalidMoment
from goqueue.model.refusal import Refused
from goqueue.records.filters import RecordFilter
from goqueue.testing import MemoryBroker, broker
from tests.unit.testing.loops import in_loop


async def settle_all(b: MemoryBroker, group: str = "workers") -> list[bytes | None]:
    found = []
    while some := await b.receive("orders", group=group):
        for message in some:
            found.append(message.value)
            await message.ack()
    return found


async def publish(b: MemoryBroker, *values: bytes) -> None:
    await b.create_topic("orders")
    for value in values:
        await b.publish("orders", value, key=value)
        await b.advance("1m")


@in_loop
async def test_dead_letters_are_sent_back_and_purged() -> None:
    async with broker() as b:
        await publish(b, b"a", b"b")
        for message in await b.receive("orders"):
            await message.reject()
        assert (await b.redrive("orders", filter={"key": "a"}, dry_run=True)).redriven == 1
        assert (await b.redrive("orders", filter=RecordFilter(key=b"a"))).redriven == 1
        assert await settle_all(b) == [b"a"]
        assert await b.purge("orders") == 2
        assert (await b.redrive("orders")).redriven == 0
        with pytest.raises(InvalidFilter):
            await b.redrive("orders", filter={"kee": "a"})


@in_loop
async def test_a_group_reads_again_and_elsewhere() -> None:
    async with broker() as b:
        await publish(b, b"a", b"b", b"c")
        await settle_all(b)
        (part,) = await b.replay("orders", start=1, stop=2)
        assert (part.first_offset, part.next_offset, part.records) == (1, 2, 1)
        assert await settle_all(b) == [b"b"]
        (moved,) = await b.seek("orders", to="-90s")
        assert (moved.before, moved.after) == (3, 2)
        assert await settle_all(b) == [b"c"]
        await b.seek("orders", to="earliest", dry_run=True)
        assert await settle_all(b) == []
        with pytest.raises(InvalidMoment):
            await b.seek("orders", to="yesterday")
        await b.seek_stream("orders", "readers", to="latest")
        committed: Any = await b.ask(lambda done: b.broker.groups.submit(commands.FetchOffsets("readers", None), done))
        assert [each.offset for each in committed.offsets] == [3]


@in_loop
async def test_a_fork_is_made_compared_promoted_and_dropped() -> None:
    async with broker() as b:
        await publish(b, b"a", b"b")
        (first,) = await b.receive("orders", max_messages=1)
        await first.ack()
        await first_is_kept_by_the_fork(b)
        await b.fork("workers", "other")
        await b.drop_group("other")
        with pytest.raises(Refused):
            await b.promote("workers", "other")


async def first_is_kept_by_the_fork(b: MemoryBroker) -> None:
    await b.fork("workers", "try")
    assert await b.compare("workers", "try") == []
    assert await settle_all(b, "try") == [b"b"]
    (difference,) = await b.compare("workers", "try")
    assert (difference.only_first, difference.only_second) == ((), ((1, 1),))
    await b.promote("workers", "try")
    assert await settle_all(b) == []


@in_loop
async def test_a_group_has_options_of_its_own() -> None:
    async with broker() as b:
        await publish(b, b"a")
        await b.set_group_options("slow", lease_ms=5000, **{"attempts.max": "7"})
        assert b.broker.queues.options("slow") == {"lease.ms": "5000", "attempts.max": "7"}
        await b.set_group_options("slow", attempts_max=None)
        (message,) = await b.receive("orders", group="slow")
        assert message.lease_until == b.now_ms + 5000
