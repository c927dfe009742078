"""What leaves the node goes by a thread of its own: whoever receives it may be slow or gone, and the broker must not
notice. What is too much is dropped, and whoever offered it is told.
"""

from collections.abc import Callable
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Generic, TypeVar

from goqueue.telemetry.logs import get_logger

STOP_S = 5
WAIT_S = 0.5

events = get_logger("telemetry")

T = TypeVar("T")


class Outbox(Generic[T]):
    def __init__(
        self, what: str, exporter: str, room: int, send: Callable[[T], None], close: Callable[[], None]
    ) -> None:
        """`send` and `close` are called by the thread. `send` may raise OSError: it cannot be done now."""
        self._what = what
        self._exporter = exporter
        self._send = send
        self._close = close
        self._waiting: Queue[T] = Queue(room)
        self._stops = Event()
        self._fails = False
        self._thread = Thread(target=self._run, name=f"goqueue-export-{what}", daemon=True)
        self._thread.start()

    def offer(self, item: T) -> bool:
        """Never waits; false if there is no room."""
        try:
            self._waiting.put_nowait(item)
        except Full:
            return False
        return True

    def _run(self) -> None:
        while not (self._stops.is_set() and self._waiting.empty()):
            try:
                item = self._waiting.get(timeout=WAIT_S)
            except Empty:
                continue
            self._guarded(lambda item=item: self._send_one(item))  # type: ignore[misc]
        self._guarded(self._close)

    def _send_one(self, item: T) -> None:
        try:
            self._send(item)
        except OSError as error:
            if not self._fails:
                events.warning(f"{self._what} not exported", exporter=self._exporter, reason=str(error))
            self._fails = True
        else:
            self._fails = False

    def _guarded(self, call: Callable[[], None]) -> None:
        """A fault of ours, or of a library, costs what was being sent and not the thread."""
        try:
            call()
        except Exception as error:  # noqa: BLE001
            events.error("export failed", exporter=self._exporter, exc_info=error)

    def stop(self) -> None:
        """What waits is sent if that can be done soon."""
        self._stops.set()
        self._thread.join(STOP_S)
