"""A network in memory: processes on named hosts, links between them that are slow, cut (both ways or one) or whole.

All that is left to chance, how long a piece of data takes and where it is split, is drawn from one seed. All that
arrives is written to one trace.
"""

import asyncio
import errno
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from goqueue.testing.trace import Trace
from goqueue.testing.tree import os_error
from goqueue.testing.virtual_loop import Life, VirtualLoop, current_life
from goqueue.testing.virtual_transport import End

P = TypeVar("P", bound=asyncio.BaseProtocol)

ANYWHERE = "*"
FIRST_PORT = 40_000
DIAL_AGAIN_S = 1.0
DIAL_S_MAX = 30.0
"""How long a kernel tries to reach a host that does not answer."""


@dataclass(slots=True)
class Weather:
    """What the network does to data. Times are in milliseconds."""

    delay_ms: tuple[float, float] = (0.05, 0.5)
    """Of most pieces, drawn evenly."""
    slow: float = 0.01
    """The share of those that take longer, and how long."""
    slow_ms: tuple[float, float] = (1.0, 50.0)
    split: float = 0.1
    """The share of writes that arrive in pieces."""


class VirtualNetwork:
    def __init__(self, loop: VirtualLoop, dice: Random, trace: Trace) -> None:
        self.loop = loop
        self.weather = Weather()
        self._dice = dice
        self._trace = trace
        self._listeners: dict[tuple[str, int], VirtualListener] = {}
        self._ends: dict[End, None] = {}
        self._cuts: dict[tuple[str, str], None] = {}
        self._off: dict[str, None] = {}
        self._connections = 0

    def at(self, host: str) -> "HostNetwork":
        """As a process on this host sees it."""
        return HostNetwork(self, host)

    # -- what a test does to it

    def cut(self, one: str, other: str, *, both_ways: bool = True) -> None:
        """From now on nothing gets from `one` host to the `other`, nor back; ANYWHERE is every host. What is on its way
        is held up, as by a kernel that sends it again and again, for GIVE_UP_S at most.
        """
        self._trace.note(self.loop.time(), "cut", one, other, str(both_ways))
        self._cuts[one, other] = None
        if both_ways:
            self._cuts[other, one] = None

    def heal(self, one: str | None = None, other: str | None = None) -> None:
        """The link between two hosts, or all of them."""
        self._trace.note(self.loop.time(), "heal", str(one), str(other))
        if one is None or other is None:
            self._cuts.clear()
        else:
            self._cuts.pop((one, other), None)
            self._cuts.pop((other, one), None)
        self._go_on()

    def reset(self, host: str) -> int:
        """Break all connections of a host, for both ends, with what is on its way. Returns how many there were."""
        ends = [end for end in self._ends if end.here[0] == host]
        for end in ends:
            for each in (end, end.peer):
                each.fail(os_error(errno.ECONNRESET, "reset"))
        return len(ends)

    def kill(self, life: Life, *, silently: bool = False) -> None:
        """A process is gone, and with it its listeners. `silently`: with its whole machine, which tells nobody."""
        for address, listener in list(self._listeners.items()):
            if listener.life is life:
                del self._listeners[address]
        for end in [end for end in self._ends if end.life is life]:
            end.die(silently=silently)

    def resumed(self) -> None:
        """A process that was paused takes what has come for it."""
        self._go_on()

    def switch(self, host: str, *, on: bool) -> None:
        """A host without power answers nothing; one that is back knows none of its connections."""
        if on:
            self._off.pop(host, None)
            self._go_on()
        else:
            self._off[host] = None

    # -- what connections ask

    def is_cut(self, source: str, target: str) -> bool:
        cuts = self._cuts
        return bool(cuts) and any(
            pair in cuts for pair in ((source, target), (ANYWHERE, target), (source, ANYWHERE), (ANYWHERE, ANYWHERE))
        )

    def is_off(self, host: str) -> bool:
        return host in self._off

    def arrival_s(self, source: str, target: str) -> float:
        """When what is sent now arrives, unless something holds it up."""
        if source == target:
            return self.loop.time()
        weather, dice = self.weather, self._dice
        bounds_ms = weather.slow_ms if dice.random() < weather.slow else weather.delay_ms
        return self.loop.time() + dice.uniform(*bounds_ms) / 1000

    def pieces(self, data: bytes) -> Iterator[bytes]:
        dice = self._dice
        if len(data) > 1 and dice.random() < self.weather.split:
            cuts = sorted({dice.randrange(1, len(data)) for _ in range(dice.randint(1, 3))})
            for start, end in zip([0, *cuts], [*cuts, len(data)]):
                yield data[start:end]
        else:
            yield data

    def reset_later(self, end: End) -> None:
        """What a host says that knows nothing of a connection."""
        self.loop.call_at(
            self.arrival_s(end.there[0], end.here[0]), end.fail, os_error(errno.ECONNRESET, "reset"), context=Context()
        )

    def forget(self, end: End) -> None:
        self._ends.pop(end, None)

    def note(self, what: str, number: int, here: tuple[str, int], there: tuple[str, int], data: bytes) -> None:
        self._trace.note(self.loop.time(), what, str(number), here[0], there[0], data)

    def _go_on(self) -> None:
        for end in list(self._ends):
            end.go_on()
            end.peer.go_on()

    # -- connections

    def listen(self, host: str, port: int, make: Callable[[], asyncio.BaseProtocol]) -> "VirtualListener":
        if port == 0:
            port = next(each for each in range(FIRST_PORT, 65536) if (host, each) not in self._listeners)
        if (host, port) in self._listeners:
            raise os_error(errno.EADDRINUSE, f"{host}:{port}")
        listener = VirtualListener(self, (host, port), make)
        self._listeners[host, port] = listener
        return listener

    def close(self, listener: "VirtualListener") -> None:
        if self._listeners.get(listener.address) is listener:
            del self._listeners[listener.address]

    async def dial(self, source: str, target: tuple[str, int], make: Callable[[], P]) -> tuple[asyncio.Transport, P]:
        loop, context, life = self.loop, copy_context(), current_life()
        give_up_s = loop.time() + DIAL_S_MAX
        await asyncio.sleep(self.arrival_s(source, target[0]) - loop.time())
        while self.is_off(target[0]) or self.is_cut(source, target[0]) or self.is_cut(target[0], source):
            if loop.time() >= give_up_s:
                raise os_error(errno.ETIMEDOUT, f"{target[0]}:{target[1]}")
            await asyncio.sleep(DIAL_AGAIN_S)
        listener = self._listeners.get(target)
        if listener is None:
            await asyncio.sleep(self.arrival_s(target[0], source) - loop.time())
            raise os_error(errno.ECONNREFUSED, f"{target[0]}:{target[1]}")
        self._connections += 1
        number, here = self._connections, (source, FIRST_PORT + self._connections)
        self._trace.note(loop.time(), "dial", str(number), source, target[0])
        mine, theirs = End(self, number, here, target, life), End(self, number, target, here, listener.life)
        mine.peer, theirs.peer = theirs, mine
        protocol = make()
        mine.begin(protocol, context)
        self._ends[mine] = self._ends[theirs] = None
        loop.call_soon(listener.accept, theirs, context=listener.context.copy())
        protocol.connection_made(mine)
        return mine, protocol


