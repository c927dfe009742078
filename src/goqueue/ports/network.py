"""The network as a port: who listens and who connects has it passed in.

The real one is the running event loop. A simulation gives one to each of its processes, which therefore says who asks:
so a link between two of them can be slow or cut while the others are not.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from typing import Protocol, TypeVar

from goqueue.ports.last_connections import accept_last

P = TypeVar("P", bound=asyncio.BaseProtocol)

BACKLOG = 1024


class Listener(Protocol):
    @property
    def port(self) -> int: ...

    def close(self, *, takes_waiting: bool = False) -> None:
        """No new connections; those that are there stay. `takes_waiting`: also those that the system has accepted, and
        that nobody has taken yet. Else it resets them, and takes a request along that may have been sent."""

    async def wait_taken(self) -> None:
        """Until those are there."""

    async def wait_closed(self) -> None: ...


class Network(Protocol):
    async def listen(self, make: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> Listener:
        """Port 0 picks a free one. OSError: the address cannot be had."""

    async def connect(self, make: Callable[[], P], host: str, port: int) -> tuple[asyncio.Transport, P]:
        """OSError: nobody is there."""


class LoopNetwork:
    """The sockets of the running event loop. `tls`: whoever is dialed speaks it. `shares_ports`: other processes listen
    at the same addresses, and the system divides connections among them."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, shares_ports: bool = False) -> None:
        self._tls = tls
        self._shares_ports = shares_ports

    async def listen(self, make: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> Listener:
        server = await asyncio.get_running_loop().create_server(
            make, host, port, backlog=BACKLOG, reuse_port=self._shares_ports or None
        )
        return _LoopListener(server, make)

    async def connect(self, make: Callable[[], P], host: str, port: int) -> tuple[asyncio.Transport, P]:
        return await asyncio.get_running_loop().create_connection(make, host, port, ssl=self._tls)


class _LoopListener:
    def __init__(self, server: asyncio.Server, make: Callable[[], asyncio.BaseProtocol]) -> None:
        self._server = server
        self._make = make
        self._taking: list[asyncio.Task[object]] = []
        self.port: int = server.sockets[0].getsockname()[1]

    def close(self, *, takes_waiting: bool = False) -> None:
        numbers = [os.dup(each.fileno()) for each in self._server.sockets] if takes_waiting else []
        self._server.close()
        loop = asyncio.get_running_loop()
        for number in numbers:
            with socket.socket(fileno=number) as listening:
                for taken, _ in accept_last(listening):
                    taken.setblocking(False)
                    self._taking.append(loop.create_task(loop.connect_accepted_socket(self._make, taken)))

    async def wait_taken(self) -> None:
        await asyncio.gather(*self._taking, return_exceptions=True)

    async def wait_closed(self) -> None:
        await self._server.wait_closed()
