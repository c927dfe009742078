"""What a node's process does about itself."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from goqueue.node.process import EXIT_LATE, _end_in_time, freeze_start, stop_on_signals
from tests.unit.testing.loops import turn


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
    collections: list[str] = []

    def note(phase: str, _about: object) -> None:
        collections.append(phase)

    gc.callbacks.append(note)
    try:
        freeze_start()
        assert gc.get_freeze_count() >= before + len(made)
        assert collections == []  # nor is it looked at now, while the node takes part in its cluster already
    finally:
        gc.callbacks.remove(note)
        gc.unfreeze()


LATE = """
import asyncio
from goqueue.node import process
async def main():
    stop = asyncio.Event()
    stop.set()
    await process._end_in_time(stop, 0.0)
asyncio.run(main())
"""


def test_a_stop_that_hangs_is_ended_and_says_where() -> None:
    ended = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == EXIT_LATE
    assert "the stop did not end in time" in ended.stdout + ended.stderr
    assert "_end_late" in ended.stderr
    assert "in run_until_complete" in ended.stderr


def test_a_stop_that_ends_in_time_is_left_alone() -> None:
    async def main() -> None:
        stop = asyncio.Event()
        watching = asyncio.create_task(_end_in_time(stop, 3600.0))
        stop.set()
        await turn()
        await turn()
        assert late()
        watching.cancel()
        await asyncio.wait((watching,))
        for each in late():
            each.join()

    def late() -> list[threading.Timer]:
        return [each for each in threading.enumerate() if isinstance(each, threading.Timer)]

    asyncio.run(main())
    assert not late()
