"""systemd is told that a node is ready, that it stops, and again and again that its event loop is alive.

The protocol of `sd_notify` is a datagram of lines to the socket that the environment names. A node that no systemd has
started is told of no socket, and all of this does nothing.
"""

import asyncio
import socket
from contextlib import suppress

from goqueue.node.environment import take_notify_socket

BEATS = 3
"""In the time after which systemd gives a node up."""


class Systemd:
    def __init__(self, address: str | None, watchdog_s: float | None) -> None:
        self._address = address
        self._watchdog_s = watchdog_s

    @classmethod
    def taken(cls) -> "Systemd":
        """From the environment, and out of it."""
        return cls(*take_notify_socket())

    def ready(self) -> None:
        self._tell("READY=1")

    async def run(self, stop: asyncio.Event) -> None:
        """Until it is cancelled, from the event loop: one that hangs does not beat, and is started again."""
        if self._address is None:
            return
        if self._watchdog_s is not None:
            while not stop.is_set():
                self._tell("WATCHDOG=1")
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._watchdog_s / BEATS):
                        await stop.wait()
        await stop.wait()
        self._tell("STOPPING=1")
        while self._watchdog_s is not None:
            self._tell("WATCHDOG=1")
            await asyncio.sleep(self._watchdog_s / BEATS)

    def _tell(self, words: str) -> None:
        if self._address is None:
            return
        place = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with (
            suppress(OSError),  # a node serves whether or not anybody listens
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as told,
        ):
            told.sendto(words.encode(), place)
