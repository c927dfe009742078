"""Group commit: one thread syncs whatever was written while it was busy with the sync before. The running sync is the
linger; waiting longer on purpose only adds latency.

`Committer` decides what to sync and knows no thread and no clock, so that a test runs it by hand. `CommitThread` runs
it.
"""

import time
from collections.abc import Callable
from functools import partial
from threading import Condition, Thread

from goqueue.storage.log import Log
from goqueue.storage.options import Durability
from goqueue.storage.pending_sync import PendingSync
from goqueue.telemetry.histogram import Histogram

Deliver = Callable[[Callable[[], None]], None]
"""Run a callable in the thread that owns the logs, such as an event loop's call_soon_threadsafe."""


class Committer:
    """Logs ask from their owner's thread; `run_once` may be called from another."""

    def __init__(self, deliver: Deliver, now_ms: Callable[[], int]) -> None:
        self._deliver = deliver
        self._now_ms = now_ms
        self._changed = Condition()
        self._wanted: dict[Log, None] = {}
        self._due_ms: dict[Log, int] = {}
        """Durability `os`: when each log with unsynced appends must be synced, whether or not another append comes."""
        self._stopped = False
        self.syncs_s = Histogram()
        """How long those took that succeeded; told in the thread that owns the logs."""

    def add(self, log: Log) -> None:
        """From now on this log's appends are synced as its durability asks."""
        log.on_dirty = self._on_dirty

    def remove(self, log: Log) -> None:
        log.on_dirty = lambda log: None
        with self._changed:
            self._wanted.pop(log, None)
            self._due_ms.pop(log, None)

    def _on_dirty(self, log: Log) -> None:
        with self._changed:
            if log.options.durability is Durability.DISK:
                self._wanted[log] = None
            else:
                self._due_ms.setdefault(log, self._now_ms() + log.options.sync_interval_ms)
            self._changed.notify()

    def run_once(self) -> bool:
        """Sync every log that wants it now; False if none does. Each is told at once: who waits for one log need not
        wait for the disk to be done with the others."""
        with self._changed:
            self._collect_due()
            logs, self._wanted = self._wanted, {}
        for log in logs:
            pending = PendingSync(log)
            result: float | Exception
            try:
                result = self._run(pending)
            except Exception as error:  # noqa: BLE001  whatever it was, nobody may be told that this log is safe
                result = error
            self._deliver(partial(self._finish, log, pending, result))
        return bool(logs)

    def _run(self, pending: PendingSync) -> float:
        """Returns how long it took, in seconds."""
        started_s = time.perf_counter()
        pending.run()
        return time.perf_counter() - started_s

    def _finish(self, log: Log, pending: PendingSync, result: float | Exception) -> None:
        try:
            if isinstance(result, Exception):
                log.finish_sync(pending, result)
            else:
                self.syncs_s.observe(result)
                log.finish_sync(pending)
        except Exception as fault:  # noqa: BLE001  a fault of one log is its own
            log.poison("note a sync", fault)

    def _collect_due(self) -> None:
        now_ms = self._now_ms()
        for log in [log for log, due_ms in self._due_ms.items() if due_ms <= now_ms]:
            del self._due_ms[log]
            self._wanted[log] = None

    def wait(self) -> bool:
        """Block until there is something to sync; False once stopped."""
        with self._changed:
            while not self._stopped and not self._wanted:
                due_ms = min(self._due_ms.values(), default=None)
                if due_ms is None:
                    self._changed.wait()
                elif due_ms <= self._now_ms():
                    break
                else:
                    self._changed.wait((due_ms - self._now_ms()) / 1000)
            return not self._stopped

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()


class CommitThread:
    """The one thread that syncs. `stop` returns when no sync is running and none will: closing the logs syncs the
    rest."""

    def __init__(self, deliver: Deliver) -> None:
        self.committer = Committer(deliver, _monotonic_ms)
        self._thread = Thread(target=self._run, name="goqueue-commit", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while self.committer.wait():
            self.committer.run_once()

    def stop(self) -> None:
        self.committer.stop()
        self._thread.join()


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
