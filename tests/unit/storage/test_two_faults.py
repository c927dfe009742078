"""One fault after another: a kill and then a power cut, rot and then a crash, a failed sync and a hasty owner."""

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from goqueue.model.errors import BatchTooLarge, DataDirectoryLocked, DiskFull, LogPoisoned, ReadFailed
from goqueue.records.batch import Batch, check_batch, place
from goqueue.records.encode import Head, assemble
from goqueue.storage.committer import Committer
from goqueue.storage.compaction import LOCK_NAME, compact, install, plan
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.log import Log
from goqueue.storage.options import LogOptions
from goqueue.storage.real_disk import RealDisk
from goqueue.storage.retention import expire
from goqueue.testing import MemoryDisk, PowerLost
from tests.logs import DIRECTORY, EPOCH, SMALL, append, batch, numbered, open_log, stored
from tests.unit.storage.test_compaction import NOW_MS, OPTIONS, contents, keyed

LATE = replace(SMALL, segment_bytes=10**6, checkpoint_bytes=10**9)
"""No index is saved before the log is closed: nothing vouches for what it holds."""
FIRST = f"{DIRECTORY}/{0:020d}.log"


def power_cut(disk: MemoryDisk) -> MemoryDisk:
    return disk.crashed(lost=disk.unsynced())


def committer() -> tuple[Committer, list[Callable[[], None]]]:
    calls: list[Callable[[], None]] = []
    return Committer(calls.append, lambda: 0), calls


# A kill keeps the page cache; what it left unsynced must be synced before anything behind it is acknowledged.


def test_a_segment_that_a_killed_process_began_survives_a_later_power_cut() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(b"a"))
    log.sync()
    log.roll(now_ms=0)
    append(log, batch(b"b"))
    log = open_log(disk)  # killed and started again
    append(log, batch(b"c"))
    log.sync()
    assert stored(open_log(power_cut(disk))) == numbered([b"a", b"b", b"c"])


def test_a_kill_anywhere_in_a_truncation_and_then_a_power_cut_loses_nothing_acknowledged() -> None:
    for kill_after in range(100):
        disk = MemoryDisk()
        log = open_log(disk, LATE)
        for value in (b"a", b"b", b"c"):
            append(log, batch(value))
        log.sync()
        killed = disk.op_count + kill_after
        disk.crash_at(killed)
        try:
            log.truncate(1)
            return
        except PowerLost:
            disk.survive_as_kill()
        log = open_log(disk, LATE)
        append(log, batch(b"new"), epoch=2)
        log.sync()
        assert stored(open_log(power_cut(disk), LATE)) == stored(log), f"killed after {kill_after}"
    raise AssertionError("the truncation never came to its end")


def test_what_was_read_back_after_a_failed_sync_is_written_again_before_it_counts() -> None:
    """Linux marks pages clean whose sync failed: the next process reads them from the cache and syncs nothing."""
    disk = MemoryDisk()
    log = open_log(disk, LATE)
    append(log, batch(b"a" * 600))
    disk.faults.add("sync", errno.EIO, suffix=".log")
    with pytest.raises(LogPoisoned):
        log.sync()
    log = open_log(disk, LATE)
    append(log, batch(b"acknowledged" * 50))
    log.sync()
    assert stored(open_log(power_cut(disk), LATE)) == stored(log)


# A failed sync is final, whoever hears of it first.


@pytest.mark.parametrize(
    "hasty", [lambda log: log.sync(), lambda log: log.truncate(1), lambda log: log.advance_start(1)]
)
def test_nobody_syncs_again_while_the_news_of_a_failed_sync_is_on_its_way(hasty: Callable[[Log], None]) -> None:
    disk = MemoryDisk()
    log = open_log(disk, LATE)
    commits, _ = committer()
    commits.add(log)
    append(log, batch(b"a"), batch(b"b"))
    disk.faults.add("sync", errno.EIO, suffix=".log")
    commits.run_once()
    with pytest.raises(LogPoisoned):
        hasty(log)
    assert log.acknowledged_offset == 0


