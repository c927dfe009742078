"""The line that tells how far it is."""

import asyncio
import io

import pytest

from goqueue.cli.progress import CLEAR, Progress
from tests.unit.testing.loops import in_loop


class Terminal(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.is_written = asyncio.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.is_written.set()
        return super().write(text)


async def _wait(until: asyncio.Event | None) -> str:
    if until is not None:
        await until.wait()
    return "done"


@in_loop
async def test_who_waits_for_a_long_answer_is_told_for_how_long() -> None:
    stream = Terminal()
    assert await Progress(stream).while_waiting("reading", _wait(stream.is_written)) == "done"
    first, *_, last = stream.getvalue().split(CLEAR)[1:]
    assert first.startswith("reading: 0.")
    assert last == ""


@in_loop
async def test_a_quick_answer_is_not_waited_for() -> None:
    stream = Terminal()
    assert await Progress(stream).while_waiting("reading", _wait(None)) == "done"
    assert stream.getvalue() == CLEAR


@in_loop
async def test_nobody_looks() -> None:
    stream = io.StringIO()
    assert await Progress(stream).while_waiting("reading", _wait(None)) == "done"
    assert stream.getvalue() == ""


@in_loop
async def test_an_error_leaves_no_line_behind() -> None:
    async def fail() -> None:
        raise ValueError("no")

    stream = Terminal()
    with pytest.raises(ValueError, match="no"):
        await Progress(stream).while_waiting("reading", fail())
    assert stream.getvalue() == CLEAR


@in_loop
async def test_neither_does_ctrl_c() -> None:
    stream = Terminal()
    waiting = asyncio.create_task(Progress(stream).while_waiting("reading", _wait(asyncio.Event())))
    await stream.is_written.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert stream.getvalue().endswith(CLEAR)
