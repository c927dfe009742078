"""Of a tenant that takes more than its part, one connection is read in a turn of the event loop."""

from collections import deque
from collections.abc import Callable
from typing import Any

from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.kafka.tenant_turns import TenantTurns
from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.produce import ProduceResponse
from tests.unit.doors.kafka.transports import feed
from tests.unit.doors.tenant_node import KafkaTenant
from tests.unit.doors.test_tenant_limits import code_of, produced


class Turned:
    """A clock whose turns the test takes."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.soon: deque[Callable[[], None]] = deque()
        self.call_after, self.call_soon = clock.call_after, self.soon.append

    def monotonic_s(self) -> float:
        seconds: float = self._clock.monotonic_s()
        return seconds

    def turn(self) -> None:
        for _ in range(len(self.soon)):
            self.soon.popleft()()


class Slow(KafkaDoor):
    """Handling what was read takes long."""

    spent_ms = 50

    def read_ended(self, connection: Connection) -> None:
        self._clock._now_ms += self.spent_ms  # type: ignore[attr-defined]
        super().read_ended(connection)


class Houses(KafkaTenant):
    def __init__(self) -> None:
        super().__init__()
        self.door = self.slow = Slow(self.gate)
        self.clock = Turned(self.gate.clock)
        self.door._turns = TenantTurns(self.clock, self.gate)


def is_read(*clients: Any) -> list[bool]:
    return [client.transport.is_reading_now for client in clients]


def test_connections_of_a_heavy_tenant_are_read_one_in_a_turn() -> None:
    house = Houses()
    clients = [house.client() for _ in range(3)]
    for client in clients:
        assert code_of(*client.ask(produced(b"x"), ProduceResponse, 9)) == Code.NONE, "answered all the same"
    assert is_read(*clients) == [False, False, False]
    house.clock.turn()
    assert is_read(*clients) == [True, False, False]
    clients[0].ask(produced(b"x"), ProduceResponse, 9)
    house.clock.turn()
    assert is_read(*clients) == [False, True, False]
    house.clock.turn()
    house.clock.turn()
    assert is_read(*clients) == [True, True, True]
    assert not house.clock.soon, "nothing is left to do"


def test_a_light_tenant_is_read_as_before() -> None:
    house = Houses()
    house.slow.spent_ms = 1
    client = house.client()
    client.ask(produced(b"x"), ProduceResponse, 9)
    assert is_read(client) == [True]
    house.slow.spent_ms = 50
    client.ask(produced(b"x"), ProduceResponse, 9)
    assert is_read(client) == [False]
    house.clock.turn()
    house.broker.clock.advance(1000)
    house.slow.spent_ms = 1
    client.ask(produced(b"x"), ProduceResponse, 9)
    assert is_read(client) == [True], "what it did a second ago does not count"


def test_a_frame_that_comes_in_pieces_is_answered_though_its_tenant_is_heavy() -> None:
    house = Houses()
    client = house.client()
    frame = produced(b"x" * 1000)
    for piece in (frame[:500], frame[500:900], frame[900:]):
        assert is_read(client) == [True]
        feed(client._connection, piece)
        assert is_read(client) == [False]
        house.clock.turn()
    house.broker.commit()
    assert len(client.answers(ProduceResponse, 9)) == 1


def test_one_that_is_lost_while_it_waits_does_not_stop_the_others() -> None:
    house = Houses()
    clients = [house.client() for _ in range(2)]
    for client in clients:
        client.ask(produced(b"x"), ProduceResponse, 9)
    clients[0]._connection.connection_lost(None)
    house.clock.turn()
    house.clock.turn()
    assert is_read(clients[1]) == [True]
