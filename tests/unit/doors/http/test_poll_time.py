"""When a poll of a member that finds nothing is over."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from goqueue.broker.groups.members import Members
from goqueue.model.members import Who
from tests.unit.doors.http.door_client import door
from tests.unit.doors.http.group_members import join, started, topic


def test_a_poll_asks_once_more_when_its_time_has_come_and_not_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of a second is no whole number in seconds: what was left of the last millisecond counted as none."""
    find, asked = Members.find, 0

    def counted(self: Members, who: Who, on_found: Callable[[Any], None]) -> None:
        nonlocal asked
        asked += 1
        assert asked < 10, "it asks again and again"
        find(self, who, on_found)

    async def inside() -> None:
        async with door() as client:
            await topic(client)
            member = await join(client)
            monkeypatch.setattr(Members, "find", counted)
            waiting = await started(client, member.poll("333ms"))
            await client.b.advance("400ms")
            assert (await waiting)["messages"] == []

    asyncio.run(inside())
    assert asked <= 2
