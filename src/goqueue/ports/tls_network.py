"""The network with TLS: a listener shakes hands with whoever connects, and only then makes a connection of it.

A handshake costs as much as hundreds of requests, so the number of them is bounded for each address, and so is the time
that one may take. What goes wrong in them is told to `Handshakes`: the event loop itself would say nothing.
"""

import asyncio
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from goqueue.ports.last_connections import accept_last
from goqueue.ports.network import BACKLOG, Listener, LoopNetwork

P = TypeVar("P", bound=asyncio.BaseProtocol)

HANDSHAKE_S_MAX = 10.0
HANDSHAKES_PER_S_MAX = 50
"""Of one address; that many at once, too."""
UNDER_WAY_MAX = 1000
AT_ONCE_MAX = 100
"""Connections that are taken before others have their turn."""
REST_S = 1.0
ADDRESSES_MAX = 4096
"""That are remembered; the one that was not heard of for longest goes first."""

REASONS = {
    "HTTP_REQUEST": "HTTP was spoken to a TLS port",
    "HTTPS_PROXY_REQUEST": "HTTP was spoken to a TLS port",
    "WRONG_VERSION_NUMBER": "something else than TLS was spoken to a TLS port",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has shown no certificate",
    "UNSUPPORTED_PROTOCOL": "the client speaks no version of TLS that is taken: 1.2 and 1.3 are",
    "UNEXPECTED_EOF_WHILE_READING": "the client hung up",
    "CERTIFICATE_VERIFY_FAILED": "the certificate of the client was not signed by an authority that is trusted here",
}


class HandshakeRate:
    """A bucket for each address."""

    def __init__(self, per_s_max: int = HANDSHAKES_PER_S_MAX) -> None:
        self._per_s_max = per_s_max
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What is left, and since when."""

    def take(self, address: str, now_s: float) -> bool:
        """False: not now."""
        left, since_s = self._buckets.get(address, (float(self._per_s_max), now_s))
        left = min(self._per_s_max, left + max(0.0, now_s - since_s) * self._per_s_max)
        is_taken = left >= 1
        self._buckets[address] = (left - is_taken, now_s)
        self._buckets.move_to_end(address)
        if len(self._buckets) > ADDRESSES_MAX:
            self._buckets.popitem(last=False)
        return is_taken


@dataclass
class Handshakes:
    """Of all listeners of a node."""

    on_failed: Callable[[str, str], None] = lambda peer, why: None
    """Told the address of the client, and why."""
    rate: HandshakeRate = field(default_factory=HandshakeRate)
    counts: dict[str, int] = field(default_factory=dict)
    """By what came of them."""

    def succeed(self) -> None:
        self._count("done")

    def fail(self, peer: str, why: str) -> None:
        self._count("failed")
        self.on_failed(peer, why)

    def refuse(self, peer: str, why: str) -> None:
        """Without one: there were too many."""
        self._count("refused")
        self.on_failed(peer, why)

    def _count(self, outcome: str) -> None:
        self.counts[outcome] = self.counts.get(outcome, 0) + 1


class TlsListening(LoopNetwork):
    """Whoever connects here speaks TLS."""

    def __init__(self, context: ssl.SSLContext, handshakes: Handshakes, *, shares_ports: bool = False) -> None:
        super().__init__(shares_ports=shares_ports)
        self._context = context
        self._handshakes = handshakes

    async def listen(self, make: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> Listener:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = _TlsListener(make, self._context, self._handshakes)
        try:
            for family, kind, protocol, _, address in dict.fromkeys(found):
                listening = socket.socket(family, kind, protocol)
                if self._shares_ports:
                    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                listener.add(listening, address)
        except BaseException:
            listener.close()
            raise
        return listener


class _TlsListener:
    """Takes connections itself: who they are from is asked before a handshake, and what became of it afterwards."""

    def __init__(
        self, make: Callable[[], asyncio.BaseProtocol], context: ssl.SSLContext, handshakes: Handshakes
    ) -> None:
        self._make = make
        self._context = context
        self._handshakes = handshakes
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._under_way: dict[asyncio.Task[None], None] = {}
        self._is_closed = False

    def add(self, listening: socket.socket, address: Any) -> None:
        self._sockets.append(listening)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listening.family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
        self._loop.add_reader(listening, self._accept, listening)

    @property
    def port(self) -> int:
        port: int = self._sockets[0].getsockname()[1]
        return port

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE_MAX):
            try:
                found, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no files are left: others have to go first
                self._handshakes.on_failed("?", f"no connection can be taken: {error.strerror}")
                self._loop.remove_reader(listening)
                self._loop.call_later(REST_S, self._accept_again, listening)
                return
            self._take(found, str(address[0]), f"{address[0]}:{address[1]}")

    def _accept_again(self, listening: socket.socket) -> None:
        if not self._is_closed:
            self._loop.add_reader(listening, self._accept, listening)

    def _take(self, found: socket.socket, host: str, peer: str) -> None:
        if len(self._under_way) >= UNDER_WAY_MAX:
            self._handshakes.refuse(peer, "too many TLS handshakes are under way")
            found.close()
        elif not self._handshakes.rate.take(host, self._loop.time()):
            self._handshakes.refuse(peer, "too many TLS handshakes from this address in a second")
            found.close()
        else:
            found.setblocking(False)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = self._loop.create_task(self._shake(found, peer))
            self._under_way[task] = None
            task.add_done_callback(lambda task: self._under_way.pop(task, None))

    async def _shake(self, found: socket.socket, peer: str) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._make, found, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_S_MAX
            )
        except (OSError, EOFError) as error:  # an SSLError is one, a TimeoutError too
            self._handshakes.fail(peer, _reason(error))
        else:
            self._handshakes.succeed()

    def close(self, *, takes_waiting: bool = False) -> None:
        self._is_closed = True
        sockets, self._sockets = self._sockets, []
        for listening in sockets:
            self._loop.remove_reader(listening)
            if takes_waiting:
                for found, address in accept_last(listening):
                    self._take(found, str(address[0]), f"{address[0]}:{address[1]}")
            listening.close()
        if not takes_waiting:
            for task in list(self._under_way):
                task.cancel()

    async def wait_taken(self) -> None:
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._under_way, return_exceptions=True)


class TlsDialing(LoopNetwork):
    """Whoever is dialed speaks TLS. `name`: that its certificate must have; None: the host that is dialed."""

    def __init__(self, context: ssl.SSLContext, name: str | None = None) -> None:
        super().__init__()
        self._context = context
        self._name = name

    async def connect(self, make: Callable[[], P], host: str, port: int) -> tuple[asyncio.Transport, P]:
        return await asyncio.get_running_loop().create_connection(
            make, host, port, ssl=self._context, server_hostname=self._name or host
        )


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return REASONS.get(error.reason or "", "") or f"the TLS handshake failed: {error.reason or error}"
    if isinstance(error, TimeoutError):
        return "the TLS handshake took too long"
    if isinstance(error, ConnectionAbortedError):  # so the event loop says that time is up
        return "the TLS handshake took too long"
    if isinstance(error, EOFError | ConnectionError):
        return "the client hung up in the TLS handshake"
    return f"the TLS handshake failed: {error}"
