"""Members that come, go, fall silent and forget to acknowledge, on a node that restarts."""

import asyncio
from random import Random
from typing import Any

import pytest

from tests.unit.doors.http.door_client import Client, door
from tests.unit.doors.http.group_members import GROUP, Member, join, publish, restarted, topic

PARTITIONS = 5
STEPS = 60
MEMBERS_MAX = 4


class Play:
    def __init__(self, client: Client, random: Random) -> None:
        self.client = client
        self.random = random
        self.members: list[Member] = []
        self.sent: set[str] = set()
        self.done: list[str] = []

    async def step(self) -> None:
        deeds = (
            self.publish,
            self.join,
            self.poll,
            self.poll,
            self.poll,
            self.beat,
            self.leave,
            self.forget,
            self.wait,
        )
        await self.random.choice(deeds)()

    async def publish(self) -> None:
        values = [f"v{len(self.sent) + number}" for number in range(self.random.randint(1, 8))]
        await publish(self.client, *values, priority=self.random.choice(["high", "normal"]))
        self.sent.update(values)

    async def join(self) -> None:
        if len(self.members) < MEMBERS_MAX:
            self.members.append(await join(self.client, session_timeout=self.random.choice(["5s", "1m"])))

    async def leave(self) -> None:
        if self.members and self.random.random() < 0.5:
            await self._to(self.members.pop(self.random.randrange(len(self.members))), "leave")

    async def forget(self) -> None:
        """It is never heard of again."""
        if self.members and self.random.random() < 0.3:
            self.members.pop()

    async def wait(self) -> None:
        await self.client.b.advance(self.random.choice(["100ms", "2s", "20s"]))

    async def beat(self) -> None:
        for member in self.members[:]:
            await self._to(member, "heartbeat")

    async def _to(self, member: Member, what: str) -> None:
        """A member whose session is over hears of it and is gone."""
        reply = await self.client.http.post(f"{GROUP}/{what}", json={"member_id": member.id})
        assert reply.status_code in (200, 404), reply.text
        if reply.status_code == 404 and member in self.members:
            self.members.remove(member)

    async def poll(self) -> None:
        if not self.members:
            return
        member = self.random.choice(self.members)
        query: dict[str, str | int] = {"member_id": member.id, "timeout": "0s", "limit": self.random.randint(1, 6)}
        reply = await self.client.http.get(f"{GROUP}/poll", params=query)
        if reply.status_code == 404:
            self.members.remove(member)
            return
        assert reply.status_code == 200, reply.text
        polled = reply.json()
        way = self.random.choice(["receipts", "some", "offsets", "none"])
        if way == "offsets" and polled["messages"]:
            await self._commit(member, polled)
        elif way in ("receipts", "some"):
            await self._ack([each for each in polled["messages"] if way == "receipts" or self.random.random() < 0.5])

    async def _ack(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            await self.client.post("/messages/ack", receipt_handle=message["receipt_handle"])
            self.done.append(message["value"])

    async def _commit(self, member: Member, polled: dict[str, Any]) -> None:
        """As the page says: when all that the member holds is done. What else it holds was polled before."""
        before = await self._unsettled(polled["next_offset"])
        await self.client.post(f"{GROUP}/offsets", member_id=member.id, offsets=polled["next_offset"])
        self.done += before

    async def _unsettled(self, offsets: dict[str, dict[str, int]]) -> list[str]:
        """What a commit of these settles that was not settled before."""
        found = []
        settled = self._settled()
        for number, end in offsets["orders"].items():
            records = await self.client.b.read("orders", int(number))
            ranges = settled.get(int(number), [])
            found += [
                (each.value or b"").decode()
                for each in records
                if each.offset < end and not any(low <= each.offset <= high for low, high in ranges)
            ]
        return found

    def _settled(self) -> dict[int, list[tuple[int, int]]]:
        state = self.client.b.broker.queues.state_of("g")
        return {each.partition: [(0, each.start_offset - 1), *each.settled] for each in state.places}


async def play(seed: int) -> None:
    random = Random(seed)
    async with door() as client:
        await topic(client, PARTITIONS, attempts_max="200")
        stage = Play(client, random)
        for _ in range(STEPS):
            await stage.step()
        async with restarted(client) as again:
            stage.client = again
            for member in stage.members:
                member.client = again
            for _ in range(STEPS):
                await stage.step()
            await again.b.advance("5m")
            last = await join(again)
            for _ in range(100):
                reply = await last.poll(limit=100)
                await stage._ack(reply["messages"])
                if not reply["messages"]:
                    break
            assert sorted(stage.done) == sorted(stage.sent), f"seed {seed}"
            assert (await again.get(f"{GROUP}/lag"))["total_lag"] == 0, f"seed {seed}"
            await last.leave()
            offsets = (await again.get(f"{GROUP}/lag"))["partitions"]
            assert [each["committed_offset"] or 0 for each in offsets] == [each["end_offset"] for each in offsets]


@pytest.mark.parametrize("seed", range(4))
def test_every_message_is_done_exactly_once(seed: int) -> None:
    asyncio.run(play(seed))
