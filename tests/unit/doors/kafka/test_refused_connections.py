"""A connection that is one too many for its address, with real sockets: nothing that it sends is carried out."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

import pytest
import uvloop

from goqueue.broker.gate import Gate
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.runtime.clock import LoopClock
from goqueue.wire.kafka.messages.metadata import ApiVersionsRequest
from tests.brokers import TestBroker
from tests.unit.doors.kafka.test_door_fuzz import frame

FAR_S = 60


async def sent_by_one_too_many() -> tuple[int, bytes]:
    """How many requests were carried out, and what was answered."""
    gate = Gate(replace(TestBroker().broker, clock=LoopClock()))
    gate.quotas.connect = lambda host: 200  # type: ignore[method-assign]
    door = KafkaDoor(gate)
    reader, writer = await asyncio.open_connection(*await door.open("127.0.0.1", 0))
    answered = b""
    with suppress(ConnectionError):
        for _ in range(3):
            writer.write(frame(ApiVersionsRequest(), 0) * 2)
            await writer.drain()
        answered = await asyncio.wait_for(reader.read(), FAR_S)
    writer.close()
    await asyncio.wait_for(door.close(), FAR_S)
    return door.requests, answered


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_nothing_is_read_of_a_connection_that_is_one_too_many(
    run: Callable[[Awaitable[tuple[int, bytes]]], tuple[int, bytes]],
) -> None:
    """uvloop reads once `connection_made` is over, also if it was told there not to."""
    assert run(sent_by_one_too_many()) == (0, b"")
