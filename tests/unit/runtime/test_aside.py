"""Work that is put aside is done elsewhere, and what became of it is told here."""

import asyncio
import threading

import pytest

from goqueue.runtime.aside import Aside, AsideThread, at_once


def fail() -> None:
    raise OSError("no room")


async def outcome(aside: Aside, work: object) -> tuple[BaseException | None, threading.Thread]:
    told: asyncio.Future[tuple[BaseException | None, threading.Thread]] = asyncio.get_running_loop().create_future()
    aside(work, lambda error: told.set_result((error, threading.current_thread())))  # type: ignore[arg-type]
    return await told


async def with_thread() -> None:
    aside = AsideThread(asyncio.get_running_loop())
    workers: list[threading.Thread] = []
    here = threading.current_thread()
    assert await outcome(aside, lambda: workers.append(threading.current_thread())) == (None, here)
    error, told_in = await outcome(aside, fail)
    assert (str(error), told_in) == ("no room", here)
    assert workers[0] is not here
    aside.stop()
    aside.stop()
    assert not workers[0].is_alive()
    error, _ = await outcome(aside, lambda: workers.append(here))
    assert isinstance(error, RuntimeError)
    assert len(workers) == 1, "nothing is done after the stop"


def test_a_thread_does_the_work_and_the_loop_is_told() -> None:
    asyncio.run(with_thread())


def test_what_is_under_way_is_done_when_stop_returns() -> None:
    async def run() -> list[str]:
        done: list[str] = []
        begun, may_go_on = threading.Event(), threading.Event()
        aside = AsideThread(asyncio.get_running_loop())

        def work() -> None:
            begun.set()
            may_go_on.wait()
            done.append("work")

        aside(work, lambda error: None)
        begun.wait()
        threading.Thread(target=may_go_on.set).start()
        aside.stop()
        return list(done)

    assert asyncio.run(run()) == ["work"]


@pytest.mark.parametrize("fails", [False, True])
def test_at_once_is_at_once(fails: bool) -> None:
    errors: list[BaseException | None] = []
    at_once(fail if fails else lambda: None, errors.append)
    assert [str(error) for error in errors] == (["no room"] if fails else ["None"])
