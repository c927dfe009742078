"""Group commit: whatever is written to a log while it is being synced is synced together, next. The running sync is the
linger; waiting longer on purpose only adds latency. Several logs are synced at a time, since a disk takes about as long
for eight as for one.

`Committer` decides what to sync and knows no thread and no clock, so that a test runs it by hand. `CommitThreads` run
it.
"""

import time
from collections.abc import Callable
from threading import Lock, Thread

from goqueue.storage.log import Log
from goqueue.storage.options import Durability
from goqueue.storage.pending_sync import PendingSync
from goqueue.telemetry.histogram import Histogram

SYNCS_AT_ONCE = 8

Deliver = Callable[[Callable[[], None]], None]
"""Run a callable in the thread that owns the logs, such as an event loop's call_soon_threadsafe."""

Defer = Callable[[Callable[[], None]], object]
"""Run a callable soon, in the thread that calls: such as an event loop's call_soon."""

Finished = tuple[Log, PendingSync, float | Exception]
"""How many seconds it took, or why it failed."""


class Committer:
    """Logs ask from their owner's thread; `run_once`, or `take` and `sync`, may be called from others.

    A log asks again when it was told of its last sync, so it is with two threads at most when its options change; then
    one of them waits for the other.
    """

    def __init__(self, deliver: Deliver, now_ms: Callable[[], int], defer: Defer | None = None) -> None:
        """`defer`: for the thread that owns the logs. A thread that is woken wants the interpreter at once, while its
        owner still writes to other logs: both would only take turns. None: it is woken at once."""
        self._deliver = deliver
        self._now_ms = now_ms
        self._defer = defer
        self._is_deferred = False
        self._lock = Lock()
        self._wanted: dict[Log, None] = {}
        self._due_ms: dict[int, dict[Log, int]] = {}
        """Durability `os`: when each log with unsynced appends must be synced, whether or not another append comes. By
        interval: those of one interval come in the order in which they are due."""
        self._idle: list[Lock] = []
        """One for each thread that waits for a log. The last one that came is woken first: its caches are warm."""
        self._coming = 0
        """Threads that were woken and have not looked yet."""
        self._keeper: Lock | None = None
        """Of the time: the one thread that waits no longer than until the next log is due."""
        self._stopped = False
        self._telling = Lock()
        self._finished: list[Finished] = []
        self._is_told_soon = False
        self.syncs_s = Histogram()
        """How long those took that succeeded; told in the thread that owns the logs."""

    def add(self, log: Log) -> None:
        """From now on this log's appends are synced as its durability asks."""
        log.on_dirty = self._on_dirty

    def remove(self, log: Log) -> None:
        log.on_dirty = lambda log: None
        with self._lock:
            self._wanted.pop(log, None)
            for queue in self._due_ms.values():
                queue.pop(log, None)

    def _on_dirty(self, log: Log) -> None:
        with self._lock:
            if log.options.durability is Durability.DISK:
                self._wanted[log] = None
                if self._defer is None:
                    self._wake_one()
                elif not self._is_deferred:
                    self._is_deferred = True
                    self._defer(self._wake_deferred)
            else:
                queue = self._due_ms.setdefault(log.options.sync_interval_ms, {})
                queue.setdefault(log, self._now_ms() + log.options.sync_interval_ms)
                if len(queue) == 1:  # else the keeper waits for an earlier one already
                    self._keeper = None
                    self._wake_one()

    def _wake_deferred(self) -> None:
        with self._lock:
            self._is_deferred = False
            if self._wanted:
                self._wake_one()

    def _wake_one(self) -> None:
        """Unless one is on its way, which will see all that is wanted and wake the next."""
        if self._idle and not self._coming:
            self._coming += 1
            self._idle.pop().release()

    # -- syncing

    def run_once(self) -> bool:
        """Sync every log that wants it now, one after the other; False if none does."""
        with self._lock:
            self._collect_due()
            logs, self._wanted = self._wanted, {}
        for log in logs:
            self.sync(log)
        return bool(logs)

    def take(self) -> Log | None:
        """A log to be synced now; blocks until there is one. None once stopped."""
        with self._lock:
            while not self._stopped:
                self._collect_due()
                if self._wanted:
                    log = next(iter(self._wanted))
                    del self._wanted[log]
                    if self._wanted or (self._keeper is None and self._next_due_ms() is not None):
                        self._wake_one()
                    return log
                self._wait()
            return None

    def _wait(self) -> None:
        """Gives the lock up meanwhile."""
        due_ms = self._next_due_ms() if self._keeper is None else None
        bell = Lock()
        bell.acquire()
        timeout_s = -1.0
        if due_ms is not None:
            self._keeper = bell
            timeout_s = max(0, due_ms - self._now_ms()) / 1000
        self._idle.append(bell)
        self._lock.release()
        try:
            bell.acquire(timeout=timeout_s)
        finally:
            self._lock.acquire()
        if bell in self._idle:
            self._idle.remove(bell)
        else:
            self._coming -= 1
        if self._keeper is bell:
            self._keeper = None

    def _next_due_ms(self) -> int | None:
        return min((next(iter(queue.values())) for queue in self._due_ms.values() if queue), default=None)

    def sync(self, log: Log) -> None:
        """In any thread. The log is told at once, with all others that are finished when its owner's thread comes to
        it: who waits for one need not wait for the disk to be done with the others."""
        pending = PendingSync(log)
        result: float | Exception
        try:
            result = self._run(pending)
        except Exception as error:  # noqa: BLE001  whatever it was, nobody may be told that this log is safe
            result = error
        with self._telling:
            self._finished.append((log, pending, result))
            if self._is_told_soon:
                return
            self._is_told_soon = True
        self._deliver(self._tell)

    def _run(self, pending: PendingSync) -> float:
        """Returns how long it took, in seconds."""
        started_s = time.perf_counter()
        pending.run()
        return time.perf_counter() - started_s

    def _tell(self) -> None:
        with self._telling:
            finished, self._finished = self._finished, []
            self._is_told_soon = False
        for log, pending, result in finished:
            self._finish(log, pending, result)

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
        for queue in self._due_ms.values():
            while queue:
                log = next(iter(queue))
                if queue[log] > self._now_ms():
                    break
                del queue[log]
                self._wanted[log] = None

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            while self._idle:
                self._coming += 1
                self._idle.pop().release()


class CommitThreads:
    """The threads that sync. `stop` returns when no sync is running and none will: closing the logs syncs the rest."""

    def __init__(self, deliver: Deliver, defer: Defer | None = None) -> None:
        self.committer = Committer(deliver, _monotonic_ms, defer)
        self._threads = [
            Thread(target=self._run, name=f"goqueue-commit-{number}", daemon=True) for number in range(SYNCS_AT_ONCE)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while (log := self.committer.take()) is not None:
            self.committer.sync(log)

    def stop(self) -> None:
        self.committer.stop()
        for thread in self._threads:
            thread.join()


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