def test_one_logs_fault_does_not_keep_another_from_hearing_of_its_own() -> None:
    disk = MemoryDisk()
    commits, calls = committer()
    logs = [Log.open(disk, f"logs/{name}/0", SMALL, 0) for name in "ab"]
    for log in logs:
        commits.add(log)
        append(log, batch(b"x"))
    disk.faults.add("write", errno.EIO, prefix="logs/a/0", suffix=".index")
    disk.faults.add("sync", errno.EIO, prefix="logs/b/0", suffix=".log")
    commits.run_once()
    for call in calls:
        call()
    assert [type(log.failure) for log in logs] == [LogPoisoned, LogPoisoned]
    assert logs[1].acknowledged_offset == 0


# Rot and crashes.


def test_rot_that_looks_like_a_hole_costs_no_bytes() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LATE)
    append(log, batch(bytes(2000)), batch(b"b" * 100), batch(b"c" * 100))
    log.sync()
    image = disk.crashed()
    before = image.open(FIRST).read(0, 10**6)
    image.flip_bit(FIRST, 8 * 30)
    log = open_log(image, LATE)
    (name,) = [name for name in image.list(DIRECTORY) if "quarantine" in name]
    kept = image.open(f"{DIRECTORY}/{name}").read(0, 10**6)
    assert kept[100:] == before[100:]
    assert any(name in note for note in log.report.notes)


def test_the_offsets_of_a_rotten_last_batch_are_not_given_to_others() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LATE)
    append(log, batch(b"a" * 100), batch(b"b" * 2000))
    log.sync()
    image = disk.crashed()
    image.flip_bit(FIRST, 8 * 1500)
    log = open_log(image, LATE)
    assert [damage.first_offset for damage in log.report.damage] == [1]
    assert append(log, batch(b"next")) == 2
    assert stored(log) == [(0, b"a" * 100), (2, b"next")]
    log.close()
    assert stored(open_log(image, LATE)) == [(0, b"a" * 100), (2, b"next")]


@pytest.mark.parametrize("offset", [1000, 1 << 40])
def test_a_batch_inside_a_torn_message_is_not_taken_for_one_of_ours(offset: int) -> None:
    disk = MemoryDisk()
    options = replace(LATE, index_interval_bytes=64)
    log = open_log(disk, options)
    append(log, batch(b"a"))
    log.sync()
    inner = batch(b"forged")
    place(inner, offset, EPOCH)
    append(log, batch(b"x" * 400 + bytes(inner.data) + b"y" * 3000))
    write = disk.op_count - 1
    log = open_log(disk.crashed(torn=(write, disk.sector_cuts(write)[1])), options)
    assert stored(log) == [(0, b"a")]
    assert log.end_offset == 1


def test_a_message_full_of_fake_headers_does_not_make_the_search_endless() -> None:
    inner = batch(b"x" * 50_000)
    place(inner, 1, EPOCH)
    fake = bytes(inner.data[:21])
    disk = MemoryDisk()
    options = replace(LATE, segment_bytes=10**7, batch_bytes_max=10**7)
    log = open_log(disk, options)
    append(log, batch(fake * 20_000))
    append(log, batch(b"behind"))
    log.close()
    disk.flip_bit(FIRST, 8 * 8 + 1)  # the length, so that the search must go byte by byte
    log = open_log(disk, options)
    assert stored(log) == [(1, b"behind")]


def test_a_segment_behind_a_hole_is_put_aside_even_if_its_own_start_is_unreadable() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LATE)
    append(log, batch(bytes(2000)))
    log.roll(now_ms=0)
    append(log, *(batch(b"b" * 600) for _ in range(3)))
    log.sync()
    image = power_cut(disk)
    image.flip_bit(FIRST, 8 * 30)
    image.flip_bit(f"{DIRECTORY}/{1:020d}.log", 8 * 100)
    open_log(image, LATE)
    assert f"{1:020d}.log.quarantine-1" in image.list(DIRECTORY)


