"""Async tests without a plugin."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")
SECONDS_MAX = 60


def in_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """A test that hangs fails."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(SECONDS_MAX):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run


async def turn() -> None:
    """Let everybody else have a turn of the event loop."""
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    loop.call_soon(passed.set_result, None)
    await passed
