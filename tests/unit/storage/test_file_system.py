"""A file system that is synced with one call, where that tells of what was lost."""

import ctypes
import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from goqueue.storage.real_disk import RealDisk


@pytest.fixture
def disk(tmp_path: Path) -> RealDisk:
    return RealDisk(tmp_path)


@pytest.fixture
def _of_a_known_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run on any."""
    monkeypatch.setattr("goqueue.storage.file_system.kind_of", lambda directory: "ext4")


@pytest.mark.usefixtures("_of_a_known_kind")
def test_a_file_system_is_synced_as_a_whole_but_for_the_first_time(disk: RealDisk) -> None:
    """What was lost before the first time would not be told."""
    file = disk.open("large", create=True)
    file.write(0, [b"content"])
    assert disk.syncs_together
    with pytest.raises(OSError, match="lost before"):
        disk.sync_together([file])
    disk.sync_together([file])
    assert file.read(0, 9) == b"content"


@pytest.mark.usefixtures("_of_a_known_kind")
def test_a_file_system_that_has_told_of_a_loss_is_not_synced_as_a_whole_again(
    disk: RealDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells of each loss once: perhaps not to whoever syncs the file that has lost something."""
    is_running, shall_fail = Event(), Event()

    def sync(fd: int) -> int:
        if is_running.is_set():
            return 0
        is_running.set()
        assert shall_fail.wait(30)
        ctypes.set_errno(errno.EIO)
        return -1

    monkeypatch.setattr("goqueue.storage.file_system._syncfs", lambda: sync)
    with pytest.raises(OSError, match="lost before"):
        disk.sync_together([])
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(disk.sync_together, [])
        assert is_running.wait(30)
        second = threads.submit(disk.sync_together, [])
        shall_fail.set()
        errors = [first.exception(), second.exception()]
    assert [error.errno for error in errors if isinstance(error, OSError)] == [errno.EIO, errno.ENOTSUP]
    assert not disk.syncs_together


def test_a_file_system_that_may_keep_losses_to_itself_is_not_synced_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    line = "22 1 {}:{} / /data rw,relatime shared:1 - {} /dev/vda rw\n"
    monkeypatch.setattr("goqueue.storage.file_system.MOUNTS", mounts)
    for kind, is_taken in (("overlay", False), ("ext4", True), ("nfs4", False), ("xfs", True)):
        mounts.write_text(line.format(os.major(number), os.minor(number), kind))
        assert RealDisk(tmp_path).syncs_together == is_taken, kind
    mounts.write_text(line.format(0, 0, "ext4"))
    assert not RealDisk(tmp_path).syncs_together
    mounts.unlink()
    assert not RealDisk(tmp_path).syncs_together


@pytest.mark.usefixtures("_of_a_known_kind")
def test_a_disk_that_is_gone_leaves_no_descriptor(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    with pytest.raises(OSError, match="lost before"):
        disk.sync_together([])
    assert disk._file_system is not None
    fd = disk._file_system._fd
    os.fstat(fd)
    del disk
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
