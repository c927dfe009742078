"""Who is still to be delivered, who waits for that, and which failures nobody has heard of."""

import asyncio
from collections.abc import Iterable

from goqueue.client.batches import Batch
from goqueue.client.errors import DeliveryFailed
from goqueue.client.message import Receipt
from goqueue.model.errors import GoQueueError

ERRORS_KEPT = 10


class Flushes:
    def __init__(self) -> None:
        self._live: set[Batch] = set()
        self._waiting: list[tuple[set[Batch], asyncio.Future[None]]] = []
        self._awaited: set[asyncio.Future[Receipt]] = set()
        """Messages whose sender waits for them, and so hears of a failure."""
        self._failed = 0
        self._errors: list[GoQueueError] = []

    def add(self, batch: Batch) -> None:
        self._live.add(batch)

    def split(self, batch: Batch, *halves: Batch) -> None:
        self._live.discard(batch)
        self._live.update(halves)
        for batches, _ in self._waiting:
            if batch in batches:
                batches.discard(batch)
                batches.update(halves)

    def awaits(self, futures: "Iterable[asyncio.Future[Receipt]]") -> None:
        self._awaited.update(futures)

    def awaits_no_more(self, futures: "Iterable[asyncio.Future[Receipt]]") -> None:
        self._awaited.difference_update(futures)

    def ended(self, batch: Batch, error: GoQueueError | None) -> None:
        self._live.discard(batch)
        if error is not None:
            self._count(batch, error)
        for batches, future in self._waiting:
            batches.discard(batch)
            if not batches and not future.done():
                future.set_result(None)

    def _count(self, batch: Batch, error: GoQueueError) -> None:
        unheard = [future for future in batch.futures if future not in self._awaited]
        for future in unheard:
            if not future.cancelled():
                future.exception()  # `flush` raises it, so that it need not be warned of
        if unheard:
            self._failed += len(unheard)
            if len(self._errors) < ERRORS_KEPT:
                self._errors.append(error)

    async def wait(self) -> None:
        """Until all that is accepted by now has been decided. DeliveryFailed: some of it, or of what came before,
        failed and was not told to anybody.
        """
        if self._live:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            entry = (set(self._live), future)
            self._waiting.append(entry)
            try:
                await future
            finally:
                self._waiting.remove(entry)
        failed, errors, self._failed, self._errors = self._failed, self._errors, 0, []
        if failed:
            raise DeliveryFailed(failed, errors)
