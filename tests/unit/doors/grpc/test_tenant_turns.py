"""Calls of a heavy tenant are begun one in a turn, and those of others do not wait for them: a real server and real
clients, judged by the order in which calls are begun.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from grpc import aio

from goqueue.broker.tenants.turns import FREE_TURNS, SLICE_S, Turns
from goqueue.client.grpc.client import new_request
from goqueue.doors.grpc.serving import Behaviour
from goqueue.machines.controller_commands import CreateTopic
from goqueue.model.tenancy import Tenant
from goqueue.wire.grpc.publish_pb2 import PublishRequest, PublishResponse
from tests.unit.doors.grpc.door_client import FAR_S, Door, open_door
from tests.unit.testing.loops import turn

QUIET = [f"quiet-{number}" for number in range(99)]
CONNECTIONS = 20
OWN_CONNECTION = [("grpc.use_local_subchannel_pool", 1)]
METHOD = "/goqueue.v1.PublishService/Publish"


class Tenants:
    """Of a door. The noisy one has had more than its part, and goes on having it; turns are taken by the test."""

    def __init__(self, door: Door, patch: pytest.MonkeyPatch) -> None:
        self._door = door
        self._channels: list[aio.Channel] = []
        self.begun: list[str] = []
        self.turns: Turns = door.b.broker.tenants.turns
        self.soon: deque[Callable[[], None]] = deque()
        patch.setattr(self.turns, "_call_soon", self.soon.append)
        began_s = self.turns.now_s()
        patch.setattr(self.turns, "now_s", lambda: began_s)
        audited = Behaviour.audited

        async def noted(behaviour: Behaviour, access: Any, *about: Any) -> bytes:
            self.begun.append(access.tenancy.tenant)
            self.turns.spend(access.tenancy.tenant, SLICE_S, began_s)
            return await audited(behaviour, access, *about)

        patch.setattr(Behaviour, "audited", noted)

    async def make(self) -> None:
        broker, loop = self._door.b.broker, asyncio.get_running_loop()
        for tenant in ("noisy", *QUIET):
            made, has_topic = loop.create_future(), loop.create_future()
            broker.tenants.create(Tenant(tenant, tenant), made.set_result)
            assert await made is None
            broker.topics.submit(CreateTopic(f"{tenant}~orders", broker.topics.new_id(), 1), has_topic.set_result)
            await has_topic
        self.turns.spend("noisy", 10.0, self.turns.now_s())
        for tenant in QUIET:
            self.turns.spend(tenant, 0.0, self.turns.now_s())

    def call(self, tenant: str) -> Any:
        """Through a connection of its own."""
        channel = aio.insecure_channel(self._door.address, options=OWN_CONNECTION)
        self._channels.append(channel)
        ask = channel.unary_unary(
            METHOD,
            request_serializer=PublishRequest.SerializeToString,
            response_deserializer=PublishResponse.FromString,
        )
        return ask(new_request("orders", b"x"), metadata=(("goqueue-tenant", tenant),))

    def turn(self) -> None:
        for _ in range(len(self.soon)):
            self.soon.popleft()()

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await turn()

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()


@asynccontextmanager
async def tenants(patch: pytest.MonkeyPatch) -> AsyncIterator[Tenants]:
    async with asyncio.timeout(FAR_S), open_door() as door:
        found = Tenants(door, patch)
        await found.make()
        try:
            yield found
        finally:
            await found.close()


async def all_at_once(house: Tenants) -> list[Any]:
    """The noisy one is first with all its calls; then the others come."""
    noisy: list[Awaitable[Any]] = [house.call("noisy") for _ in range(CONNECTIONS)]
    await house.until(lambda: len(house.begun) + house.turns.waiting("noisy") == CONNECTIONS)
    await asyncio.gather(*(house.call(tenant) for tenant in QUIET))
    return noisy


def test_nobody_waits_for_more_than_one_call_of_a_noisy_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with tenants(monkeypatch) as house:
            noisy = await all_at_once(house)
            assert house.begun[0] == "noisy"
            assert sorted(house.begun[1:]) == sorted(QUIET), "all are answered; of the noisy one nothing was begun"
            for number in range(1, CONNECTIONS):
                taken = 0
                while house.turns.waiting("noisy") == CONNECTIONS - number:
                    house.turn()
                    taken += 1
                assert taken == FREE_TURNS + 1
                await house.until(lambda number=number: house.begun.count("noisy") > number)  # type: ignore[misc]
                assert house.turns.waiting("noisy") == CONNECTIONS - 1 - number, "one in its turn"
            await asyncio.gather(*noisy)
            assert Counter(house.begun) == {"noisy": CONNECTIONS, **dict.fromkeys(QUIET, 1)}

    asyncio.run(main())


def test_were_it_not_for_turns_all_calls_of_the_noisy_tenant_would_be_begun_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That the test above can fail."""
    monkeypatch.setattr(Turns, "may_begin", lambda *_: True)

    async def main() -> None:
        async with tenants(monkeypatch) as house:
            await asyncio.gather(*await all_at_once(house))
            assert house.begun[:CONNECTIONS] == ["noisy"] * CONNECTIONS

    asyncio.run(main())


def test_a_call_that_is_cancelled_leaves_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with tenants(monkeypatch) as house:
            calls = [house.call("noisy") for _ in range(3)]
            await house.until(lambda: house.turns.waiting("noisy") == 2)
            for call in calls:
                call.cancel()
            await house.until(lambda: house.turns.waiting("noisy") == 0)
            assert house.begun == ["noisy"]

    asyncio.run(main())
