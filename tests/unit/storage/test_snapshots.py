"""Snapshots: damage is seen, the one before is used, and a crash at any moment leaves one of those that were there."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from goqueue.storage.snapshots import Snapshot, SnapshotFiles
from goqueue.testing import MemoryDisk
from tests.sim.crashes import Trace, all_images

ENTRIES = [(b"key", b"value"), (b"", b""), (b"k" * 20, bytes(range(50)))]
NEWEST = "d/snapshot-groups-00000000000000000020-6.bin"


def files(disk: MemoryDisk, kind: str = "groups") -> SnapshotFiles:
    return SnapshotFiles(disk, "d", kind)


def two_saved() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("d")
    files(disk).save(10, 5, [(b"old", b"1")])
    files(disk).save(20, 6, ENTRIES)
    return disk


def size(disk: MemoryDisk, path: str) -> int:
    file = disk.open(path)
    try:
        return file.size()
    finally:
        file.close()


@given(st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=300)), max_size=20), st.integers(0, 2**62))
def test_what_is_saved_is_what_is_found(entries: list[tuple[bytes, bytes]], offset: int) -> None:
    disk = MemoryDisk()
    disk.make_directory("d")
    files(disk).save(offset, 5, entries)
    assert files(disk).latest(offset) == Snapshot(offset, entries)
    assert files(disk).latest(offset - 1) is None


def test_without_a_directory_there_is_no_snapshot() -> None:
    assert files(MemoryDisk()).latest(100) is None


def test_every_flipped_bit_is_seen_and_the_one_before_is_used() -> None:
    disk = two_saved()
    for bit in range(8 * size(disk, NEWEST)):
        disk.flip_bit(NEWEST, bit)
        with capture_logs() as told:
            assert files(disk).latest(20) == Snapshot(10, [(b"old", b"1")]), f"bit {bit}"
        assert [event["path"] for event in told] == [NEWEST]
        disk.flip_bit(NEWEST, bit)
    assert files(disk).latest(20) == Snapshot(20, ENTRIES)


def test_every_cut_is_seen_and_the_one_before_is_used() -> None:
    for cut in range(size(two_saved(), NEWEST)):
        disk = two_saved()
        file = disk.open(NEWEST)
        file.truncate(cut)
        file.close()
        with capture_logs():
            assert files(disk).latest(20) == Snapshot(10, [(b"old", b"1")]), f"cut to {cut}"


def test_one_that_cannot_be_read_is_passed_over() -> None:
    disk = two_saved()
    disk.faults.add("read", errno.EIO, prefix=NEWEST)
    with capture_logs():
        assert files(disk).latest(20) == Snapshot(10, [(b"old", b"1")])


def test_one_that_knows_more_than_the_ledger_is_not_used() -> None:
    """The ledger lost its tail, by truncation or by a disk that lied."""
    assert files(two_saved()).latest(19) == Snapshot(10, [(b"old", b"1")])
    assert files(two_saved()).latest(9) is None


def test_the_last_three_are_kept_and_other_kinds_are_left_alone() -> None:
    disk = MemoryDisk()
    disk.make_directory("d")
    files(disk, "groups-old").save(1, 1, [])
    for number in range(7, 12):
        files(disk).save(number, 1, [])
    assert disk.list("d") == [
        *[f"snapshot-groups-{number:020d}-1.bin" for number in (9, 10, 11)],
        f"snapshot-groups-old-{1:020d}-1.bin",
    ]
    assert files(disk, "groups-old").latest(5) == Snapshot(1, [])


def test_the_newest_of_one_offset_is_used() -> None:
    disk = MemoryDisk()
    disk.make_directory("d")
    for now_ms in (9, 10):
        files(disk).save(7, now_ms, [(b"at", b"%d" % now_ms)])
    assert files(disk).latest(7) == Snapshot(7, [(b"at", b"10")])


@pytest.mark.parametrize("kind", ["create", "write", "sync", "rename", "sync_directory"])
def test_what_a_failed_save_leaves_is_swept_by_the_next(kind: str) -> None:
    disk = two_saved()
    disk.faults.add(kind, errno.ENOSPC)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="No space"):
        files(disk).save(30, 7, ENTRIES)
    disk.faults.clear()
    files(disk).save(40, 8, [])
    assert [name for name in disk.list("d") if name.endswith(".tmp")] == []
    assert files(disk).latest(40) == Snapshot(40, [])


def test_a_crash_at_every_operation_of_a_save_leaves_a_sound_snapshot() -> None:
    trace = Trace()
    trace.disk.make_directory("d")
    trace.disk.sync_directory("")
    saved = [Snapshot(number, [(b"%d" % number, b"x" * 700)]) for number in range(1, 6)]
    since = trace.disk.op_count
    for snapshot in saved:
        files(trace.disk).save(snapshot.offset, 1, snapshot.entries)
        trace.promise(snapshot)
    for upto, label, image in all_images(trace.disk):
        if upto < since:
            continue
        with capture_logs() as told:
            found = files(image).latest(100)
        promised = trace.last_promise(upto)
        later = [None, *saved][saved.index(promised) + 1 if promised else 0 :]
        assert found in later[:2], label
        assert told == [], label
