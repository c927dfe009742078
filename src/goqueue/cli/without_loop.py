"""Asking without an event loop: for a program that asks one thing after the other, and has to start fast.

Importing asyncio takes longer than the question of a command. The coroutines of `Admin` are the same: with streams and
a clock that block, instead of waiting in a loop, they run to their end in one go.
"""

import selectors
import socket
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

READ_BYTES = 64 * 1024

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """What it returns. Whatever it awaits has to block."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise AssertionError("it waits for an event loop, and there is none")


class BlockingStreams:
    async def connect(self, host: str, port: int, within_s: float) -> "BlockingStream":
        return BlockingStream(socket.create_connection((host, port), within_s))


class BlockingStream:
    def __init__(self, connected: socket.socket) -> None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as asyncio does
        self._socket = connected

    @property
    def is_quiet(self) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return not selector.select(0)

    async def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    async def receive(self, within_s: float) -> bytes:
        self._socket.settimeout(within_s)
        return self._socket.recv(READ_BYTES)

    def close(self) -> None:
        self._socket.close()

    async def closed(self) -> None:
        """It is, at once."""


class BlockingClock:
    async def sleep(self, delay_s: float) -> None:
        time.sleep(delay_s)  # noqa: ASYNC251  there is no loop that it could stop
