"""What a node's process does about itself."""

import asyncio
import gc
import os
import signal
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from goqueue.node.process import freeze_start, stop_on_signals


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_signal_is_noted_at_once_and_told_to_the_loop_when_that_has_its_turn(
    run: Callable[[Awaitable[None]], None],
) -> None:
    async def main() -> None:
        stop = asyncio.Event()
        is_stopping = stop_on_signals(stop)
        assert not is_stopping()
        os.kill(os.getpid(), signal.SIGTERM)
        assert is_stopping()
        assert not stop.is_set()
        await stop.wait()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        run(main())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_what_the_start_made_is_not_looked_at_by_collections() -> None:
    before = gc.get_freeze_count()
    made = [[number] for number in range(1000)]
    try:
        freeze_start()
        assert gc.get_freeze_count() >= before + len(made)
    finally:
        gc.unfreeze()
