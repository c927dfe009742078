"""Where slow work goes, so that the event loop need not wait for it: of a disk, and of who thinks about schemas."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

Work = Callable[[], None]
Done = Callable[[BaseException | None], None]
Aside = Callable[[Work, Done], None]
"""Do the work, then call back in the broker's own thread with what it raised, if anything."""


def at_once(work: Work, done: Done) -> None:
    """Here and now: for a test, where nothing takes long."""
    try:
        work()
    except Exception as error:  # noqa: BLE001  as from a thread, whatever it was
        done(error)
    else:
        done(None)


class AsideThread:
    """One thing after another, in a thread of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str = "goqueue-aside") -> None:
        self._loop = loop
        self._executor = ThreadPoolExecutor(1, name)
        self._has_stopped = False

    def __call__(self, work: Work, done: Done) -> None:
        if self._has_stopped:
            done(RuntimeError("the node is stopping"))
            return

        def deliver(future: "Future[None]") -> None:
            self._loop.call_soon_threadsafe(done, future.exception())

        self._executor.submit(work).add_done_callback(deliver)

    def stop(self) -> None:
        """Returns when nothing is under way and nothing will be. Stopping twice is fine."""
        self._has_stopped = True
        self._executor.shutdown()
