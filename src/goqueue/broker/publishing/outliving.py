"""A batch whose leader changes before it is acknowledged. Nobody knows then whether it will be kept, but this node soon
does: its copy follows the next leader. Once the high watermark has passed the batch, and nothing of it was cut off, it
is as safe as if this node had gone on leading.
"""

from collections.abc import Callable

from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import NotLeader
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock, Timer

PATIENCE_MS = 5000
"""A copy that has not heard from the next leader by then may never do so."""


class Outliving:
    """A replica to whoever waits for the acknowledgement of one batch of it; `failure` is known when they are called.

    Invariant: after a cut below the end of the batch it is never taken for acknowledged, whatever is there later.
    """

    def __init__(self, replica: Replica, next_offset: int, clock: Clock, patience_ms: int = PATIENCE_MS) -> None:
        self._replica = replica
        self._patience_ms = patience_ms
        self._next_offset = next_offset
        self._clock = clock
        self._is_cut = False
        self._call: Callable[[], None] | None = None
        self._timer: Timer | None = None
        self.failure: GoQueueError | None = None

    def when_reached(self, offset: int, call: Callable[[], None]) -> None:
        assert offset == self._next_offset, (offset, self._next_offset)
        self._call = call
        self._replica.when_reached(offset, self._reached)

    def _reached(self) -> None:
        failure = self._replica.failure
        if isinstance(failure, NotLeader):
            # Kept as it is: by the time that the call comes, it may say something else.
            self.failure = failure.kept()
            self._timer = self._clock.call_after(self._patience_ms, self._end)
            self._replica.on_cut[self] = self._cut
            self._replica.watch_end(self, self._look)
        else:
            self.failure = failure
            self._end()

    def _cut(self, offset: int) -> None:
        if offset < self._next_offset:
            self._is_cut = True
            self._clock.call_soon(self._end)

    def _look(self) -> None:
        replica = self._replica
        if replica.log.failure is not None:
            self._clock.call_soon(self._end)
        elif not self._is_cut and replica.high_watermark >= self._next_offset:
            self.failure = None
            self._clock.call_soon(self._end)

    def _end(self) -> None:
        call, self._call = self._call, None
        if call is None:
            return
        self._replica.unwatch_end(self)
        self._replica.on_cut.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        call()
