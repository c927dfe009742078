"""One client's connection: frames in, replies out in the order of the requests, without a task or a buffer of its own
while idle.

All connections receive into one shared buffer: the event loop fills it and a request is handled before the next
read, which goes behind what its owner still needs of the one before. The piece of a frame at the end of a read is kept
and put before the next one, so that a read brings as many requests as there are; only the rest of a large frame is
received into memory of its own.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, cast

from goqueue.doors.kafka.answering import Answering
from goqueue.doors.kafka.frame_sizes import (
    FRAME_BYTES_FIRST,
    HEAD_BYTES_MAX,
    LENGTH_BYTES,
    REQUESTS_AHEAD,
    BadFrame,
    may_be_large,
)
from goqueue.doors.kafka.refused_batches import RefusedBatches
from goqueue.doors.kafka.surroundings import Clock, Limits, Owner, Timer
from goqueue.telemetry.calls import call_each

if TYPE_CHECKING:
    from goqueue.broker.access import Access
    from goqueue.doors.kafka.request import Endpoint
    from goqueue.doors.kafka.routes import Routes
    from goqueue.doors.kafka.sasl import SaslExchange

_unpack_length = Struct(">i").unpack_from


class Connection(Answering):
    __slots__ = (
        "_filled",
        "_frame",
        "_frame_bytes",
        "_frame_timer",
        "_gather_timer",
        "_head",
        "_is_full",
        "_is_resting",
        "_is_stopping",
        "_mute_timer",
        "_muted_until_s",
        "_shared",
        "access",
        "endpoint",
        "heads",
        "on_made",
        "peer",
        "refused_batches",
        "routes",
        "sasl",
    )

    def __init__(self, shared: memoryview, limits: Limits, clock: Clock, owner: Owner) -> None:
        super().__init__(limits, clock, owner)
        self._shared = shared
        self.peer = "?"
        self.endpoint: Endpoint
        self.on_made: Callable[[Connection, asyncio.BaseTransport], None] = lambda connection, transport: None
        """Called before anything is read."""
        self.access: Access | None = None
        """None: it has not shown who it is."""
        self.routes: Routes
        """Set by whoever sets the access."""
        self.sasl: SaslExchange | None = None
        self.refused_batches = RefusedBatches()
        self.heads: tuple[Struct, ...] = ()
        """For `Routes`: how the frames begin in which it may find what it knows."""
        self._head = b""
        """What has come of a small frame, or of the length of any."""
        self._frame: bytearray | None = None
        self._frame_bytes = self._filled = 0
        self._is_full = self._is_resting = self._is_stopping = False
        self._frame_timer: Timer | None = None
        self._gather_timer: Timer | None = None
        self._mute_timer: Timer | None = None
        self._muted_until_s = 0.0

    @property
    def host(self) -> str:
        return f"/{self.peer.rpartition(':')[0]}"

    # -- from the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its base class
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else str(peer)
        self.on_made(self, transport)
        if self._is_closing:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        self._transport = None
        self._is_interrupted = True
        for timer in (self._frame_timer, self._gather_timer, self._mute_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        replies, self.replies = self.replies, deque()
        self._owner.waiting_bytes -= self._waiting_bytes
        self._waiting_bytes = 0
        try:
            call_each(reply.lose for reply in replies)
        finally:  # a stop waits until its owner knows of it
            self._owner.lost(self, self._why)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  asyncio's signature
        if self._frame is not None:
            return memoryview(self._frame)[self._filled :]
        start = self._owner.kept_bytes + len(self._head)
        return self._shared[start:] if start else self._shared

    def buffer_updated(self, nbytes: int) -> None:
        data = None
        end = start = self._owner.kept_bytes
        if self._frame is None:
            if self._head:
                self._shared[start : start + len(self._head)] = self._head
                nbytes += len(self._head)
            end = start + nbytes
            data = self._shared[start:end]
            if self._is_interrupted and self._is_held:
                self._keep(data)
                return
        self._read(data, nbytes, end)

    def _keep(self, data: memoryview) -> None:
        """It came although nobody wants to read: uvloop begins to read when `connection_made` is over, whatever was
        said there."""
        self._head = bytes(data)
        if self._transport is not None:
            self._transport.pause_reading()

    def _read(self, data: memoryview | None, nbytes: int, end: int = 0) -> None:
        """Handle the frames in `data`; None: so many bytes of a large frame have come. `end`: of the shared memory, if
        they lie there."""
        self._flush_is_due = True  # below: what is answered at once needs no turn of the event loop
        try:
            self._owner.read_began(data)
            if data is None:
                self._fill_frame(nbytes)
            else:
                self._take(data)
        except BadFrame as error:
            self._complain(str(error))
        finally:
            self._owner.read_ended(self, end)
        if self._frame_timer is not None and self._frame is None and not self._head:
            self._stop_frame_timer()
        if self._waiting + self._answered > REQUESTS_AHEAD:
            self._gather(nbytes)
        self._answered = 0
        self._flush()

    def is_shared(self, data: memoryview) -> bool:
        """Whether it lies in memory that the next read of any connection fills. Large frames have their own."""
        return data.obj is self._shared.obj

    def trust(self, limits: Limits) -> None:
        """It has shown who it is: other limits hold for what comes next."""
        self._limits = limits

    def rest(self) -> None:
        """What else has come is handled in a later turn: the request at hand took long, and others want theirs."""
        if not self._is_resting:
            self.hold()
            self._clock.call_soon(self.go_on)

    @property
    def is_resting(self) -> bool:
        return self._is_resting

    def hold(self) -> None:
        """What else has come is handled when somebody lets this `go_on`, in a later turn: the request at hand is not
        done, and those behind it must not overtake it."""
        self._is_resting = self._is_interrupted = True
        self._update_reading()

    def go_on(self) -> None:
        self._is_resting = False
        if self._transport is None or self._is_closing or self._mute_timer is not None:
            return
        self._is_interrupted = False
        if self._head:  # copied, since others have read into the shared memory meanwhile
            self._read(memoryview(bytearray(self._head)), len(self._head))
        self._update_reading()

    def mute(self, delay_ms: int) -> None:
        """What else has come, or comes, is handled so much later: its client has used up a quota. Answers leave."""
        until_s = self._clock.monotonic_s() + delay_ms / 1000
        if self._transport is None or until_s <= self._muted_until_s:
            return
        if self._mute_timer is not None:
            self._mute_timer.cancel()
        self._muted_until_s = until_s
        self._is_interrupted = True
        self._mute_timer = self._clock.call_after(delay_ms, self._unmute)
        self._update_reading()

    def _unmute(self) -> None:
        self._mute_timer = None
        if not self._is_resting:
            self.go_on()

    def pause_writing(self) -> None:
        self._is_full = True
        self._update_reading()
        self._start_write_timer()

    def resume_writing(self) -> None:
        self._is_full = False
        self._update_reading()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    # -- frames

    def _take(self, data: memoryview) -> None:
        position, end = 0, len(data)
        self._head = b""
        handle = self._owner.handle
        length_max = self._limits.frame_bytes_max
        while end - position >= LENGTH_BYTES:
            (length,) = _unpack_length(data, position)
            if not 0 < length <= length_max and not may_be_large(length, data[position:], self._limits):
                break
            start = position + LENGTH_BYTES
            stop = start + length
            if stop > end:
                if stop - position > min(HEAD_BYTES_MAX, len(self._shared)):
                    self._begin_frame(length, data[start:])
                    return
                break
            if self._frame_timer is not None:
                self._stop_frame_timer()
            handle(self, data[start:stop])
            position = stop
            if self._is_interrupted:
                if self._is_closing or self._transport is None:
                    return
                if self._is_held:
                    self._head = bytes(data[position:])
                    return
        if position < end:
            self._head = bytes(data[position:])
            self._start_frame_timer()

    def _gather(self, nbytes: int) -> None:
        """Not where much comes at once anyway."""
        if self._gather_timer is None and self._frame is None and nbytes < len(self._shared) // 2:
            self._gather_timer = self._clock.call_after(self._limits.gather_ms, self._gathered)
            self._update_reading()

    def _gathered(self) -> None:
        self._gather_timer = None
        self._update_reading()

    def _begin_frame(self, length: int, data: memoryview) -> None:
        self._frame = bytearray(min(length, max(FRAME_BYTES_FIRST, len(data))))
        self._frame_bytes = length
        self._filled = len(data)
        self._frame[: self._filled] = data
        self._start_frame_timer()

    def _fill_frame(self, nbytes: int) -> None:
        assert self._frame is not None
        self._filled += nbytes
        if self._filled < len(self._frame):
            return
        if self._filled < self._frame_bytes:
            larger = bytearray(min(self._frame_bytes, 2 * self._filled))
            larger[: self._filled] = self._frame
            self._frame = larger
        else:
            frame, self._frame = self._frame, None
            self._stop_frame_timer()
            self._owner.handle(self, memoryview(frame))

    def _start_frame_timer(self) -> None:
        """A client that sends a byte now and then must not hold a place for ever."""
        if self._frame_timer is None:
            self._frame_timer = self._clock.call_after(
                self._limits.frame_ms_max, lambda: self._complain("a request took too long to arrive")
            )

    def _stop_frame_timer(self) -> None:
        if self._frame_timer is not None:
            self._frame_timer.cancel()
            self._frame_timer = None

    # -- whether to read

    @property
    def _is_held(self) -> bool:
        return self._is_resting or self._mute_timer is not None

    def _update_reading(self) -> None:
        if self._transport is None:
            return
        has_room = not self._is_full and self._has_room
        is_held = self._is_held or self._gather_timer is not None
        wants_more = has_room and not self._is_stopping and not is_held
        if wants_more != self._is_reading:
            self._is_reading = wants_more
            if wants_more:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def stop_reading(self) -> None:
        """Take no more requests; those that came may still be answered."""
        self._is_stopping = True
        self._update_reading()

    def _complain(self, why: str) -> None:
        self._owner.complain(self, why)
