"""Who does not end is told of, with what it waits for."""

import asyncio
import threading
from pathlib import Path

from tools.nemesis.ending import end_all, last_words, waits_in


def test_who_ends_is_no_fault() -> None:
    thread = threading.Thread(target=threading.Event().is_set)
    thread.start()
    assert end_all([thread], 60) == []


def test_who_does_not_end_is_named_with_the_line_that_it_waits_in() -> None:
    begun, answer = threading.Event(), threading.Event()

    def ask_a_coordinator() -> None:
        begun.set()
        answer.wait()

    thread = threading.Thread(target=ask_a_coordinator, name="writer-0", daemon=True)
    thread.start()
    begun.wait()
    try:
        (fault,) = end_all([thread], 0)
    finally:
        answer.set()
        thread.join()
    assert fault.kind == "did not end"
    assert "writer-0" in fault.text
    assert "ask_a_coordinator: " in fault.text


def test_of_an_event_loop_the_line_is_told_that_each_task_awaits() -> None:
    begun = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    ends: list[asyncio.Event] = []

    async def inner() -> None:
        begun.set()
        await ends[0].wait()

    async def outer() -> None:
        loops.append(asyncio.get_running_loop())
        ends.append(asyncio.Event())
        await inner()

    thread = threading.Thread(target=lambda: asyncio.run(outer()), daemon=True)
    thread.start()
    begun.wait()
    try:
        while "inner: await ends[0].wait()" not in (told := waits_in(thread)):
            assert told
    finally:
        loops[0].call_soon_threadsafe(ends[0].set)
        thread.join()


def test_the_last_words_of_a_client_are_its_own(tmp_path: Path) -> None:
    log = tmp_path / "clients.log"
    lines = [f"%7|1.0|SEND|{name}#producer-3| {number}" for number in range(5) for name in ("writer.1", "writer.10")]
    log.write_text("\n".join(lines))
    assert last_words(log, "writer.1", lines_max=2) == [f"%7|1.0|SEND|writer.1#producer-3| {n}" for n in (3, 4)]
