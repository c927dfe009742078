"""Acknowledged means synced (or, by choice, in the page cache and synced soon); a failed sync ends all promises."""

import errno
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from goqueue.model.errors import DiskFull, LogPoisoned
from goqueue.records.batch import Batch
from goqueue.storage.committer import Committer, CommitThreads
from goqueue.storage.log import Log
from goqueue.storage.options import Durability, LogOptions
from goqueue.storage.pending_sync import PendingSync
from goqueue.storage.real_disk import RealDisk
from goqueue.testing.faults import Kind
from goqueue.testing.memory_disk import MemoryDisk
from tests.logs import DIRECTORY, SMALL, append, batch, numbered, open_log, stored

OS = replace(SMALL, durability=Durability.OS)


class Hand:
    """A committer whose clock and thread are the test."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.delivered: list[Callable[[], None]] = []
        self.committer = Committer(self.delivered.append, lambda: self.now_ms)

    def run(self) -> bool:
        ran = self.committer.run_once()
        while self.delivered:
            self.delivered.pop(0)()
        return ran


def append_and_sync(log: Log, *batches: Batch) -> None:
    append(log, *batches)
    log.sync()


def test_an_append_is_acknowledged_after_its_sync_and_not_before() -> None:
    hand, log = Hand(), open_log(MemoryDisk())
    hand.committer.add(log)
    append(log, batch(b"a", b"b"))
    assert log.acknowledged_offset == 0
    assert hand.run()
    assert log.acknowledged_offset == 2
    assert not hand.run()


def test_one_sync_acknowledges_all_that_was_written_before_it_began() -> None:
    disk = MemoryDisk()
    hand, log = Hand(), open_log(disk)
    hand.committer.add(log)
    for number in range(100):
        append(log, batch(b"%d" % number))
    before = disk.op_count
    hand.run()
    assert log.acknowledged_offset == 100
    assert len([line for line in disk.trace()[before:] if "sync logs" in line and ".log" in line]) == len(log.segments)


def test_what_is_written_during_a_sync_waits_for_the_next_one() -> None:
    log = open_log(MemoryDisk())
    append(log, batch(b"a"))
    pending = PendingSync(log)
    append(log, batch(b"b"))
    pending.run()
    log.finish_sync(pending)
    assert log.acknowledged_offset == 1


def test_writes_during_a_sync_are_synced_without_another_append() -> None:
    hand, log = Hand(), open_log(MemoryDisk())
    hand.committer.add(log)
    append(log, batch(b"a"))
    hand.committer.run_once()
    append(log, batch(b"b"))
    hand.delivered.pop(0)()
    assert log.acknowledged_offset == 1
    assert hand.run()
    assert log.acknowledged_offset == 2


def test_who_waits_for_one_log_need_not_wait_for_the_sync_of_another() -> None:
    disk = MemoryDisk()
    logs = [Log.open(disk, f"logs/{name}/0", SMALL, 0) for name in "ab"]
    told = []

    def deliver(call: Callable[[], None]) -> None:
        call()
        told.append([log.acknowledged_offset for log in logs])

    commits = Committer(deliver, lambda: 0)
    for log in logs:
        commits.add(log)
        append(log, batch(b"x"))
    assert commits.run_once()
    assert told == [[1, 0], [1, 1]]


def test_a_new_segment_is_durable_before_anything_in_it_is_acknowledged() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(b"a" * 1500))
    append(log, batch(b"b" * 1500))
    assert len(log.segments) == 2
    log.sync()
    assert stored(open_log(disk.crashed(lost=disk.unsynced()))) == numbered([b"a" * 1500, b"b" * 1500])


def test_durability_os_acknowledges_at_once_and_syncs_an_idle_tail_after_its_interval() -> None:
    disk = MemoryDisk()
    hand, log = Hand(), open_log(disk, OS)
    hand.committer.add(log)
    append(log, batch(b"a"))
    assert log.acknowledged_offset == 1
    hand.now_ms = 999
    assert not hand.run()
    assert log.synced_offset == 0
    hand.now_ms = 1000
    assert hand.run()
    assert log.synced_offset == 1
    assert stored(open_log(disk.crashed(lost=disk.unsynced()), OS)) == [(0, b"a")]


def test_durability_os_syncs_a_busy_log_once_an_interval() -> None:
    hand, log = Hand(), open_log(MemoryDisk(), OS)
    hand.committer.add(log)
    syncs = 0
    for hand.now_ms in range(0, 5001, 100):
        append(log, batch(b"x"))
        syncs += hand.run()
    assert 4 <= syncs <= 5
    assert log.synced_offset >= 40


def test_a_truncation_during_a_sync_does_not_count_as_synced_what_came_after() -> None:
    log = open_log(MemoryDisk())
    append(log, batch(b"a"), batch(b"b"), batch(b"c"))
    pending = PendingSync(log)
    pending.run()
    log.truncate(1)
    append(log, batch(b"other"), epoch=2)
    log.finish_sync(pending)
    assert log.acknowledged_offset == 1


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_a_failed_write_or_sync_poisons_the_log_for_good(kind: Kind, capfd: pytest.CaptureFixture[str]) -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(b"kept"))
    log.sync()
    told: list[Log] = []
    log.on_synced = told.append
    fault = disk.faults.add(kind, errno.EIO, suffix=".log")
    with pytest.raises(LogPoisoned, match="out of service"):
        append_and_sync(log, batch(b"lost"))
    assert fault.hits == 1
    assert told, "whoever waits for an acknowledgement must learn that none will come"
    before = disk.op_count
    for call in (lambda: append(log, batch(b"x")), lambda: log.read(0, 100), log.sync, lambda: log.truncate(0)):
        with pytest.raises(LogPoisoned):
            call()
    log.close()
    assert disk.op_count == before, "a poisoned log is never written or synced again in hope"
    assert "log poisoned" in "".join(capfd.readouterr())
    again = open_log(disk.crashed(lost=disk.unsynced()))
    assert stored(again)[:1] == [(0, b"kept")]


def test_a_sync_that_fails_in_the_commit_thread_acknowledges_nothing() -> None:
    disk = MemoryDisk()
    hand, log, other = Hand(), open_log(disk), Log.open(disk, "logs/other/0", SMALL, 0)
    for one in (log, other):
        hand.committer.add(one)
        append(one, batch(b"a"))
    disk.faults.add("sync", errno.EIO, prefix=DIRECTORY)
    hand.run()
    assert log.acknowledged_offset == 0
    assert isinstance(log.failure, LogPoisoned)
    assert other.acknowledged_offset == 1, "one bad log costs nobody else anything"


def test_a_full_disk_refuses_appends_before_the_log_is_damaged_and_goes_on_when_room_returns() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    disk.capacity_bytes = 6000
    appended = []
    for number in range(1000):
        try:
            append_and_sync(log, batch(b"%03d" % number * 30))
        except DiskFull as error:
            assert "no room" in str(error)
            break
        appended.append(b"%03d" % number * 30)
    assert 0 < len(appended) < 1000
    assert log.failure is None
    assert stored(log) == numbered(appended)
    assert stored(open_log(disk.crashed())) == numbered(appended)
    disk.capacity_bytes = 100_000
    append(log, batch(b"again"))
    log.close()
    assert stored(open_log(disk)) == numbered([*appended, b"again"])


def test_some_room_is_held_back_for_what_must_still_be_written() -> None:
    disk = MemoryDisk()
    disk.capacity_bytes = 100_000
    log = open_log(disk, replace(SMALL, disk_reserve_bytes=95_000))
    append_and_sync(log, batch(b"x" * 500))
    with pytest.raises(DiskFull, match="held in reserve"):
        append_and_sync(log, *(batch(b"x" * 500) for _ in range(10)))
    assert disk.free_bytes() >= 95_000
    log.close()


@pytest.mark.parametrize("capacity", range(0, 3000, 50))
def test_a_disk_that_is_full_at_any_moment_damages_nothing(capacity: int) -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(b"first"))
    log.sync()
    disk.capacity_bytes = 2200 + capacity
    kept = [b"first"]
    for number in range(20):
        try:
            append(log, batch(b"%d" % number * 100), epoch=number + 1)
            log.sync()
            kept.append(b"%d" % number * 100)
        except DiskFull:
            continue
    assert log.failure is None
    log.close()
    disk.capacity_bytes = None
    assert stored(open_log(disk)) == numbered(kept)


def test_the_commit_thread_syncs_for_many_producers_and_loses_nothing(tmp_path: Path) -> None:
    """Exact sets, and readers and writers both get on."""
    queue: list[Callable[[], None]] = []
    arrived = threading.Semaphore(0)

    def deliver(call: Callable[[], None]) -> None:
        queue.append(call)
        arrived.release()

    thread = CommitThreads(deliver)
    log = Log.open(RealDisk(tmp_path), DIRECTORY, LogOptions(segment_bytes=20_000, disk_reserve_bytes=0), 0)
    thread.committer.add(log)
    acknowledged: dict[int, bytes] = {}
    waiting: dict[int, bytes] = {}
    for number in range(2000):
        value = b"%d" % number
        waiting[append(log, batch(value))] = value
        if number % 10 == 0:
            assert arrived.acquire(timeout=60)
            queue.pop(0)()
            for offset in [offset for offset in waiting if offset < log.acknowledged_offset]:
                acknowledged[offset] = waiting.pop(offset)
            assert log.read(number // 2, 1000) is not None
    while log.acknowledged_offset < 2000:
        assert arrived.acquire(timeout=60)
        queue.pop(0)()
    acknowledged |= waiting
    thread.stop()
    thread.stop()
    assert sorted(acknowledged.items()) == stored(log) == numbered([b"%d" % number for number in range(2000)])
    log.close()


def test_a_stopped_commit_thread_is_gone() -> None:
    """After stop there is no task."""
    before = threading.active_count()
    thread = CommitThreads(lambda call: call())
    thread.stop()
    assert threading.active_count() == before
