"""The part of `Admin` that looks at journeys of messages: what happened to them, and where they are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from goqueue.client.admin_part import PAGE, AdminPart
from goqueue.client.times import Moment
from goqueue.wire.rest import operations as on

if TYPE_CHECKING:
    from goqueue.wire.rest import traces as rest_traces


class TraceAdmin(AdminPart):
    async def traces(self, limit: int = 100) -> list[rest_traces.TraceSummary]:
        """Of the latest messages that anything happened to."""
        return (await self.call(on.traces.LIST_TRACES, limit=limit)).traces

    async def trace(self, trace_id: str) -> rest_traces.TraceDetails:
        return await self.call(on.traces.DESCRIBE_TRACE, id=trace_id)

    async def search_traces(  # noqa: PLR0913  one for each filter, by name only
        self,
        *,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        status: str | None = None,
        key: str | None = None,
        limit: int = 100,
        spans: bool = False,
    ) -> list[rest_traces.TraceSummary]:
        """`status`: completed, error or pending. A key is looked for in one topic. `spans`: with all that happened."""
        found = await self.call(
            on.traces.SEARCH_TRACES,
            topic=topic,
            partition=partition,
            consumer_group=group,
            start=start,
            end=end,
            status=status,
            key=key,
            limit=limit,
            spans=spans or None,
        )
        return found.traces

    async def all_traces(
        self, topic: str, partition: int, *, group: str | None = None
    ) -> AsyncIterator[rest_traces.TraceSummary]:
        """By offset, however many are remembered of one partition, each with all that happened."""
        chosen = {"topic": topic, "partition": partition, "consumer_group": group, "spans": True}
        async for page in self._pages(on.traces.SEARCH_TRACES, limit=PAGE, cursor="0", **chosen):
            for each in page.traces:
                yield each

    async def stored_steps(
        self, *, topic: str | None = None, cursor: int = 0, until: int | None = None
    ) -> rest_traces.StoredSteps:
        """A page of all that happened and is stored, oldest first; the next one is at `next`."""
        return await self.call(on.traces.STORED_STEPS, topic=topic, cursor=cursor, until=until)

    async def trace_stats(self) -> rest_traces.TraceStats:
        return await self.call(on.traces.TRACE_STATS)

    async def why(self, topic: str, partition: int, offset: int) -> rest_traces.Where:
        """Where a message is, and why it is not delivered yet."""
        return await self.call(on.traces.WHERE_IS, topic=topic, partition=partition, offset=offset)

    async def why_key(self, topic: str, key: str) -> rest_traces.Where:
        """The same for the latest message of a key."""
        return await self.call(on.traces.WHERE_IS_KEY, topic=topic, key=key)
