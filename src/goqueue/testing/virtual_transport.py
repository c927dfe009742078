"""One end of a connection in memory, and the way of bytes from one end to the other: late, in pieces, held up by cuts,
and lost with a reset. What arrives, arrives in order and once, as with TCP.
"""

import asyncio
import errno
from collections import deque
from collections.abc import Iterable
from contextvars import Context
from typing import TYPE_CHECKING, Any

from goqueue.testing.tree import os_error
from goqueue.testing.virtual_loop import Life

if TYPE_CHECKING:
    from goqueue.testing.virtual_network import VirtualNetwork

HIGH_BYTES, LOW_BYTES = 256 * 1024, 64 * 1024
"""Sent and not received: above the one a sender is asked to pause, below the other it may go on."""
READ_BYTES_MAX = 64 * 1024
GIVE_UP_S = 20.0
"""How long a kernel sends again what nobody confirms."""


class End(asyncio.Transport):
    """`peer` is the other end. A process that is dead has ends still, and nothing is told to it."""

    def __init__(
        self, network: "VirtualNetwork", number: int, here: tuple[str, int], there: tuple[str, int], life: Life | None
    ) -> None:
        super().__init__({"sockname": here, "peername": there})
        self._network = network
        self.number = number
        self.here, self.there = here, there
        self.life = life
        self.peer: End
        self._context = Context()
        self._protocol = asyncio.BaseProtocol()
        self._on_way: deque[tuple[float, bytes | None]] = deque()
        """To the peer: when each piece arrives, None at the end of all."""
        self.unread_bytes = 0
        self._last_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._give_up: asyncio.TimerHandle | None = None
        self._is_full = False
        self.reads = True
        self._is_closing = False
        self._has_ended = False
        """Nothing more will be sent."""
        self.is_gone = False
        """The protocol was told that the connection is lost, or is dead."""

    def begin(self, protocol: asyncio.BaseProtocol, context: Context) -> None:
        self._protocol = protocol
        self._context = context

    # -- as a protocol sees it

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return self.reads and not self._is_closing

    @property
    def takes_data(self) -> bool:
        """Else the kernel at this end keeps it, and confirms it."""
        return self.reads and not (self.life is not None and self.life.is_paused)

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        if not self.reads:
            self.reads = True
            self.peer.go_on()

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or self._has_ended or not data or not self._is_on:
            return
        self._send(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._has_ended and self._is_on:
            self._has_ended = True
            self._put(None)

    def close(self) -> None:
        if not self._is_closing and self._is_on:
            self.write_eof()
            self._leave(None)

    def abort(self) -> None:
        if not self._is_closing and self._is_on:
            self._leave(None)
            self._forget()
            self._network.reset_later(self.peer)

    @property
    def _is_on(self) -> bool:
        return not self.is_gone and (self.life is None or self.life.is_on)

    # -- the way to the peer

    def _send(self, data: bytes) -> None:
        for piece in self._network.pieces(data):
            self.unread_bytes += len(piece)
            self._put(piece)
        if not self._is_full and self.unread_bytes > HIGH_BYTES:
            self._is_full = True
            self._protocol.pause_writing()

    def _put(self, piece: bytes | None) -> None:
        self._last_s = max(self._last_s, self._network.arrival_s(self.here[0], self.there[0]))
        self._on_way.append((self._last_s, piece))
        self.go_on()

    def go_on(self) -> None:
        """Bring what is on its way, if it may go on."""
        if not self._on_way or self._timer is not None:
            return
        due_s = self._on_way[0][0]
        self._timer = self._network.loop.call_at(due_s, self._arrive, context=Context())

    def _arrive(self) -> None:
        self._timer = None
        network, peer = self._network, self.peer
        if not self._on_way:
            return
        if network.is_cut(self.here[0], self.there[0]) or network.is_off(self.there[0]):
            if self._give_up is None and not self.is_gone:
                self._give_up = network.loop.call_later(GIVE_UP_S, self._time_out, context=Context())
            return  # sent again when the link is whole
        if self._give_up is not None:
            self._give_up.cancel()
            self._give_up = None
        if peer.is_closing() or (peer.life is not None and not peer.life.is_on):
            is_data = any(piece is not None for _, piece in self._on_way)
            self._forget()
            if is_data:  # nobody takes it any more
                network.reset_later(self)
            return
        if peer.takes_data:
            self._deliver(peer)
            self.go_on()

    def _deliver(self, peer: "End") -> None:
        now_s, size = self._network.loop.time(), 0
        pieces: list[bytes] = []
        while self._on_way and self._on_way[0][0] <= now_s and size < READ_BYTES_MAX:
            piece = self._on_way.popleft()[1]
            if piece is None:
                self._hand_over(peer, b"".join(pieces))
                self._network.note("end", self.number, self.here, self.there, b"")
                peer.tell_end()
                return
            pieces.append(piece)
            size += len(piece)
        self._hand_over(peer, b"".join(pieces))

    def _hand_over(self, peer: "End", data: bytes) -> None:
        if not data:
            return
        self.unread_bytes -= len(data)
        self._network.note("data", self.number, self.here, self.there, data)
        peer.run(peer.receive, data)
        if self._is_full and self.unread_bytes < LOW_BYTES:
            self._is_full = False
            if not self._is_closing:
                self.run(self._protocol.resume_writing)

    def receive(self, data: bytes) -> None:
        protocol = self._protocol
        if not isinstance(protocol, asyncio.BufferedProtocol):
            protocol.data_received(data)  # type: ignore[attr-defined]
            return
        at = 0
        while at < len(data) and not self._is_closing:
            buffer = memoryview(protocol.get_buffer(len(data) - at))
            count = min(len(buffer), len(data) - at)
            buffer[:count] = data[at : at + count]
            protocol.buffer_updated(count)
            at += count

    def tell_end(self) -> None:
        def ended() -> None:
            if not self._protocol.eof_received():  # type: ignore[attr-defined]
                self.close()

        self.run(ended)

    # -- the end of it

    def _leave(self, error: Exception | None) -> None:
        """The protocol hears of it in the next turn; what was sent is still on its way."""
        self._is_closing = True
        self._network.forget(self)

        def lost() -> None:
            self.is_gone = True
            self._protocol.connection_lost(error)

        self._network.loop.call_soon(lost, context=self._context.copy())

    def _forget(self) -> None:
        self._on_way.clear()
        self.unread_bytes = 0

    def _time_out(self) -> None:
        self.fail(os_error(errno.ETIMEDOUT, f"{self.there[0]}:{self.there[1]}"))

    def fail(self, error: OSError) -> None:
        """The connection breaks at this end; the other may not know."""
        self._forget()
        if self._is_on and not self._is_closing:
            self._network.note("fail", self.number, self.here, self.there, str(error.errno).encode())
            self._leave(error)

    def die(self, *, silently: bool) -> None:
        """Its process is gone. The kernel still sends what it was given, unless the machine is gone too."""
        self.is_gone = self._is_closing = True
        self._network.forget(self)
        if silently:
            self._forget()
        elif not self._has_ended:
            self._has_ended = True
            self._put(None)

    def run(self, call: Any, *args: Any) -> None:
        """As the process that this end belongs to."""
        if not self._is_on:
            return
        context = self._context.copy()
        if self.life is None:
            context.run(call, *args)
        else:
            context.run(self.life.run, call, args)
