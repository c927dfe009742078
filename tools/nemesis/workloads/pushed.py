"""Queues whose messages are pushed to workers, one at a time: the next one comes when the last one is settled.

A `receive` is written down before the message before it is settled, because that is what the broker waits for.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any, Protocol

from goqueue.client.errors import ClientError
from tools.nemesis.history import Asking
from tools.nemesis.workloads.common import DRAIN_S_MAX, NotDone, Run, Unanswered
from tools.nemesis.workloads.queues import LEASE_S, QUIET_S, HttpQueue

LOOK_S = 0.5
BROKEN = (ClientError, OSError, TimeoutError)


class Source(Protocol):
    """A stream of messages from one node, or from all of them."""

    async def next(self) -> tuple[str, str, Any]:
        """Id, receipt, and what `settle` needs."""

    async def settle(self, handle: Any, how: str) -> None:
        """Raises NotDone or Unanswered."""


class PushedQueue(HttpQueue):
    def _source(self, run: Run, number: int) -> AbstractAsyncContextManager[Source]:
        """`number`: of the attempt; another one may ask another node."""
        raise NotImplementedError

    def _work(self, run: Run, name: str, number: int) -> None:
        asyncio.run(_Worker(self, run, name, number).work(self._source))


class _Worker:
    def __init__(self, queue: HttpQueue, run: Run, name: str, number: int) -> None:
        self._queue, self._run, self._name, self._number = queue, run, name, number
        self._dice: Random = run.dice(name)
        self._last_s = time.monotonic()
        self._ends_s: float | None = None

    async def work(self, source: Callable[[Run, int], AbstractAsyncContextManager[Source]]) -> None:
        attempt = self._number
        while not self._is_over():
            attempt += 1
            asking = self._ask()
            try:
                async with source(self._run, attempt) as opened:
                    await self._drain(opened, asking)
            except BROKEN as error:
                asking.unknown(repr(error))
                self._last_s = time.monotonic()  # it may have leased something
                await asyncio.sleep(0.2)

    def _ask(self) -> Asking:
        return self._run.book.begin(self._name, "receive", queue=self._queue.queue, door=self._queue.door)

    def _is_over(self) -> bool:
        if not self._run.is_ending.is_set():
            return False
        self._ends_s = self._ends_s or time.monotonic() + DRAIN_S_MAX
        if time.monotonic() > self._ends_s:
            self._run.problems.append(f"{self._name} did not come to an end of {self._queue.queue}")
            return True
        return time.monotonic() - self._last_s > QUIET_S

    async def _drain(self, source: Source, asking: Asking) -> None:
        while True:
            coming = asyncio.ensure_future(source.next())
            try:
                while not (await asyncio.wait({coming}, timeout=LOOK_S))[0]:
                    if self._is_over():
                        return
                message_id, receipt, handle = coming.result()
            except BROKEN as error:
                asking.unknown(repr(error))
                raise
            finally:
                coming.cancel()
            self._last_s = time.monotonic()
            asking.ok(messages=[{"id": message_id, "receipt": receipt, "lease_ms": LEASE_S * 1000}])
            asking = self._ask()
            await self._settle(source, message_id, receipt, handle)

    async def _settle(self, source: Source, message_id: str, receipt: str, handle: Any) -> None:
        how = self._queue.choose(self._run, self._dice)
        if how is None:
            return
        asked = {"queue": self._queue.queue, "id": message_id, "receipt": receipt, "how": how}
        asking = self._run.book.begin(self._name, "settle", **asked, door=self._queue.door)
        try:
            await source.settle(handle, how)
        except NotDone as error:
            asking.fail(error)
        except Unanswered as error:
            asking.unknown(error)
        else:
            asking.ok()
