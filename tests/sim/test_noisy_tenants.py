"""One noisy and 99 quiet tenants on one node: how long the quiet ones wait to be served, by a virtual clock. The Kafka
API, the gate and the quotas are real; that each request takes a millisecond, and that a turn of the event loop takes
all that have come before it, in their order, is how a node with one busy processor behaves.
"""

from collections import deque
from collections.abc import Callable
from functools import cache
from random import Random

import pytest

from goqueue.broker.gate import Gate
from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.kafka.tenant_turns import TenantTurns
from goqueue.machines.controller_commands import CreateTopic
from goqueue.machines.tenant_commands import ChangeTenant
from goqueue.model.tenancy import Tenant
from goqueue.testing.virtual_clock import VirtualClock
from goqueue.wire.kafka.messages.produce import ProduceRequest
from tests.brokers import TestBroker
from tests.unit.doors.kafka.every_api import sample
from tests.unit.doors.kafka.test_door_fuzz import frame
from tests.unit.doors.kafka.transports import FakeTransport, feed

QUIET = 99
REQUESTS = 400
WORK_MS = 1
LOAD = 0.5
"""Of what the node can do, by the quiet ones alone."""
CONNECTIONS = 20
"""Of the noisy one: each sends its next request as soon as the last one was answered."""
FIRST_MS = 300
"""Before the quiet ones begin: a quota lets a tenant use what it did not use in the last second, all at once."""
LIMIT = 50
NOISY = "noisy"
PRODUCE = frame(sample(ProduceRequest, 8), 8)


class Door(KafkaDoor):
    """Time passes while a request is handled."""

    def __init__(self, gate: Gate, clock: VirtualClock) -> None:
        super().__init__(gate)
        self._virtual = clock
        self.turn: deque[Callable[[], None]] = deque()
        gate.turns._call_soon = self.turn.append  # type: ignore[assignment]

    def read_ended(self, connection: Connection, end: int) -> None:
        self._virtual._now_ms += WORK_MS
        super().read_ended(connection, end)

    def next_turn(self) -> None:
        for _ in range(len(self.turn)):
            self.turn.popleft()()


class Client:
    def __init__(self, door: KafkaDoor, gate: Gate, tenant: str) -> None:
        self.transport = FakeTransport()
        self.connection = door._connect()
        self.connection.connection_made(self.transport)
        door._set_access(self.connection, gate.trusted_in(tenant))


class House:
    def __init__(self, publish_rate_limit: int | None) -> None:
        self.broker = TestBroker()
        tenants = self.broker.broker.tenants
        self.replies: list[object] = []
        names = [NOISY, *(f"quiet-{number}" for number in range(QUIET))]
        for number, tenant in enumerate(names):
            tenants.create(Tenant(tenant, tenant), self.replies.append)
            self.broker.commit()
            command = CreateTopic(f"{tenant}~orders", bytes([number + 1]) * 16, 1)
            self.broker.broker.topics.submit(command, lambda _reply: None)
            self.broker.commit()
        if publish_rate_limit is not None:
            quotas = {"publish_rate_limit": publish_rate_limit}
            tenants.change(ChangeTenant(NOISY, quotas=quotas), self.replies.append)
            self.broker.commit()
        assert self.replies == [None] * len(self.replies)
        gate = Gate(self.broker.broker)
        self.door = Door(gate, self.broker.clock)
        self.quiet = [Client(self.door, gate, tenant) for tenant in names[1:]]
        self.noisy = [Client(self.door, gate, NOISY) for _ in range(CONNECTIONS)]

    def serve(self, client: Client) -> None:
        before = len(client.transport.written)
        feed(client.connection, PRODUCE)
        self.broker.commit()
        assert len(client.transport.written) > before, "every request is answered"
        self.broker.clock.run()

    def stored(self, tenant: str) -> int:
        return self.broker.broker.topics.end_offset(f"{tenant}~orders", 0) or 0


def waits_of_the_quiet(seed: int, *, is_noisy: bool, publish_rate_limit: int | None = None) -> list[float]:
    """Milliseconds between the arrival of each of their requests and its turn."""
    dice, house = Random(seed), House(publish_rate_limit)
    began_ms, at_ms, waits = house.broker.clock.now_ms(), float(FIRST_MS), []
    turns = house.broker.broker.tenants.turns
    turns.spend(NOISY, 0.0, turns.now_s())
    turns.spend("quiet-0", 0.0, turns.now_s())  # it has been there a moment ago
    arrivals: list[tuple[float, int, int]] = []
    for number in range(REQUESTS):
        at_ms += dice.expovariate(LOAD / WORK_MS)
        arrivals.append((at_ms, number, dice.randrange(QUIET)))
    noisy = dict.fromkeys(range(CONNECTIONS if is_noisy else 0), 0.0)
    """When each connection of the noisy one has sent its next request."""
    served = 0
    while arrivals:
        now_ms = house.broker.clock.now_ms() - began_ms
        noisy = {each: at if house.noisy[each].transport.is_reading_now else now_ms for each, at in noisy.items()}
        loud = [(at, each, -1) for each, at in noisy.items() if house.noisy[each].transport.is_reading_now]
        ready = sorted([*loud, *(each for each in arrivals if each[0] <= now_ms)])
        arrivals = [each for each in arrivals if each[0] > now_ms]
        for came_ms, each, tenant in ready:  # one turn of the event loop
            if tenant >= 0 and not house.quiet[tenant].transport.is_reading_now:
                arrivals.append((came_ms, each, tenant))  # it has had its turn: it is read in the next
            elif tenant >= 0:
                waits.append(house.broker.clock.now_ms() - began_ms - came_ms)
                house.serve(house.quiet[tenant])
            else:
                house.serve(house.noisy[each])
                noisy[each] = house.broker.clock.now_ms() - began_ms
                served += 1
        if not ready:
            house.broker.clock.advance(WORK_MS)
        house.door.next_turn()
    assert house.stored(NOISY) == served, "what was acknowledged is there, however much it was throttled"
    assert sum(house.stored(f"quiet-{number}") for number in range(QUIET)) == REQUESTS
    return sorted(waits)


def p99(waits: list[float]) -> float:
    return waits[len(waits) * 99 // 100]


@cache
def alone() -> float:
    return p99(waits_of_the_quiet(1, is_noisy=False))


def test_with_a_quota_of_the_noisy_tenant_the_quiet_wait_at_most_twice_as_long_as_alone() -> None:
    together = p99(waits_of_the_quiet(1, is_noisy=True, publish_rate_limit=LIMIT))
    assert alone() > WORK_MS
    assert together <= 2 * alone(), (together, alone())


def test_without_a_quota_a_tenant_with_many_connections_takes_its_turn_as_one() -> None:
    together = p99(waits_of_the_quiet(1, is_noisy=True))
    assert together <= 2 * alone(), (together, alone())


def test_were_it_not_for_turns_of_tenants_the_others_would_wait_for_each_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That the test above can fail."""
    monkeypatch.setattr(TenantTurns, "read_ended", lambda *_: None)
    assert p99(waits_of_the_quiet(1, is_noisy=True)) > 2 * alone()
