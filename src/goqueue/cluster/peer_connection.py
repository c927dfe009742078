"""One connection to another node: many requests under way, answered in any order, each within its time or never."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, cast

from goqueue.client.errors import ConnectionLost
from goqueue.client.frames_in import FramesIn
from goqueue.model.errors import GoQueueError, Indeterminate, NotReached
from goqueue.runtime.clock import Clock, Timer
from goqueue.wire.kafka.errors import MalformedRequest
from goqueue.wire.kafka.peering import correlation_id_of, peer_request, read_peer_response

FRAME_BYTES_MAX = 256 * 1024 * 1024
IN_FLIGHT_MAX = 4096
UNSENT_BYTES_MAX = 64 * 1024 * 1024

OnBody = Callable[[memoryview | GoQueueError], None]
"""The body is the taker's own."""


class _Pending(NamedTuple):
    api_key: int
    on_done: OnBody
    timer: Timer
    received: int
    """What had come when it was sent."""


class PeerConnection(asyncio.BufferedProtocol):
    def __init__(self, name: str, clock: Clock, on_lost: Callable[["PeerConnection"], None]) -> None:
        self.name = name
        self._clock = clock
        self._on_lost = on_lost
        self._frames = FramesIn(FRAME_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._pending: dict[int, _Pending] = {}
        self._next_id = 0
        self.received = 0
        """Bytes, so far."""
        self.is_closed = False
        self.is_given_up = False
        """By this side: nothing is to be concluded from its end."""

    # -- what its users call

    def send(self, api_key: int, body: bytes, on_done: OnBody, timeout_ms: float) -> None:
        transport = self._transport
        if transport is None or self.is_closed or self._is_full:
            why = NotReached(f"{self.name} takes no more requests now")
            self._clock.call_soon(lambda: on_done(why))
            return
        number = self._next_id
        self._next_id = (number + 1) & 0x7FFFFFFF
        timer = self._clock.call_after(timeout_ms, lambda: self._timed_out(number))
        self._pending[number] = _Pending(api_key, on_done, timer, self.received)
        transport.writelines(peer_request(api_key, number, body))

    async def ask(self, api_key: int, body: bytes, timeout_ms: float) -> memoryview:
        """`send`, and wait for the answer."""
        future: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()

        def done(answer: memoryview | GoQueueError) -> None:
            if future.done():
                return
            if isinstance(answer, GoQueueError):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        self.send(api_key, body, done, timeout_ms)
        return await future

    @property
    def is_waited_for(self) -> bool:
        return bool(self._pending)

    @property
    def _is_full(self) -> bool:
        transport = self._transport
        if len(self._pending) >= IN_FLIGHT_MAX:
            return True
        return transport is not None and transport.get_write_buffer_size() > UNSENT_BYTES_MAX

    def give_up(self, why: str = "the connection was given up") -> None:
        """Close it now. Whatever waits for an answer gets none."""
        self.is_given_up = True
        self._end(why)

    # -- from the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its base class
        if self.is_closed:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(f"the connection was lost{f': {exc}' if exc else ''}")
        self._transport = None

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  asyncio's signature
        return self._frames.room()

    def buffer_updated(self, nbytes: int) -> None:
        self.received += nbytes
        try:
            for frame in self._frames.take(nbytes):
                self._take(frame)
        except (MalformedRequest, ConnectionLost) as error:
            self._end(f"it does not answer as a node would: {error}")

    def eof_received(self) -> bool:
        return False

    def _take(self, frame: memoryview) -> None:
        pending = self._pending.pop(correlation_id_of(frame), None)
        if pending is None:
            return  # it came too late for whoever asked
        pending.timer.cancel()
        body, why = read_peer_response(pending.api_key, frame)
        pending.on_done(NotReached(f"{self.name}: {why}") if why else body)

    def _timed_out(self, number: int) -> None:
        pending = self._pending.pop(number, None)
        if pending is None:
            return
        pending.on_done(Indeterminate(f"{self.name} did not answer in time"))
        if pending.received == self.received:  # nothing at all has come since: nobody is there
            self._end("nothing came for too long")

    def _end(self, why: str) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        if self._transport is not None:
            self._transport.abort()
        pending, self._pending = self._pending, {}
        for one in pending.values():
            one.timer.cancel()
            one.on_done(Indeterminate(f"{self.name}: {why}"))
        self._on_lost(self)
