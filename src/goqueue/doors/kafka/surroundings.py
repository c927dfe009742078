"""What a connection needs: a clock, limits, and somebody who takes its frames."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from goqueue.doors.kafka.connection import Connection


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def monotonic_s(self) -> float: ...

    def call_soon(self, call: Callable[[], None]) -> object: ...

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> Timer: ...


class Limits(Protocol):
    frame_bytes_max: int
    produce_bytes_max: int
    """Of a frame that brings records; all others hold many small things, and 30 times their size once decoded."""
    pending_max: int
    """Requests of one connection that may wait for their replies; more are not read."""
    pending_bytes_max: int
    """The same by their size, but for those that bring records: what waits is kept, and is larger than it came."""
    gather_ms: int
    """A client that has more than REQUESTS_AHEAD unanswered does not wait for its replies: its requests may gather for
    so long, since to wake up for a few costs more than to serve them."""
    frame_ms_max: int
    """How long a frame may take to arrive once it has begun."""
    write_ms_max: int
    """How long a client may take no byte of the replies that wait for it."""


class Owner(Protocol):
    """Who gets what comes in."""

    waiting_bytes: int
    """Of requests on all connections that are kept until they are answered, records aside."""

    @property
    def kept_bytes(self) -> int:
        """So much of the beginning of the shared memory is still needed: what is read next comes behind it."""

    def handle(self, connection: "Connection", frame: memoryview) -> None:
        """A frame, without its length; `expect_reply` gives the place of its answer. The memory is good until
        `read_ended`, and longer if it is kept."""

    def read_began(self, data: memoryview | None) -> None:
        """What was read: the frames that come next lie in it. None: it is a part of a large frame."""

    def read_ended(self, connection: "Connection", end: int) -> None:
        """All frames of one read have been handled. They lie before `end` in the shared memory, if not in their own."""

    def complain(self, connection: "Connection", why: str) -> None:
        """What came makes no sense; close it."""

    def lost(self, connection: "Connection", why: str) -> None: ...