def test_a_truncation_behind_a_damaged_batch_leaves_none_of_its_bytes() -> None:
    disk = MemoryDisk()
    options = replace(SMALL, segment_bytes=10**6)
    log = open_log(disk, options)
    append(log, batch(b"a"), batch(b"b" * 900), batch(b"c"))
    log.close()
    disk.flip_bit(FIRST, 8 * 300)
    log = open_log(disk, options)
    log.truncate(2)
    append(log, batch(b"x" * 300), epoch=2)
    log.sync()
    append(log, batch(b"y" * 100), epoch=2)
    lost = disk.op_count - 1
    append(log, batch(b"z" * 600), epoch=2)
    assert stored(open_log(disk.crashed(lost=[lost]), options)) == [(0, b"a"), (1, b"x" * 300)]


def test_a_rotten_epoch_does_not_spoil_a_history_that_must_be_learnt() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, *(batch(value) for value in (b"a", b"b", b"c", b"d")))
    log.close()
    disk.remove(f"{DIRECTORY}/state")
    disk.flip_bit(FIRST, 8 * 13)
    assert stored(open_log(disk)) == numbered([b"a", b"b", b"c", b"d"])[1:]


# Compaction and the rest of the world.


def test_a_compaction_of_a_history_that_was_truncated_is_thrown_away() -> None:
    disk = MemoryDisk()
    options = replace(OPTIONS, segment_bytes=10**6)
    log = open_log(disk, options)
    append(log, keyed((b"1", b"old")), keyed((b"2", b"old")), keyed((b"3", b"old")))
    log.roll(NOW_MS)
    log.sync()
    work = plan(log, NOW_MS)
    assert work is not None
    manifest = compact(disk, work)
    assert manifest is not None
    log.truncate(1)
    append(log, keyed((b"2", b"new")), keyed((b"4", b"new")), keyed((b"5", b"new")), epoch=2)
    log.roll(NOW_MS)
    log.sync()
    expected = contents(log)
    assert not install(log, manifest)
    assert contents(log) == expected


def test_what_was_compacted_before_a_truncation_vouches_for_nothing_after_it() -> None:
    disk = MemoryDisk()
    options = replace(OPTIONS, checkpoint_bytes=10**9)
    log = open_log(disk, options)
    append(log, *(keyed((b"%d" % n, b"x" * 200)) for n in range(14)))
    log.roll(NOW_MS)
    log.sync()
    work = plan(log, NOW_MS)
    assert work is not None
    manifest = compact(disk, work)
    assert manifest is not None
    assert install(log, manifest)
    log.truncate(0)
    append(log, keyed((b"a", b"y" * 300)), epoch=2)
    log.sync()
    append(log, keyed((b"b", b"y" * 600)), epoch=2)
    lost = disk.op_count - 1
    append(log, keyed((b"c", b"y" * 300)), epoch=2)
    assert open_log(disk.crashed(lost=[lost]), options).end_offset == 1


def test_an_orphan_of_a_killed_broker_keeps_the_next_compaction_waiting() -> None:
    disk = MemoryDisk()
    log = open_log(disk, OPTIONS)
    append(log, *(keyed((b"a", b"%d" % n)) for n in range(20)))
    log.roll(NOW_MS)
    log.sync()
    work = plan(log, NOW_MS)
    assert work is not None
    orphan = disk.lock(f"{DIRECTORY}/{LOCK_NAME}")
    with pytest.raises(DataDirectoryLocked):
        compact(disk, work)
    orphan.release()
    assert compact(disk, work) is not None


