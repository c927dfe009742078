"""The latest moment at which a request is answered. The listener looks at all of them every other second: a timer for
each would cost every request more than reading it does.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from goqueue.wire.asgi import Scope

DEADLINES = "goqueue.deadlines"
"""In the state of a scope, if the listener is ours."""


class Deadlines:
    def __init__(self) -> None:
        self.running: dict[asyncio.Task[Any], float] = {}
        """When each is late. All have equally long, so they are in order."""
        self.late: dict[asyncio.Task[Any], None] = {}

    def sweep(self, now_s: float) -> None:
        for task, until_s in list(self.running.items()):
            if until_s > now_s:
                break
            del self.running[task]
            self.late[task] = None
            task.cancel()


async def within(seconds: float, scope: Scope, work: Coroutine[Any, Any, Any]) -> Any:
    """TimeoutError: it took longer, and was cancelled."""
    deadlines: Deadlines | None = scope.get("state", {}).get(DEADLINES)
    if deadlines is None:
        async with asyncio.timeout(seconds):
            return await work
    task = asyncio.current_task()
    assert task is not None
    deadlines.running[task] = task.get_loop().time() + seconds
    try:
        return await work
    except asyncio.CancelledError:
        if task not in deadlines.late or task.uncancel() > 0:
            raise
        raise TimeoutError from None
    finally:
        deadlines.running.pop(task, None)
        deadlines.late.pop(task, None)
