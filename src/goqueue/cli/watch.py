"""`--watch`: the same command again and again, on one screen."""

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

CLEAR = "\x1b[H\x1b[2J"
DEFAULT_MS = 2000
AT_LEAST_MS = 100


async def watch(
    run: Callable[[], Coroutine[Any, Any, int | None]], every_ms: int | None, words: str, times: int | None = None
) -> int:
    """Until Ctrl-C, or so many `times`. On a terminal each answer takes the place of the last."""
    every_s = max(every_ms or DEFAULT_MS, AT_LEAST_MS) / 1000
    while True:
        if sys.stdout.isatty():
            sys.stdout.write(f"{CLEAR}every {every_s:g}s: goqueue {words}  {time.strftime('%X')}\n\n")
        code = await run() or 0
        sys.stdout.flush()
        if times is not None:
            times -= 1
            if times <= 0:
                return code
        await asyncio.sleep(every_s)
        if not sys.stdout.isatty():
            sys.stdout.write("\n")
