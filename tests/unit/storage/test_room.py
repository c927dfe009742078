"""A full disk is told once when it begins and once when it is over, however many appends it refuses."""

import errno

import pytest
from structlog.testing import capture_logs

from goqueue.model.errors import DiskFull
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.log import Log
from goqueue.storage.options import MIB, LogOptions
from goqueue.testing.memory_disk import MemoryDisk
from tests.directories import open_directory
from tests.logs import append, batch

OPTIONS = LogOptions(segment_bytes=16 * MIB, disk_reserve_bytes=4 * MIB)
FULL, OVER = "disk full, appends are refused", "disk has room again, appends are taken"


def directory_on(disk: MemoryDisk) -> tuple[DataDirectory, Log]:
    directory = open_directory(disk, 0, OPTIONS)
    return directory, directory.open_log("orders", 0, OPTIONS, 0)


def fill(log: Log) -> int:
    """Appends that were refused after those that were taken."""
    refused = 0
    for _ in range(100):
        try:
            append(log, batch(b"x" * 200_000))
        except DiskFull:
            refused += 1
    return refused


def test_a_full_disk_is_told_once_per_change() -> None:
    disk = MemoryDisk()
    directory, log = directory_on(disk)
    disk.capacity_bytes = 12 * MIB
    with capture_logs() as told:
        refused = fill(log)
        assert refused > 10
        assert "no room to append" in directory.room.refusal
        assert directory.look_at_room(OPTIONS.disk_reserve_bytes)
        disk.capacity_bytes = 64 * MIB
        append(log, batch(b"x" * 4 * MIB))
        assert directory.room.refusal == ""
        disk.capacity_bytes = 12 * MIB
        assert fill(log) > 10
    assert [each["event"] for each in told] == [FULL, OVER, FULL]
    assert told[1]["refused_appends"] == refused


def test_room_that_returns_is_seen_though_nobody_appends() -> None:
    disk = MemoryDisk()
    directory, log = directory_on(disk)
    disk.capacity_bytes = 12 * MIB
    fill(log)
    disk.capacity_bytes = 64 * MIB
    with capture_logs() as told:
        for _ in range(3):
            assert directory.look_at_room(OPTIONS.disk_reserve_bytes) == ""
    assert [each["event"] for each in told] == [OVER]


def test_a_disk_that_fills_up_by_others_is_told_though_nobody_appends() -> None:
    disk = MemoryDisk()
    directory, _ = directory_on(disk)
    disk.capacity_bytes = 4 * MIB
    with capture_logs() as told:
        for _ in range(3):
            assert "must stay so" in directory.look_at_room(OPTIONS.disk_reserve_bytes)
    assert [each["event"] for each in told] == [FULL]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_a_quota_is_no_less_full_because_the_disk_has_room(error: int) -> None:
    disk = MemoryDisk()
    directory, log = directory_on(disk)
    disk.faults.add("allocate", error, forever=True)
    with capture_logs() as told:
        for _ in range(3):
            with pytest.raises(DiskFull):
                append(log, batch(b"x"))
            assert "no room to append" in directory.look_at_room(OPTIONS.disk_reserve_bytes)
        disk.faults.clear()
        append(log, batch(b"x"))
        assert directory.look_at_room(OPTIONS.disk_reserve_bytes) == ""
    assert [each["event"] for each in told] == [FULL, OVER]
