"""An acknowledgement that waits for more than a log: for records that are kept elsewhere."""

from collections.abc import Callable
from typing import Protocol

from goqueue.model.errors import GoQueueError
from goqueue.telemetry.calls import call_each


class Keeping(Protocol):
    """A replica, or what stands before one."""

    @property
    def start_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def failure(self) -> GoQueueError | None: ...

    def when_reached(self, offset: int, call: Callable[[], None], /) -> None: ...


class JointAcknowledger:
    """A replica to whoever waits for an acknowledgement of a batch of which records are kept elsewhere: it also waits
    for these.
    """

    def __init__(self, replica: Keeping, base_offset: int) -> None:
        self._replica = replica
        self._base_offset = base_offset
        self._is_settled = False
        self._error: GoQueueError | None = None
        self._waiting: list[Callable[[], None]] = []
        self.when_settled: Callable[[], None] = lambda: None
        """Called once, if all went well."""

    def settled(self, reply: object) -> None:
        self._is_settled = True
        waiting, self._waiting = self._waiting, []
        if isinstance(reply, GoQueueError):
            self._error = reply
            call_each(waiting)
        else:
            call_each([self.when_settled, *waiting])

    @property
    def start_offset(self) -> int:
        return self._replica.start_offset

    @property
    def high_watermark(self) -> int:
        return (
            self._replica.high_watermark if self._is_settled else min(self._replica.high_watermark, self._base_offset)
        )

    @property
    def failure(self) -> GoQueueError | None:
        return self._replica.failure or self._error

    def when_reached(self, offset: int, call: Callable[[], None]) -> None:
        def reached() -> None:
            if self._is_settled:
                call()
            else:
                self._waiting.append(call)

        self._replica.when_reached(offset, reached)
