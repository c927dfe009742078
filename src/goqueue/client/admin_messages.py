"""The part of `Admin` that handles messages themselves, over HTTP, for tools. Programs use Producer and Worker."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from goqueue.client.admin_part import AdminPart
from goqueue.client.errors import ClientError, ConnectionLost
from goqueue.client.events import Event
from goqueue.client.times import Duration, Moment
from goqueue.wire.rest import operations as on

if TYPE_CHECKING:
    from goqueue.wire.rest import acks, groups, messages

BREAKS_MAX = 60
"""In a row, of a connection that follows a topic, before we give up: about two minutes."""


class MessageAdmin(AdminPart):
    async def publish(self, topic: str, given: Sequence[Mapping[str, Any]]) -> list[messages.Published]:
        """Each as over HTTP: `{"value": ..., "key": ..., "delay": "5m"}`. One that failed has an `error`."""
        return (await self.call(on.messages.PUBLISH, topic=topic, messages=given)).results

    async def read(
        self,
        topic: str,
        partition: int,
        *,
        offset: int | None = None,
        from_time: Moment | None = None,
        limit: int = 100,
    ) -> messages.Messages:
        """Some messages of a partition, and where to go on. Reading changes nothing."""
        where = {"topic": topic, "partition": partition, "offset": offset, "from_time": from_time}
        return await self.call(on.messages.READ_MESSAGES, limit=limit, **where)

    async def receive(
        self,
        topic: str,
        group: str,
        *,
        limit: int = 10,
        wait_ms: int = 0,
        lease: Duration | None = None,
        consumer: str | None = None,
        partition: int | None = None,
        start: Literal["earliest", "latest"] | None = None,
    ) -> list[groups.ReceivedMessage]:
        """Lease messages to a group. Settle each by its receipt."""
        received = await self.call(
            on.groups.RECEIVE_MESSAGES,
            topic=topic,
            group=group,
            max_messages=limit,
            wait=wait_ms,
            lease=lease,
            consumer=consumer,
            partition=partition,
            start=start,
        )
        return received.messages

    async def settle(
        self, receipts: Sequence[str], action: Literal["ack", "nack", "reject"] = "ack", *, reason: str | None = None
    ) -> list[acks.SettleResult]:
        """Each on its own; what failed has an `error`."""
        about = {} if reason is None else {"reason": reason}
        return await self.settle_each([{"receipt_handle": each, "action": action, **about} for each in receipts])

    async def settle_each(self, given: Sequence[Mapping[str, Any]]) -> list[acks.SettleResult]:
        """Each as over HTTP: `{"receipt_handle": ..., "action": "nack", "delay": "5m"}`; 1000 at most."""
        return (await self.call(on.acks.SETTLE_ALL, messages=given)).results

    async def follow(
        self,
        topic: str,
        *,
        partition: int | None = None,
        start: Literal["earliest", "latest"] | None = None,
        offset: int | None = None,
        from_time: Moment | None = None,
    ) -> AsyncGenerator[messages.MessageReply, None]:
        """Every message as it comes, without end. Once one has come, it goes on where it was after a break."""
        from goqueue.wire.rest.messages import MessageReply

        seen: str | None = None
        breaks = 0
        while True:
            where: dict[str, Any] = {"start": start, "offset": offset, "from_time": from_time}
            if seen is not None:
                where = {"last_event_id": seen}
            asked = {"topic": topic, "partition": partition, **where}
            try:
                async with aclosing(self._http.events(on.messages.FOLLOW_TOPIC, asked)) as events:
                    async for event in events:
                        breaks = 0
                        seen = event.id or seen
                        if event.name == "message":
                            yield msgspec.json.decode(event.data, type=MessageReply)
                        elif event.name == "end":
                            raise ClientError(_reason(event))
            except ConnectionLost:
                breaks += 1
                # Before the first message nobody knows what was missed, or whether there is a broker at all.
                if breaks == BREAKS_MAX or seen is None:
                    raise
            await self._http.pause(breaks)


def _reason(event: Event) -> str:
    return str(msgspec.json.decode(event.data, type=dict[str, str]).get("reason", "the topic ends here"))
