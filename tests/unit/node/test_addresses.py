"""Where the members of one machine listen."""

import asyncio
import socket
from typing import Any

import pytest

from goqueue.model.listener import Api
from goqueue.node.doors import DoorStaysShut
from goqueue.node.listener_values import ListenerSetting
from goqueue.node.processes.addresses import Addresses
from goqueue.node.settings import Settings
from goqueue.node.values import Address

LAST = Address("127.0.0.1", 65535)
FREE = Address("127.0.0.1", 0)


class Unbound(Addresses):
    """Every address is free, and nobody gets it."""

    def _bind(self, family: int, kind: int, protocol: int, where: tuple[Any, ...]) -> int:
        assert 0 <= where[1] <= LAST.port, "the system has no such port, and says so with an OverflowError"
        return where[1] or 40_000


@pytest.mark.parametrize(
    "given",
    [
        {"kafka": LAST},
        {"kafka": FREE, "kafka_advertised": LAST},
        {"listeners": (ListenerSetting(Api.KAFKA, LAST, "inside"),)},
        {"listeners": (ListenerSetting(Api.KAFKA, FREE, "inside", advertised=LAST),)},
    ],
    ids=["kafka", "kafka_advertised", "listener", "listener_advertised"],
)
def test_more_members_than_there_are_ports_are_refused_in_words(given: dict[str, Any]) -> None:
    settings = Settings(processes=2, **given)
    with pytest.raises(DoorStaysShut, match=r"member 2 .* port 65536, and 65535 is the last"):
        asyncio.run(Unbound().members(settings))


def test_the_last_port_is_one_for_the_last_member() -> None:
    settings = Settings(processes=2, kafka=Address("127.0.0.1", 65534))
    assert [each.kafka.port for each in asyncio.run(Unbound().members(settings))] == [65534, 65535]


NEXT_IS = {
    "http": {"kafka": Address("127.0.0.1", 9092), "http": Address("127.0.0.1", 9093)},
    "http everywhere": {"kafka": Address("127.0.0.1", 9092), "http": Address("0.0.0.0", 9093)},
    "grpc": {"kafka": Address("127.0.0.1", 8999), "grpc": Address("127.0.0.1", 9000)},
    "another listener": {
        "listeners": (
            ListenerSetting(Api.KAFKA, Address("127.0.0.1", 9092), "plain"),
            ListenerSetting(Api.KAFKA, Address("127.0.0.1", 9093), "secured"),
        )
    },
}


@pytest.mark.parametrize("given", NEXT_IS.values(), ids=NEXT_IS)
def test_a_port_of_a_member_that_is_another_door_is_refused_in_words(given: dict[str, Any]) -> None:
    """They would share it, and the system would divide connections among both."""
    with pytest.raises(DoorStaysShut, match=r"cannot open the .* door at .*: the \w+ door is there"):
        asyncio.run(Unbound().members(Settings(processes=2, **given)))


def test_nobody_but_members_gets_a_port_while_no_member_listens_there() -> None:
    async def scenario() -> None:
        ours, others = Addresses(), Addresses()
        try:
            kept = (await ours.members(Settings(processes=2, kafka=FREE, http=FREE, grpc=FREE)))[1].http
            with socket.socket() as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with pytest.raises(OSError, match="in use"):
                    server.bind(kept)
            with pytest.raises(DoorStaysShut, match="in use"):
                await others.members(Settings(processes=2, kafka=FREE, http=kept, grpc=FREE))
            for _ in range(2):
                with socket.socket() as member:
                    member.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    member.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                    member.bind(kept)
                    member.listen()
        finally:
            ours.close()
            others.close()

    asyncio.run(scenario())
