"""Several nodes of one cluster: any of them answers, so one that does not is passed over for the next."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from goqueue.client.exchange import Answer, Ask, Exchange, ExchangeFailed, Streamed

UNAVAILABLE = 503


class Exchanges:
    """Asks the one that answered last, as long as it does."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._exchanges = exchanges
        self._current = 0

    def _next(self, failed: int) -> None:
        """Unless somebody else has gone on already."""
        if self._current == failed:
            self._current = (failed + 1) % len(self._exchanges)

    async def ask(self, ask: Ask) -> Answer:
        """What was never sent is sent to the next. Whether to ask again what may have been done, its asker knows."""
        for attempt in range(len(self._exchanges)):
            current = self._current
            try:
                answer = await self._exchanges[current].ask(ask)
            except ExchangeFailed as error:
                self._next(current)
                if not error.is_unsent or attempt + 1 == len(self._exchanges):
                    raise
            else:
                if answer.status == UNAVAILABLE:  # it stops, or cannot reach others; the next attempt goes elsewhere
                    self._next(current)
                return answer
        raise AssertionError("one of them was the last")

    @asynccontextmanager
    async def stream(self, ask: Ask) -> AsyncGenerator[Streamed, None]:
        current = self._current
        try:
            async with self._exchanges[current].stream(ask) as streamed:
                yield streamed
        except ExchangeFailed:
            self._next(current)
            raise

    async def close(self) -> None:
        for each in self._exchanges:
            await each.close()
