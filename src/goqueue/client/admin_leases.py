"""The part of `Admin` that leases much at once, for engines that read the messages themselves. Programs use Worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from goqueue.client.admin_part import PAGE, AdminPart
from goqueue.client.times import Duration
from goqueue.wire.rest import operations as on

if TYPE_CHECKING:
    from goqueue.wire.rest import leases as rest_leases


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
        taken = await self.call(
            on.leases.TAKE_LEASES,
            group=group,
            topics=topics,
            max_messages=limit,
            lease=lease,
            wait=wait_ms,
            consumer=consumer,
            start=start,
        )
        return taken.leases

    async def extend_leases(self, receipts: Sequence[str], hold: Duration) -> list[int]:
        """How many messages of each are still held, now for `hold` from now on."""
        return (await self.call(on.leases.EXTEND_LEASES, receipts=receipts, timeout=hold)).messages

    async def finish_leases(self, leases: Sequence[Mapping[str, Any]]) -> list[int]:
        """Acknowledge what is left of each: `{"receipt": ..., "runs": ...}`. Gives how many messages that were."""
        return (await self.call(on.leases.FINISH_LEASES, leases=leases)).messages

    async def leases(self, group: str | None = None, topic: str | None = None) -> AsyncIterator[rest_leases.HeldLease]:
        """All that consumers hold now, in runs of neighbours."""
        async for page in self._pages(on.leases.LIST_LEASES, group=group, topic=topic, limit=PAGE):
            for each in page.leases:
                yield each
