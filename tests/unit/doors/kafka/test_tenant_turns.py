"""Of a tenant that takes more than its part, one connection is read in a turn of the event loop."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from goqueue.broker.tenants import turns
from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.produce import ProduceResponse
from tests.unit.doors.kafka.transports import feed
from tests.unit.doors.tenant_node import KafkaTenant
from tests.unit.doors.test_tenant_limits import code_of, produced


@pytest.fixture(autouse=True)
def each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    take_every_turn(monkeypatch)


def take_every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the loop, none of which is for others."""
    monkeypatch.setattr(turns, "FREE_TURNS", 0)
    monkeypatch.setattr(turns, "FREE_TURNS_MAX", 0)


class Slow(KafkaDoor):
    """Handling what was read takes long."""

    spent_ms = 50

    def read_ended(self, connection: Connection, end: int) -> None:
        self._clock._now_ms += self.spent_ms  # type: ignore[attr-defined]
        super().read_ended(connection, end)


class Houses(KafkaTenant):
    """Turns of the event loop are taken by the test."""

    def __init__(self) -> None:
        super().__init__()
        self.door = self.slow = Slow(self.gate)
        self.soon: deque[Callable[[], None]] = deque()
        self.gate.turns._call_soon = self.soon.append  # type: ignore[assignment]
        for other in ("default", "shop"):
            self.gate.turns.spend(other, 0.0, self.gate.turns.now_s())

    def turn(self) -> None:
        for _ in range(len(self.soon)):
            self.soon.popleft()()


def is_read(*clients: Any) -> list[bool]:
    return [client.transport.is_reading_now for client in clients]


def test_connections_of_a_heavy_tenant_are_read_one_in_a_turn() -> None:
    house = Houses()
    clients = [house.client() for _ in range(3)]
    for client in clients:
        assert code_of(*client.ask(produced(b"x"), ProduceResponse, 9)) == Code.NONE, "answered all the same"
    assert is_read(*clients) == [True, False, False]
    clients[0].ask(produced(b"x"), ProduceResponse, 9)
    assert is_read(*clients) == [False, False, False]
    for read in ([False, True, False], [False, True, True], [True, True, True]):
        house.turn()
        assert is_read(*clients) == read
    house.turn()
    assert not house.soon, "nothing is left to do"


def test_a_heavy_tenant_with_one_connection_is_read_in_every_turn() -> None:
    house = Houses()
    client = house.client()
    for _ in range(5):
        client.ask(produced(b"x"), ProduceResponse, 9)
        assert is_read(client) == [True]
        house.turn()


def test_a_light_tenant_is_read_as_before() -> None:
    house = Houses()
    house.slow.spent_ms = 1
    client = house.client()
    client.ask(produced(b"x"), ProduceResponse, 9)
    assert is_read(client) == [True]
    assert not house.soon
    house.slow.spent_ms = 50
    client.ask(produced(b"x"), ProduceResponse, 9)
    assert len(house.soon) == 1, "it is heavy"
    house.turn()
    house.broker.clock.advance(1000)
    house.slow.spent_ms = 1
    client.ask(produced(b"x"), ProduceResponse, 9)
    assert not house.soon, "what it did a second ago does not count"


def test_a_frame_that_comes_in_pieces_is_answered_though_its_tenant_is_heavy() -> None:
    house = Houses()
    other, client = house.client(), house.client()
    frame = produced(b"x" * 1000)
    for piece in (frame[:500], frame[500:900], frame[900:]):
        other.ask(produced(b"x"), ProduceResponse, 9)
        assert is_read(client) == [True]
        feed(client._connection, piece)
        assert is_read(client) == [False]
        for _ in range(3):
            house.turn()
    house.broker.commit()
    assert len(client.answers(ProduceResponse, 9)) == 1


def test_one_that_is_lost_leaves_the_line() -> None:
    house = Houses()
    clients = [house.client() for _ in range(3)]
    for client in clients:
        client.ask(produced(b"x"), ProduceResponse, 9)
    assert house.gate.turns.waiting("acme") == 2
    clients[1]._connection.connection_lost(None)
    assert house.gate.turns.waiting("acme") == 1
    house.turn()
    assert is_read(clients[2]) == [True]
