"""Where the members of one machine listen."""

import asyncio
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
