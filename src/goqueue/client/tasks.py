"""The tasks that a client owns. None outlives it, and none fails unheard."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from goqueue.telemetry.logs import get_logger

log = get_logger("goqueue.client")


class Tasks:
    """A task group that lives as long as an object, not as long as a block: a client is also used without `async with`,
    and the failure of one of its tasks must not cancel the task of its user.
    """

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[None], None] = {}
        self._is_closed = False

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        if self._is_closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the client failed, which is a bug", task=task.get_name(), exc_info=error)

    async def stop(self) -> None:
        """Cancel them all, and wait until they are gone."""
        self._is_closed = True
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
