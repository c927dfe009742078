"""The end of a door, with real sockets: it comes, whatever its clients do."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import uvloop

from goqueue.broker.gate import Gate
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.kafka.limits import KafkaLimits
from goqueue.runtime.clock import LoopClock
from goqueue.wire.kafka.messages.metadata import ApiVersionsRequest
from tests.brokers import TestBroker
from tests.unit.doors.kafka.test_door_fuzz import frame
from tests.unit.testing.loops import turn

FAR_S = 60


async def stop_with_a_client_that_never_reads() -> int:
    """How many connections are left."""
    broker = replace(TestBroker().broker, clock=LoopClock())
    door = KafkaDoor(Gate(broker), KafkaLimits(drain_ms_max=50))
    address = await door.open("127.0.0.1", 0)
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        await loop.sock_connect(client, address)
        while not any(connection._is_full for connection in door.connections):
            await asyncio.wait_for(loop.sock_sendall(client, frame(ApiVersionsRequest(), 0) * 1000), FAR_S)
        door.stop_reading()
        await asyncio.wait_for(door.close(), FAR_S)
        await door.close()
    return len(door.connections)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_client_that_never_reads_does_not_hold_up_the_end(run: Callable[[Awaitable[int]], int]) -> None:
    assert run(stop_with_a_client_that_never_reads()) == 0


async def stop_with_a_fault_of_ours() -> list[str]:
    """What the loop was told of."""
    told: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(str(context.get("exception"))))
    door = KafkaDoor(Gate(replace(TestBroker().broker, clock=LoopClock())), KafkaLimits(drain_ms_max=50))
    address = await door.open("127.0.0.1", 0)

    def fail() -> None:
        raise ValueError("a fault of ours")

    with socket.socket() as client:
        client.setblocking(False)
        await loop.sock_connect(client, address)
        while not door.connections:
            await turn()
        (connection,) = door.connections
        connection.expect_reply().on_lost = fail
        async with asyncio.timeout(FAR_S):
            await door.close()
    return told


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_fault_in_what_waits_for_a_reply_does_not_hold_up_the_end(
    run: Callable[[Awaitable[list[str]]], list[str]],
) -> None:
    assert run(stop_with_a_fault_of_ours()) == ["a fault of ours"]
