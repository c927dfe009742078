"""The part of `Admin` that looks at journeys of messages: what happened to them, and where they are."""

from collections.abc import AsyncIterator

from goqueue.client.admin_part import AdminPart
from goqueue.client.http import word
from goqueue.client.times import Moment
from goqueue.wire.rest import traces as rest_traces

PAGE = 1000


class TraceAdmin(AdminPart):
    async def traces(self, limit: int = 100) -> list[rest_traces.TraceSummary]:
        """Of the latest messages that anything happened to."""
        return (await self._http.ask(rest_traces.TraceList, "GET", "/traces", query={"limit": limit})).traces

    async def trace(self, trace_id: str) -> rest_traces.TraceDetails:
        return await self._http.ask(rest_traces.TraceDetails, "GET", f"/traces/{word(trace_id)}")

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
        query = {
            "topic": topic,
            "partition": partition,
            "consumer_group": group,
            "start": start,
            "end": end,
            "status": status,
            "key": key,
            "limit": limit,
            "spans": "true" if spans else None,
        }
        return (await self._http.ask(rest_traces.TraceSearchResult, "GET", "/traces/search", query=query)).traces

    async def all_traces(
        self, topic: str, partition: int, *, group: str | None = None
    ) -> AsyncIterator[rest_traces.TraceSummary]:
        """By offset, however many are remembered of one partition, each with all that happened."""
        chosen = {"topic": topic, "partition": partition, "consumer_group": group, "spans": "true"}
        cursor: str | None = "0"
        while cursor is not None:
            query = {**chosen, "limit": PAGE, "cursor": cursor}
            page = await self._http.ask(rest_traces.TraceSearchResult, "GET", "/traces/search", query=query)
            for each in page.traces:
                yield each
            cursor = page.next

    async def stored_steps(
        self, *, topic: str | None = None, cursor: int = 0, until: int | None = None
    ) -> rest_traces.StoredSteps:
        """A page of all that happened and is stored, oldest first; the next one is at `next`."""
        query = {"topic": topic, "cursor": cursor, "until": until}
        return await self._http.ask(rest_traces.StoredSteps, "GET", "/traces/steps", query=query)

    async def trace_stats(self) -> rest_traces.TraceStats:
        return await self._http.ask(rest_traces.TraceStats, "GET", "/traces/stats")

    async def why(self, topic: str, partition: int, offset: int) -> rest_traces.Where:
        """Where a message is, and why it is not delivered yet."""
        path = f"/topics/{word(topic)}/partitions/{partition}/messages/{offset}/why"
        return await self._http.ask(rest_traces.Where, "GET", path)

    async def why_key(self, topic: str, key: str) -> rest_traces.Where:
        """The same for the latest message of a key."""
        return await self._http.ask(rest_traces.Where, "GET", f"/topics/{word(topic)}/why", query={"key": key})