class VirtualListener:
    def __init__(
        self, network: VirtualNetwork, address: tuple[str, int], make: Callable[[], asyncio.BaseProtocol]
    ) -> None:
        self._network = network
        self.address = address
        self.port = address[1]
        self.life = current_life()
        self.context = copy_context()
        self._make = make

    def accept(self, end: End) -> None:
        if end.is_closing():
            return
        protocol = self._make()
        end.begin(protocol, self.context)
        protocol.connection_made(end)
        end.peer.go_on()

    def close(self, *, takes_waiting: bool = False) -> None:  # noqa: ARG002  nobody waits to be taken here
        self._network.close(self)

    async def wait_taken(self) -> None:
        """At once, therefore."""

    async def wait_closed(self) -> None:
        """At once: nothing of it is left."""


class HostNetwork:
    """The port `goqueue.ports.network.Network`, for processes on one host."""

    def __init__(self, network: VirtualNetwork, host: str) -> None:
        self._network = network
        self.host = host

    async def listen(self, make: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> VirtualListener:
        if host != self.host:
            raise os_error(errno.EADDRNOTAVAIL, f"{host}:{port}")
        return self._network.listen(host, port, make)

    async def connect(self, make: Callable[[], P], host: str, port: int) -> tuple[asyncio.Transport, P]:
        return await self._network.dial(self.host, (host, port), make)