def test_a_full_disk_only_puts_a_compaction_off() -> None:
    disk = MemoryDisk()
    log = open_log(disk, OPTIONS)
    append(log, *(keyed((b"%d" % (n % 3), b"x" * 200)) for n in range(14)))
    log.roll(NOW_MS)
    log.sync()
    work = plan(log, NOW_MS)
    assert work is not None
    manifest = compact(disk, work)
    assert manifest is not None
    disk.faults.add("write", errno.ENOSPC, suffix="compaction.tmp")
    assert not install(log, manifest)
    assert log.failure is None
    assert len(contents(log)) == 14


# Odd input and odd surroundings.


def wide(size: int) -> Batch:
    """A batch that spans as many offsets as its header can say."""
    return check_batch(memoryview(assemble(Head((1 << 31) - 1, 0, 0, 0), bytes(size))))


def test_offsets_that_no_index_can_hold_begin_another_segment_or_are_refused() -> None:
    log = open_log(MemoryDisk(), LogOptions(disk_reserve_bytes=0))
    append(log, wide(10))
    append(log, wide(10))
    append(log, batch(b"x" * 5000))
    assert len(log.segments) >= 2
    end_offset = log.end_offset
    with pytest.raises(BatchTooLarge, match="offsets"):
        append(log, batch(b"q" * 6000), wide(5000), wide(5000))
    assert log.end_offset == end_offset
    append(log, batch(b"after"))
    assert stored(log, end_offset) == [(end_offset, b"after")]


def test_stray_files_do_not_keep_a_node_from_starting(tmp_path: Path) -> None:
    commits, _ = committer()
    directory = DataDirectory.open(RealDisk(tmp_path), committer=commits)
    directory.open_log("orders", 0, SMALL, now_ms=0)
    directory.close()
    (tmp_path / "logs" / ".DS_Store").write_bytes(b"x")
    (tmp_path / "logs" / "orders" / "0" / ("²" * 20 + ".log")).write_bytes(b"x")
    again = DataDirectory.open(RealDisk(tmp_path), committer=commits)
    assert list(again.names()) == [("orders", 0)]
    again.open_log("orders", 0, SMALL, now_ms=0)
    again.close()


def test_a_slice_that_cannot_be_read_says_so_in_our_words() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(b"a"))
    piece = log.read(0, 100)
    assert piece is not None
    disk.faults.add("read", errno.EIO, suffix=".log")
    with pytest.raises(ReadFailed):
        piece.read()
    disk.faults.add("view", errno.EIO, suffix=".log")
    with pytest.raises(ReadFailed):
        piece.view()


def test_a_start_that_could_not_be_saved_has_not_moved() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(b"a"), batch(b"b"))
    log.sync()
    disk.faults.add("write", errno.ENOSPC, suffix="state.tmp")
    with pytest.raises(DiskFull):
        log.advance_start(1)
    assert stored(log) == numbered([b"a", b"b"])


def test_too_many_open_files_cost_only_an_index() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(b"a"))
    disk.faults.add("create", errno.EMFILE, suffix=".index")
    log.sync()
    assert log.failure is None


def test_a_log_that_cannot_be_deleted_is_still_there() -> None:
    disk = MemoryDisk()
    commits, _ = committer()
    directory = DataDirectory.open(disk, committer=commits)
    append(directory.open_log("orders", 0, SMALL, now_ms=0), batch(b"a"))
    disk.faults.add("rename", errno.EIO)
    with pytest.raises(LogPoisoned, match="cannot be deleted"):
        directory.retire("orders", [0])()
    directory.close()
    again = DataDirectory.open(disk, committer=commits)
    assert stored(again.open_log("orders", 0, SMALL, now_ms=0)) == [(0, b"a")]


def test_records_without_a_timestamp_are_as_old_as_their_segment() -> None:
    log = open_log(MemoryDisk(), replace(SMALL, retention_ms=10_000))
    untimed = check_batch(memoryview(assemble(Head(0, -1, -1, 1), bytes(batch(b"just now").data[61:]))))
    append(log, untimed, now_ms=NOW_MS)
    log.sync()
    assert expire(log, NOW_MS + 9_999) == 0
    assert expire(log, NOW_MS + 10_001) == 1
