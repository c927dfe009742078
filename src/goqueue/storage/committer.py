"""Group commit: whatever is written to a log while it is being synced is synced together, next. The running sync is the
linger; waiting longer on purpose only adds latency. Several logs are synced at a time, since a disk takes about as long
for eight as for one.

`Committer` decides what to sync and knows no thread and no clock, so that a test runs it by hand. `CommitThreads` run
it.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Condition, Lock, Thread

from goqueue.storage.log import Log
from goqueue.storage.options import Durability
from goqueue.storage.pending_sync import PendingSync, failure_of, run_together
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.histogram import Histogram

SYNCS_AT_ONCE = 8
TOGETHER_MIN = 64
"""So many logs that need not be synced at once are synced as one: a sync costs 130 us of CPU, and of all files of a
file system little more, but it waits for what other programs have written there."""
TOLD_AT_ONCE = 32
"""Of those."""

Deliver = Callable[[Callable[[], None]], None]
"""Run a callable in the thread that owns the logs, such as an event loop's call_soon_threadsafe."""

Defer = Callable[[Callable[[], None]], object]
"""Run a callable soon, in the thread that calls: such as an event loop's call_soon."""

Finished = tuple[Log, PendingSync, float | Exception]
"""How many seconds it took, or why it failed."""


class Syncer:
    """One thread that syncs. Invariant: its bell rings once for each time that it was idle."""

    __slots__ = ("bell", "logs")

    def __init__(self) -> None:
        self.bell = Lock()
        self.bell.acquire()
        self.logs: Sequence[Log] = ()
        """Given with the bell, so that it need not look for any when it wakes. Empty: all is stopped."""


