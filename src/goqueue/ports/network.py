"""The network as a port: who listens and who connects has it passed in.

The real one is the running event loop. A simulation gives one to each of its processes, which therefore says who asks:
so a link between two of them can be slow or cut while the others are not.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Protocol, TypeVar

P = TypeVar("P", bound=asyncio.BaseProtocol)

BACKLOG = 1024


class Listener(Protocol):
    @property
    def port(self) -> int: ...

    def close(self) -> None:
        """No new connections; those that are there stay."""

    async def wait_closed(self) -> None: ...


class Network(Protocol):
    async def listen(self, make: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> Listener:
        """Port 0 picks a free one. OSError: the address cannot be had."""

    async def connect(self, make: Callable[[], P], host: str, port: int) -> tuple[asyncio.Transport, P]:
        """OSError: nobody is there."""


class LoopNetwork:
    """The sockets of the running event loop. `tls`: whoever is dialed speaks it."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls

    async def listen(self, make: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> Listener:
        return _LoopListener(await asyncio.get_running_loop().create_server(make, host, port, backlog=BACKLOG))

    async def connect(self, make: Callable[[], P], host: str, port: int) -> tuple[asyncio.Transport, P]:
        return await asyncio.get_running_loop().create_connection(make, host, port, ssl=self._tls)


class _LoopListener:
    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self.port: int = server.sockets[0].getsockname()[1]

    def close(self) -> None:
        self._server.close()

    async def wait_closed(self) -> None:
        await self._server.wait_closed()
