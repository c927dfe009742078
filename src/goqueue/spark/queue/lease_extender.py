"""Keeps the leases of a micro-batch alive while it runs, from the driver's process that lives as long as the query."""

import threading
from collections.abc import Callable, Iterable, Sequence

from goqueue.model.errors import GoQueueError

EXTENSIONS_PER_LEASE = 3
"""Two may fail, as while the broker restarts, before a lease ends."""


class LeaseExtender:
    def __init__(self, extend: Callable[[Sequence[str]], object], visibility_ms: int) -> None:
        self._extend = extend
        self._pause_s = visibility_ms / 1000 / EXTENSIONS_PER_LEASE
        self._held: dict[str, None] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self, receipts: Iterable[str]) -> None:
        with self._lock:
            self._held.update(dict.fromkeys(receipts))
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="goqueue leases", daemon=True)
                self._thread.start()

    def let_go(self, receipts: Iterable[str]) -> None:
        with self._lock:
            for receipt in receipts:
                self._held.pop(receipt, None)

    @property
    def held(self) -> list[str]:
        with self._lock:
            return list(self._held)

    def extend_now(self) -> None:
        """A broker that does not answer now is asked again later: the leases may last until then."""
        receipts = self.held
        if receipts:
            try:
                self._extend(receipts)
            except (GoQueueError, OSError):
                return

    def stop(self) -> None:
        """What is held is left to end by itself: whoever starts the query again goes on with it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._pause_s):
            self.extend_now()