class Committer:
    """Logs ask from their owner's thread; `run_once`, or `work` and `keep_time`, may be called from others.

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
        self._together: dict[Log, None] = {}
        """Durability `os`: those that are due, and many."""
        self._earlier = Condition(self._lock)
        """For the thread that keeps the time: a log is due that may be the first."""
        self._idle: list[Syncer] = []
        """The last one that came is woken first: its caches are warm."""
        self._stopped = False
        self._finished: list[Finished] = []
        """Since the owner was last told."""
        self._finished_together: deque[Finished] = deque()
        """Likewise; nobody waits for these."""
        self._afterwards: list[Callable[[], None]] | None = None
        """While the owner is told: what is to follow."""
        self.syncs_s = Histogram()
        """How long those took that succeeded; told in the thread that owns the logs."""

    def add(self, log: Log) -> None:
        """From now on this log's appends are synced as its durability asks."""
        log.on_dirty = self._on_dirty

    def remove(self, log: Log) -> None:
        log.on_dirty = lambda log: None
        with self._lock:
            self._wanted.pop(log, None)
            self._together.pop(log, None)
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
                if len(queue) == 1:  # else an earlier one is waited for already
                    self._earlier.notify()

    def _wake_deferred(self) -> None:
        with self._lock:
            self._is_deferred = False
            self._wake_one()

    def _wake_one(self) -> None:
        """It wakes the next, if more is wanted: the owner of the logs has other things to do."""
        if self._has_work and self._idle:
            syncer = self._idle.pop()
            assert not syncer.logs, syncer.logs
            syncer.logs = self._next()
            syncer.bell.release()

    @property
    def _has_work(self) -> bool:
        return bool(self._wanted or self._together)

    def _next(self) -> Sequence[Log]:
        """One, or all that are synced together."""
        if self._together:
            logs, self._together = list(self._together), {}
            return logs
        log = next(iter(self._wanted))
        del self._wanted[log]
        return (log,)

    # -- syncing

    def run_once(self) -> bool:
        """Sync every log that wants it now, one after the other; False if none does."""
        with self._lock:
            self._collect_due()
            works = []
            while self._has_work:
                works.append(self._next())
        for logs in works:
            tell = self._sync(logs)
            if tell is not None:
                self._deliver(tell)
        return bool(works)

    def work(self, syncer: Syncer) -> None:
        """What a thread does that syncs, until all is stopped. A log is told at once, with all others that are finished
        when its owner's thread comes to it: who waits for one need not wait for the disk to be done with the others.
        """
        with self._lock:
            self._idle.append(syncer)
            self._wake_one()
        while not self._stopped:
            syncer.bell.acquire()
            logs, syncer.logs = syncer.logs, ()
            while logs:
                if self._has_work:
                    with self._lock:
                        self._wake_one()
                tell = self._sync(logs)
                with self._lock:
                    logs = self._next() if self._has_work and not self._stopped else ()
                    if not logs:
                        self._idle.append(syncer)
                # Last: the owner wakes up and wants the interpreter, which this thread gives up at the next bell.
                if tell is not None:
                    self._deliver(tell)

    def keep_time(self) -> None:
        """What one thread does until all is stopped: see that logs are synced when they are due."""
        with self._lock:
            while not self._stopped:
                self._collect_due()
                self._wake_one()
                due_ms = self._next_due_ms()
                self._earlier.wait(None if due_ms is None else max(0, due_ms - self._now_ms()) / 1000)

    def _next_due_ms(self) -> int | None:
        return min((next(iter(queue.values())) for queue in self._due_ms.values() if queue), default=None)

    def _sync(self, logs: Sequence[Log]) -> Callable[[], None] | None:
        """In any thread. What tells the owner of it; None: it will be told with others."""
        pending = [PendingSync(log) for log in logs]
        started_s = time.perf_counter()
        if len(pending) == 1:
            errors = [failure_of(pending[0].run)]
        else:
            errors = run_together(pending)
        took_s = self._taken_s(started_s)
        results = (took_s if error is None else error for error in errors)
        finished = zip(logs, pending, results, strict=True)
        with self._lock:
            told: list[Finished] | deque[Finished]
            told = self._finished if len(pending) == 1 else self._finished_together
            is_first = not told
            told.extend(finished)
        if not is_first:
            return None
        return self._tell if told is self._finished else self._tell_some

    def _taken_s(self, started_s: float) -> float:
        return time.perf_counter() - started_s

    def _tell(self) -> None:
        with self._lock:
            finished, self._finished = self._finished, []
        self._tell_each(finished)

    def _tell_some(self) -> None:
        """The rest in a later turn: a thousand logs take tens of milliseconds, and nobody waits for them."""
        rest = self._finished_together
        with self._lock:
            some = [rest.popleft() for _ in range(min(TOLD_AT_ONCE, len(rest)))]
        try:
            self._tell_each(some)
        finally:
            if rest:
                (self._defer or self._deliver)(self._tell_some)

    def _tell_each(self, finished: Sequence[Finished]) -> None:
        calls: list[Callable[[], None]] = []
        self._afterwards = calls
        try:
            call_each(partial(self._finish, *one) for one in finished)
        finally:
            self._afterwards = None
            call_each(calls)

    def after_telling(self, soon: Defer) -> Defer:
        """What runs a callable when all logs of this delivery were told, in the same turn of the event loop: whoever
        waits for a sync need not wait for a turn more. Else, `soon`. For the thread that owns the logs."""

        def defer(call: Callable[[], None]) -> object:
            if self._afterwards is None:
                return soon(call)
            self._afterwards.append(call)
            return None

        return defer

    def _finish(self, log: Log, pending: PendingSync, result: float | Exception) -> None:
        try:
            if isinstance(result, Exception):
                log.finish_sync(pending, result)
            else:
                self.syncs_s.observe(result)
                log.finish_sync(pending)
        except Exception as fault:  # noqa: BLE001  a fault of one log is its own
            log.poison("note a sync", fault)

    def _may_be_together(self, log: Log, due_ms: int) -> bool:
        return due_ms <= self._now_ms() and log.disk.syncs_together

    def _collect_due(self) -> None:
        for queue in self._due_ms.values():
            if len(queue) >= TOGETHER_MIN and self._may_be_together(*next(iter(queue.items()))):
                # One sync of all costs less than of those that are due; the others are early, and next time with them.
                self._together.update(dict.fromkeys(queue))
                queue.clear()
            while queue:
                log = next(iter(queue))
                if queue[log] > self._now_ms():
                    break
                del queue[log]
                self._wanted[log] = None

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            self._earlier.notify()
            while self._idle:
                self._idle.pop().bell.release()


class CommitThreads:
    """The threads that sync. `stop` returns when no sync is running and none will: closing the logs syncs the rest."""

    def __init__(self, deliver: Deliver, defer: Defer | None = None) -> None:
        self.committer = Committer(deliver, _monotonic_ms, defer)
        self._threads = [
            Thread(target=self.committer.work, args=(Syncer(),), name=f"goqueue-commit-{number}", daemon=True)
            for number in range(SYNCS_AT_ONCE)
        ]
        self._threads.append(Thread(target=self.committer.keep_time, name="goqueue-commit-time", daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.committer.stop()
        for thread in self._threads:
            thread.join()


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
