"""Parts of a start that wait for others, for as long as nobody wants the node to stop."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def unless_stopped(work: Coroutine[Any, Any, object], stop: asyncio.Event) -> bool:
    """Whether it was done, to its end. False: the node is to stop, and nothing of it goes on."""
    doing, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            doing.result()
            return True
        return False
    finally:
        doing.cancel()
        stopping.cancel()
        await asyncio.wait((doing, stopping))
