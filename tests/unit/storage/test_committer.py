"""Which log is synced when, by how many threads, and who is told of it."""

import errno
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from goqueue.model.errors import LogPoisoned
from goqueue.storage.committer import SYNCS_AT_ONCE, TOGETHER_MIN, TOLD_AT_ONCE, Committer, CommitThreads, Defer
from goqueue.storage.disk import File
from goqueue.storage.log import Log
from goqueue.storage.options import Durability
from goqueue.testing import MemoryDisk
from tests.logs import SMALL, append, batch

WAIT_S = 60
OS = replace(SMALL, durability=Durability.OS)


class Owner:
    """The thread that owns the logs: it does what is delivered when it comes to it."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self._arrived = threading.Semaphore(0)

    def deliver(self, call: Callable[[], None]) -> None:
        self.calls.append(call)
        self._arrived.release()

    def work_until(self, is_done: Callable[[], bool]) -> None:
        while not is_done():
            assert self._arrived.acquire(timeout=WAIT_S)
            self.calls.pop(0)()


def make(disk: MemoryDisk, count: int) -> list[Log]:
    return [Log.open(disk, f"logs/{number}/0", SMALL, 0) for number in range(count)]


@contextmanager
def running(owner: Owner, logs: Sequence[Log], defer: Defer | None = None) -> Iterator[CommitThreads]:
    threads = CommitThreads(owner.deliver, defer)
    for log in logs:
        threads.committer.add(log)
    try:
        yield threads
    finally:
        threads.stop()


def hold(log: Log, meet: Callable[[], object]) -> None:
    """Its sync calls `meet` first."""
    file = log.segments.active.file
    sync = file.sync

    def slow_sync() -> None:
        meet()
        sync()

    file.sync = slow_sync  # type: ignore[method-assign]


def test_eight_logs_are_synced_at_once() -> None:
    owner, logs = Owner(), make(MemoryDisk(), SYNCS_AT_ONCE)
    together = threading.Barrier(SYNCS_AT_ONCE)
    with running(owner, logs):
        for log in logs:
            hold(log, lambda: together.wait(WAIT_S))
            append(log, batch(b"x"))
        owner.work_until(lambda: all(log.synced_offset == 1 for log in logs))


def test_a_log_is_told_while_another_is_still_being_synced() -> None:
    owner, (slow, quick) = Owner(), make(MemoryDisk(), 2)
    may_end = threading.Event()
    with running(owner, (slow, quick)):
        hold(slow, lambda: may_end.wait(WAIT_S))
        append(slow, batch(b"x"))
        append(quick, batch(b"x"))
        owner.work_until(lambda: quick.synced_offset == 1)
        assert slow.synced_offset == 0
        may_end.set()
        owner.work_until(lambda: slow.synced_offset == 1)


def test_what_is_finished_together_is_told_in_one_delivery() -> None:
    owner, logs = Owner(), make(MemoryDisk(), 100)
    committer = Committer(owner.deliver, lambda: 0)
    for log in logs:
        committer.add(log)
        append(log, batch(b"x"))
    assert committer.run_once()
    (tell,) = owner.calls
    assert {log.synced_offset for log in logs} == {0}
    tell()
    assert {log.synced_offset for log in logs} == {1}


def test_threads_are_woken_once_for_all_that_is_written_in_one_turn() -> None:
    owner, logs = Owner(), make(MemoryDisk(), 3)
    soon: list[Callable[[], None]] = []
    with running(owner, logs, soon.append):
        for turn in (1, 2):
            for log in logs:
                append(log, batch(b"x"))
            assert len(soon) == turn
            soon[-1]()
            owner.work_until(lambda: all(log.synced_offset == log.end_offset for log in logs))
    assert [log.synced_offset for log in logs] == [2, 2, 2]


def test_a_thread_is_given_its_next_log_before_it_waits_again() -> None:
    """A sync is told of in the thread that made it, and whoever hears of it writes on: the thread is not back yet."""
    (log,) = make(MemoryDisk(), 1)
    threads = CommitThreads(lambda tell: tell())
    threads.committer.add(log)
    all_done = threading.Event()

    def write_on(log: Log) -> None:
        if log.end_offset < 5:
            append(log, batch(b"x"))
        if log.synced_offset == 5 or log.failure is not None:
            all_done.set()

    log.on_synced = write_on
    append(log, batch(b"x"))
    assert all_done.wait(WAIT_S)
    threads.stop()
    assert log.failure is None
    assert log.synced_offset == 5


def test_a_sync_that_fails_poisons_its_own_log_alone() -> None:
    owner, logs = Owner(), make(MemoryDisk(), 20)

    def fail() -> None:
        raise OSError(errno.EIO, "rotten")

    hold(logs[7], fail)
    with running(owner, logs):
        for log in logs:
            append(log, batch(b"x"))
        owner.work_until(lambda: all(log.synced_offset == 1 or log.failure is not None for log in logs))
        assert [number for number, log in enumerate(logs) if log.failure is not None] == [7]
        for number, log in enumerate(logs):
            if number != 7:
                append(log, batch(b"y"))
        owner.work_until(lambda: all(log.synced_offset == 2 for log in logs if log.failure is None))
    with pytest.raises(LogPoisoned):
        append(logs[7], batch(b"y"))


def test_stopping_waits_for_every_sync_that_is_under_way() -> None:
    owner, logs = Owner(), make(MemoryDisk(), 3)
    begun, may_end = threading.Semaphore(0), threading.Event()

    def meet() -> None:
        begun.release()
        may_end.wait(WAIT_S)

    threads = CommitThreads(owner.deliver)
    for log in logs:
        threads.committer.add(log)
        hold(log, meet)
        append(log, batch(b"x"))
    for _ in logs:
        assert begun.acquire(timeout=WAIT_S)
    stopping = threading.Thread(target=threads.stop)
    stopping.start()
    assert stopping.is_alive()
    may_end.set()
    stopping.join(WAIT_S)
    assert not stopping.is_alive()
    owner.work_until(lambda: all(log.synced_offset == 1 for log in logs))


def test_idle_tails_are_synced_when_they_are_due_and_in_the_order_in_which_they_were_written() -> None:
    now_ms = 0
    synced: list[int] = []
    committer = Committer(lambda call: call(), lambda: now_ms)
    logs = [Log.open(MemoryDisk(), "logs/a/0", OS, 0) for _ in range(3)]
    for number, log in enumerate(logs):
        committer.add(log)
        hold(log, lambda number=number: synced.append(number))  # type: ignore[misc]
    for at_ms, number in ((0, 2), (10, 0), (20, 1)):
        now_ms = at_ms
        append(logs[number], batch(b"x"))
    now_ms = OS.sync_interval_ms - 1
    assert not committer.run_once()
    now_ms = OS.sync_interval_ms + 10
    assert committer.run_once()
    assert synced == [2, 0]
    now_ms += 10
    assert committer.run_once()
    assert synced == [2, 0, 1]


def test_a_log_with_a_shorter_interval_does_not_wait_behind_one_with_a_longer() -> None:
    now_ms = 0
    committer = Committer(lambda call: call(), lambda: now_ms)
    options = (OS, replace(OS, sync_interval_ms=OS.sync_interval_ms // 4))
    long, short = (Log.open(MemoryDisk(), "logs/a/0", each, 0) for each in options)
    for log in (long, short):
        committer.add(log)
        append(log, batch(b"x"))
    now_ms = OS.sync_interval_ms // 4
    assert committer.run_once()
    assert (long.synced_offset, short.synced_offset) == (0, 1)


def test_the_threads_sync_idle_tails_of_every_interval() -> None:
    owner = Owner()
    options = [replace(OS, sync_interval_ms=each) for each in (30, 5, 1, 20, 5)]
    logs = [Log.open(MemoryDisk(), "logs/a/0", each, 0) for each in options]
    with running(owner, logs):
        for _ in range(3):
            for log in logs:
                append(log, batch(b"x"))
            owner.work_until(lambda: all(log.synced_offset == log.end_offset for log in logs))


def many_tails(disk: MemoryDisk, deliver: Callable[[Callable[[], None]], None]) -> tuple[Committer, list[Log]]:
    """A millisecond apart; the first of them is due."""
    now_ms = 0
    committer = Committer(deliver, lambda: now_ms)
    logs = [Log.open(disk, f"logs/{number}/0", OS, 0) for number in range(TOGETHER_MIN)]
    for now_ms, log in enumerate(logs):  # noqa: B007  the clock of the committer
        committer.add(log)
        append(log, batch(b"x"))
    now_ms = OS.sync_interval_ms
    return committer, logs


def test_many_idle_tails_are_synced_with_one_call_when_the_first_is_due() -> None:
    disk, owner, calls = MemoryDisk(), Owner(), list[int]()
    sync_together = disk.sync_together

    def counted(files: Sequence[File]) -> None:
        calls.append(len(files))
        sync_together(files)

    disk.sync_together = counted  # type: ignore[method-assign]
    committer, logs = many_tails(disk, owner.deliver)
    assert committer.run_once()
    assert calls == [TOGETHER_MIN]
    told = []
    while owner.calls:
        owner.calls.pop(0)()
        told.append(sum(log.synced_offset for log in logs))
    assert told == [TOLD_AT_ONCE, TOGETHER_MIN]  # others have their turn in between
    assert not committer.run_once()


def test_a_sync_of_many_that_fails_poisons_the_log_alone_whose_bytes_were_lost() -> None:
    disk = MemoryDisk()
    committer, logs = many_tails(disk, lambda call: call())
    fault = disk.faults.add("sync", errno.EIO, prefix="logs/7/", suffix=".log")
    assert committer.run_once()
    assert fault.hits == 1
    assert [number for number, log in enumerate(logs) if log.failure is not None] == [7]
    assert all(log.synced_offset == 1 for log in logs if log.failure is None)


def test_one_of_many_that_is_removed_is_not_synced() -> None:
    committer, logs = many_tails(MemoryDisk(), lambda call: call())
    committer._collect_due()
    committer.remove(logs[3])
    assert committer.run_once()
    assert [number for number, log in enumerate(logs) if log.synced_offset == 0] == [3]


def test_a_removed_log_is_not_synced_any_more() -> None:
    committer = Committer(lambda call: call(), lambda: 0)
    for options in (SMALL, OS):
        log = Log.open(MemoryDisk(), "logs/a/0", options, 0)
        committer.add(log)
        append(log, batch(b"x"))
        committer.remove(log)
    assert not committer.run_once()


def test_who_waits_for_a_sync_is_called_in_the_same_turn_when_all_logs_were_told() -> None:
    owner, logs = Owner(), make(MemoryDisk(), 3)
    committer = Committer(owner.deliver, lambda: 0)
    later: list[Callable[[], None]] = []
    defer = committer.after_telling(later.append)
    seen: list[list[int]] = []

    def look() -> None:
        seen.append([log.synced_offset for log in logs])

    def synced(log: Log) -> None:
        defer(look)

    for log in logs:
        committer.add(log)
        log.on_synced = synced
        append(log, batch(b"x"))
    committer.run_once()
    (tell,) = owner.calls
    tell()
    assert (seen, later) == ([[1, 1, 1]] * 3, [])
    defer(look)
    assert later == [look]


def test_a_fault_of_one_who_waited_keeps_nobody_else_from_being_called_and_poisons_no_log() -> None:
    owner, (log,) = Owner(), make(MemoryDisk(), 1)
    committer = Committer(owner.deliver, lambda: 0)
    called: list[str] = []
    defer = committer.after_telling(lambda call: None)

    def fail() -> None:
        raise ZeroDivisionError

    def synced(log: Log) -> None:
        defer(fail)
        defer(lambda: called.append("second"))

    committer.add(log)
    log.on_synced = synced
    append(log, batch(b"x"))
    committer.run_once()
    with pytest.raises(ZeroDivisionError):
        owner.calls[0]()
    assert (called, log.failure, log.synced_offset) == (["second"], None, 1)


def test_a_fault_of_one_log_that_comes_again_when_it_is_poisoned_keeps_nobody_else_from_being_told() -> None:
    owner, logs = Owner(), make(MemoryDisk(), 3)
    committer = Committer(owner.deliver, lambda: 0)
    called: list[Log] = []
    defer = committer.after_telling(lambda call: None)

    def synced(log: Log) -> None:
        if log is logs[1]:
            raise ZeroDivisionError
        defer(lambda: called.append(log))

    for log in logs:
        committer.add(log)
        log.on_synced = synced
        append(log, batch(b"x"))
    committer.run_once()
    with pytest.raises(ZeroDivisionError):
        owner.calls[0]()
    assert called == [logs[0], logs[2]]
    assert [log.failure is None for log in logs] == [True, False, True]
