"""A line that tells a person at a terminal how far it is. Where nobody looks, nothing is said."""

import time
from collections.abc import Awaitable
from typing import TextIO, TypeVar

INTERVAL_S = 0.1
CLEAR = "\r\x1b[K"

T = TypeVar("T")


class Progress:
    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None and stream.isatty() else None
        self._notes = stream
        self._next_s = 0.0

    @property
    def is_shown(self) -> bool:
        return self._stream is not None

    def show(self, what: str, done: int, total: int) -> None:
        """Cheap enough for an inner loop: it writes at most ten times a second."""
        if self._stream is None or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + INTERVAL_S
        self._write(f"{CLEAR}{what}: {done:,} of {total:,} ({done / total:.0%})")

    async def while_waiting(self, what: str, answer: Awaitable[T]) -> T:
        """For one long answer, of which nobody knows how far it is: how long it has taken."""
        if self._stream is None:
            return await answer
        import asyncio

        started_s, waiting = time.monotonic(), asyncio.ensure_future(answer)
        try:
            while not (await asyncio.wait([waiting], timeout=INTERVAL_S))[0]:
                self._write(f"{CLEAR}{what}: {time.monotonic() - started_s:.1f} s")
        finally:
            waiting.cancel()
            self.clear()
        return waiting.result()

    def clear(self) -> None:
        if self._stream is not None:
            self._write(CLEAR)

    def note(self, text: str) -> None:
        """For a person in any case, terminal or not."""
        self.clear()
        if self._notes is not None:
            print(f"goqueue: {text}", file=self._notes)

    def _write(self, text: str) -> None:
        assert self._stream is not None
        self._stream.write(text)
        self._stream.flush()
