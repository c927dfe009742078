"""Turns of tenants: one share for all APIs, and who goes leaves the line."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from goqueue.broker.tenants.turns import FREE_TURNS, FREE_TURNS_MAX, PARTS, SHARED_S, WINDOW_S, Turns
from goqueue.doors.http.app import HttpApp
from goqueue.testing import Simulation, VirtualClock, broker
from goqueue.testing.virtual_loop import let_pass
from goqueue.wire.kafka.messages.produce import ProduceResponse
from tests.sim.test_noisy_tenants_over_http import NOISY, Noisy, furnish, over_http
from tests.unit.doors.http.bare import Asked, Bare
from tests.unit.doors.kafka.test_tenant_turns import Houses, take_every_turn
from tests.unit.doors.tenant_node import ACME
from tests.unit.doors.test_tenant_limits import produced
from tests.unit.testing.loops import turn


class Taken:
    """Turns that a test takes."""

    def __init__(self, *tenants: str) -> None:
        self.clock = VirtualClock()
        self.turns = Turns(self.clock)
        self.soon: deque[Callable[[], None]] = deque()
        self.turns._call_soon = self.soon.append  # type: ignore[assignment]
        self.went: list[str] = []
        for tenant in tenants:
            self.turns.spend(tenant, 0.0, self.turns.now_s())

    def spend(self, tenant: str, seconds: float) -> None:
        self.turns.spend(tenant, seconds, self.turns.now_s())

    def begin(self, tenant: str, who: str = "") -> bool:
        """False: it lined up."""
        if self.turns.may_begin(tenant, self.turns.now_s()):
            return True
        self.turns.line_up(tenant, who, lambda: self.went.append(who))
        return False

    def turn(self) -> None:
        for _ in range(len(self.soon)):
            self.soon.popleft()()


def test_nobody_waits_on_a_node_that_one_tenant_uses() -> None:
    house = Taken("acme")
    house.spend("acme", WINDOW_S)
    assert [house.begin("acme", who) for who in "abc"] == [True, True, True]
    house.spend("shop", 0.0)
    assert [house.begin("acme", who) for who in "ab"] == [True, False]
    house.clock.advance(1000 * SHARED_S)
    house.spend("acme", 2 * WINDOW_S)
    while house.soon:
        house.turn()
    assert [house.begin("acme", who) for who in "ab"] == [True, True], "the other has not been there for a while"


def test_as_many_are_begun_in_a_turn_as_take_a_millisecond() -> None:
    house = Taken("acme", "shop")
    house.spend("acme", WINDOW_S)
    for number in range(100):
        house.begin("acme", str(number))
    for _ in range(FREE_TURNS + 1):
        house.turn()
    assert house.went == ["1"], "nobody knows yet"
    sizes: list[int] = []
    for _ in range(8):
        before = len(house.went)
        house.spend("acme", 0.00025 * (len(house.went) - sum(sizes, 0)))
        sizes.append(len(house.went) - sum(sizes, 0))
        for _ in range(FREE_TURNS + 1):
            house.turn()
        assert len(house.went) > before
    assert sizes[-1] == 3, "the first is taken to have taken a whole one"


def test_where_others_are_they_have_some_turns_in_between() -> None:
    house = Taken("acme", "shop")
    house.spend("acme", WINDOW_S)
    assert [house.begin("acme", who) for who in "abc"] == [True, False, False]
    for went in ([], ["b"]):
        for _ in range(FREE_TURNS):
            house.turn()
            assert house.went == went
        house.turn()
    assert house.went == ["b", "c"]


def test_others_that_begin_something_in_every_turn_go_first_but_not_for_ever() -> None:
    house = Taken("acme", "shop")
    house.spend("acme", WINDOW_S)
    assert [house.begin("acme", who) for who in "ab"] == [True, False]
    for _ in range(FREE_TURNS_MAX):
        assert house.begin("shop")
        house.turn()
    assert house.went == []
    assert house.begin("shop")
    house.turn()
    assert house.went == ["b"]


def test_a_tenant_is_heavy_by_its_part_of_as_many_as_there_are() -> None:
    house = Taken("acme")
    house.spend("acme", WINDOW_S / PARTS)
    assert not house.turns.is_heavy("acme", house.turns.now_s())
    for number in range(9):
        house.spend(f"shop-{number}", 0.0)
    assert house.turns.is_heavy("acme", house.turns.now_s())
    house.clock.advance(2000 * WINDOW_S)
    assert not house.turns.is_heavy("acme", house.turns.now_s()), "that was long ago"


def test_what_a_tenant_uses_over_kafka_counts_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    take_every_turn(monkeypatch)
    house = Houses()
    clients = [house.client() for _ in range(2)]
    for client in clients:
        client.ask(produced(b"x"), ProduceResponse, 9)
    assert house.gate.turns.waiting("acme") == 1

    async def ask() -> None:
        async with broker() as b:
            bare = Bare(b)
            bare._app = HttpApp(house.gate)
            asking = asyncio.ensure_future(bare.ask(Asked("GET", "/topics"), headers=ACME))
            while house.gate.turns.waiting("acme") < 2:
                await turn()
            house.turn()
            assert house.gate.turns.waiting("acme") == 1, "the connection was first"
            house.turn()
            assert (await asking).status == 200

    asyncio.run(ask())


def test_a_node_without_tenants_looks_at_no_clock() -> None:
    async def ask() -> None:
        async with broker() as b:
            b.broker.tenants.turns.now_s = lambda: 1 / 0
            assert (await Bare(b).ask(Asked("GET", "/topics"))).status == 200

    asyncio.run(ask())


def test_an_http_connection_that_is_closed_leaves_the_line() -> None:
    async def scenario(sim: Simulation) -> None:
        await furnish(sim)
        turns, me = sim.nodes[0].broker.tenants.turns, sim.process("me")
        soon: list[Any] = []
        turns._call_soon = soon.append  # type: ignore[assignment]
        clients = [Noisy(number, over_http) for number in range(3)]
        for client in clients:
            await client.connect(me)
        turns.spend(NOISY, 10.0, turns.now_s())
        turns.spend("quiet-0", 0.0, turns.now_s())
        for client in clients:
            client.on_answer = lambda: None
            client.send()
        await let_pass(0.09)
        assert turns.waiting(NOISY) == 2
        for client in clients:
            client.transport.abort()
        await let_pass(1)
        assert turns.waiting(NOISY) == 0
        assert sim.nodes[0].broker.topics.end_offset(f"{NOISY}~orders", 0) == 1, "nothing is done for who is gone"

    Simulation(1).run(scenario)
