"""The part of `Admin` that leases much at once, for engines that read the messages themselves. Programs use Worker."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal

from goqueue.client.admin_part import AdminPart
from goqueue.client.http import word
from goqueue.client.times import Duration
from goqueue.wire.rest import leases as rest_leases

PAGE = 1000


class LeaseAdmin(AdminPart):
    async def take_leases(
        self,
        group: str,
        topics: Sequence[str],
        *,
        limit: int = 10_000,
        lease: Duration | None = None,
        wait_ms: int = 0,
        consumer: str | None = None,
        start: Literal["earliest", "latest"] | None = None,
    ) -> list[rest_leases.TakenLease]:
        """What is ready, as ranges of offsets; the receipt of one message is that of its lease, a dot and its offset.
        Of a partition no more than `unacked.max` allows.
        """
        body = {
            "topics": topics,
            "max_messages": limit,
            "lease": lease,
            "wait": wait_ms,
            "consumer": consumer,
            "start": start,
        }
        path = f"/groups/{word(group)}/leases"
        return (await self._http.ask(rest_leases.TakenLeases, "POST", path, body, wait_s=wait_ms / 1000)).leases

    async def extend_leases(self, receipts: Sequence[str], hold: Duration) -> list[int]:
        """How many messages of each are still held, now for `hold` from now on."""
        body = {"receipts": receipts, "timeout": hold}
        return (await self._http.ask(rest_leases.LeaseCounts, "POST", "/leases/extend", body)).messages

    async def finish_leases(self, leases: Sequence[Mapping[str, Any]]) -> list[int]:
        """Acknowledge what is left of each: `{"receipt": ..., "runs": ...}`. Gives how many messages that were."""
        body = {"leases": leases}
        return (await self._http.ask(rest_leases.LeaseCounts, "POST", "/leases/finish", body)).messages

    async def leases(self, group: str | None = None, topic: str | None = None) -> AsyncIterator[rest_leases.HeldLease]:
        """All that consumers hold now, in runs of neighbours."""
        cursor: str | None = None
        while True:
            query = {"group": group, "topic": topic, "limit": PAGE, "cursor": cursor}
            page = await self._http.ask(rest_leases.HeldLeases, "GET", "/leases", query=query)
            for each in page.leases:
                yield each
            if page.next is None:
                return
            cursor = page.next
