"""The side of a connection that answers: replies leave in the order of the requests, in few writes; a client that does
not take them is closed.
"""

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Sequence

from goqueue.doors.kafka.frame_sizes import JOIN_BYTES_MAX
from goqueue.doors.kafka.reply import Buffer, Reply
from goqueue.doors.kafka.surroundings import Clock, Limits, Owner, Timer


class Answering(asyncio.BufferedProtocol):
    __slots__ = (
        "_answered",
        "_clock",
        "_flush_is_due",
        "_is_closing",
        "_is_interrupted",
        "_is_reading",
        "_limits",
        "_owner",
        "_transport",
        "_waiting",
        "_waiting_bytes",
        "_why",
        "_write_timer",
        "_written_bytes",
        "replies",
    )

    def __init__(self, limits: Limits, clock: Clock, owner: Owner) -> None:
        self._limits = limits
        self._clock = clock
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self.replies: deque[Reply] = deque()
        """That have not left, in the order of the requests. None, when the connection is lost."""
        self._waiting = self._waiting_bytes = 0
        """Requests that have not been answered, and what is kept of them."""
        self._answered = 0
        """Requests of the read at hand that are answered past the line."""
        self._is_reading = True
        self._flush_is_due = self._is_closing = False
        self._is_interrupted = False
        """It was closed, lost, held or muted, and may be so still: whoever goes through frames has to look."""
        self._write_timer: Timer | None = None
        self._written_bytes = 0
        self._why = "closed by the client"

    @abstractmethod
    def _update_reading(self) -> None:
        """There may be room for more requests, or none any more."""

    @abstractmethod
    def _complain(self, why: str) -> None: ...

    @property
    def is_idle(self) -> bool:
        return not self.replies

    @property
    def is_closing(self) -> bool:
        return self._is_closing

    @property
    def waiting_bytes(self) -> int:
        """Of its requests that have not been answered."""
        return self._waiting_bytes

    def expect_reply(self, requests: int = 1, size: int = 0) -> Reply:
        """The place of the answer to the next request, or to so many of them. For use while a frame is handled.
        `size`: how many bytes of it are kept until then."""
        reply = Reply(self, requests, size)
        self.replies.append(reply)
        self._waiting += requests
        if size:
            self._waiting_bytes += size
            self._owner.waiting_bytes += size
        return reply

    def took(self, requests: int) -> None:
        """So many requests of the read at hand have no place in the line: they get their `answer` in this turn, and
        before anything else that comes is handled."""
        self._answered += requests

    def answer(self, buffers: list[bytes], requests: int) -> None:
        """The answers to so many requests that it `took`, all there: as `expect_reply` and `send`, but without a place
        in a line in which nobody waits."""
        transport = self._transport
        if self.replies or transport is None:
            self.expect_reply(requests).send(buffers)
            return
        if len(buffers) == 1:
            self._written_bytes += len(buffers[0])
            transport.write(buffers[0])
        else:
            self._write(transport, buffers)

    def reply_ready(self) -> None:
        """Replies that become ready in one moment leave in one write; one that nobody waits behind leaves at once."""
        replies = self.replies
        if self._flush_is_due or not replies or replies[0].buffers is None:
            return
        if len(replies) == 1:
            self._flush()
        else:
            self._flush_is_due = True
            self._clock.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        transport = self._transport
        if transport is None:
            return
        replies = self.replies
        if replies and replies[0].buffers is not None:
            ready: list[Buffer] = []
            while replies and (buffers := replies[0].buffers) is not None:
                reply = replies.popleft()
                self._waiting -= reply.requests
                if reply.size:
                    self._waiting_bytes -= reply.size
                    self._owner.waiting_bytes -= reply.size
                ready += buffers
            if len(ready) == 1:
                self._written_bytes += len(ready[0])
                transport.write(ready[0])
            elif ready:
                self._write(transport, ready)
        if not self._is_reading or (self._waiting and not self._has_room):
            self._update_reading()

    def _write(self, transport: asyncio.Transport, ready: Sequence[Buffer]) -> None:
        size = sum(map(len, ready))
        self._written_bytes += size
        if size <= JOIN_BYTES_MAX:
            transport.write(b"".join(ready))
        else:
            transport.writelines(ready)

    def _start_write_timer(self) -> None:
        """A client that does not read holds memory, and would hold up the end of the node."""
        if self._write_timer is None and self._transport is not None:
            taken = self._written_bytes - self._transport.get_write_buffer_size()
            if taken < self._written_bytes:
                self._write_timer = self._clock.call_after(self._limits.write_ms_max, lambda: self._check_taken(taken))

    def _check_taken(self, taken_before: int) -> None:
        self._write_timer = None
        if self._transport is None:
            return
        if self._written_bytes - self._transport.get_write_buffer_size() == taken_before:
            self._complain("the client does not read its replies")
            self._transport.abort()
        else:
            self._start_write_timer()

    @property
    def _has_room(self) -> bool:
        limits = self._limits
        return self._waiting < limits.pending_max and self._waiting_bytes < limits.pending_bytes_max

    def close(self, why: str) -> None:
        """What was written may still leave, if the client takes it."""
        self._why, self._is_closing, self._is_interrupted = why, True, True
        if self._transport is not None:
            self._transport.close()
            self._start_write_timer()

    def abort(self, why: str) -> None:
        """Whatever is still to be sent is given up."""
        self._why, self._is_closing, self._is_interrupted = why, True, True
        if self._transport is not None:
            self._transport.abort()
