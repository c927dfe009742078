"""A bound on the bytes that a producer holds: who wants to add more waits, in turn, until others are delivered."""

import asyncio
from collections import deque

from goqueue.client.errors import Closed, MessageTooLarge


class Room:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._is_closed = False

    def take(self, size: int) -> bool:
        """False: there is no room now, or others have waited longer."""
        if self._waiting or self.bytes + size > self._bytes_max or self._is_closed:
            return False
        self.bytes += size
        return True

    async def wait(self, size: int) -> None:
        """Until there is room, which is then taken. Cancelled: it is not."""
        if size > self._bytes_max:
            raise MessageTooLarge(f"{size} bytes do not fit into the buffer of {self._bytes_max} bytes")
        if self._is_closed:
            raise Closed("the producer is closed")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, future))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.give(size)  # it was given and cancelled in the same moment
            else:
                self._let_in()
            raise

    def give(self, size: int) -> None:
        self.bytes -= size
        if self._waiting:
            self._let_in()

    def _let_in(self) -> None:
        while self._waiting:
            size, future = self._waiting[0]
            if future.done():  # cancelled
                self._waiting.popleft()
            elif self.bytes + size <= self._bytes_max:
                self._waiting.popleft()
                self.bytes += size
                future.set_result(None)
            else:
                return

    def close(self) -> None:
        """Whoever waits was not accepted, and is told so."""
        self._is_closed = True
        waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            if not future.done():
                future.set_exception(Closed("the producer was closed before there was room for this message"))
