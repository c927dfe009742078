"""What only the operating system's disk has: descriptors, short writes, mapped memory, other processes."""

import errno
import gc
import mmap
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest

from goqueue.model.errors import DataDirectoryLocked
from goqueue.storage.real_disk import COPY_BYTES_MAX, IOV_MAX, RealDisk, RealFile

LARGE_BYTES = 3 * COPY_BYTES_MAX + 5
CONTENT = bytes(range(256)) * (LARGE_BYTES // 256 + 1)

Buffers = Sequence[bytes | bytearray | memoryview]


@pytest.fixture
def disk(tmp_path: Path) -> RealDisk:
    return RealDisk(tmp_path)


@pytest.fixture
def large_file(disk: RealDisk) -> RealFile:
    file = disk.open("large", create=True)
    file.write(0, [CONTENT[:LARGE_BYTES]])
    return file


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def fail(number: int) -> object:
    def failing(*_: object) -> object:
        raise OSError(number, os.strerror(number))

    return failing


# -- writing and reading


def test_short_writes_are_completed(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwritev
    calls = []

    def short(fd: int, buffers: Buffers, position: int) -> int:
        calls.append(len(buffers))
        return whole(fd, [b"".join(buffers)[:7]], position)

    monkeypatch.setattr(os, "pwritev", short)
    file = disk.open("file", create=True)
    numbers = memoryview(bytearray(b"01234567")).cast("I")
    buffers: Buffers = [b"", b"abc", bytearray(b"defghijklm"), b"", numbers, memoryview(b"nopqrstu")]
    file.write(3, buffers)
    assert file.read(0, 100) == b"\0\0\0abcdefghijklm01234567nopqrstu"
    assert len(calls) == 5


def test_many_buffers_are_written_in_few_calls(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwritev
    calls = []

    def counted(fd: int, buffers: Buffers, position: int) -> int:
        calls.append(len(buffers))
        return whole(fd, buffers, position)

    monkeypatch.setattr(os, "pwritev", counted)
    file = disk.open("file", create=True)
    file.write(0, [b"ab"] * IOV_MAX)
    file.write(0, [b"ab"] * (IOV_MAX + 1))
    assert calls == [IOV_MAX, IOV_MAX, 1]
    assert file.read(0, 10_000) == b"ab" * (IOV_MAX + 1)


def test_a_disk_that_takes_nothing_is_an_error_and_no_endless_loop(
    disk: RealDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open("file", create=True)
    monkeypatch.setattr(os, "pwritev", lambda *_: 0)
    with pytest.raises(OSError) as caught:
        file.write(0, [b"abc"])
    assert caught.value.errno == errno.EIO


def test_short_reads_are_completed(large_file: RealFile, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, position: whole(fd, min(length, 100_000), position))
    assert large_file.read(1, LARGE_BYTES) == CONTENT[1:LARGE_BYTES]


def test_a_failed_allocation_gives_back_what_it_got(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    file = disk.open("file", create=True)
    file.write(0, [b"abc"])

    def half(fd: int, position: int, length: int) -> None:
        os.ftruncate(fd, length // 2)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", half)
    with pytest.raises(OSError) as caught:
        file.allocate(1 << 20)
    assert caught.value.errno == errno.ENOSPC
    assert file.read(0, 100) == b"abc"


def test_allocated_room_is_really_reserved(disk: RealDisk) -> None:
    file = disk.open("file", create=True)
    file.allocate(1 << 20)
    assert os.fstat(file.fileno()).st_blocks * 512 >= 1 << 20


# -- views


def test_only_large_views_are_mapped(large_file: RealFile) -> None:
    assert isinstance(large_file.view(1, COPY_BYTES_MAX).obj, bytes)
    assert isinstance(large_file.view(1, COPY_BYTES_MAX + 1).obj, mmap.mmap)
    assert isinstance(large_file.view(LARGE_BYTES - 10, LARGE_BYTES).obj, bytes)


def test_a_dropped_view_gives_back_its_memory_and_descriptor(large_file: RealFile) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    views = [large_file.view(0, LARGE_BYTES) for _ in range(10)]
    assert len(list(Path("/proc/self/fd").iterdir())) > before
    views.clear()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1  # the one of /dev/null stays


def test_pages_are_read_before_they_are_mapped_so_a_bad_disk_is_an_error(
    large_file: RealFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sendfile", fail(errno.EIO))
    monkeypatch.setattr(os, "pread", fail(errno.EIO))
    with pytest.raises(OSError) as caught:
        large_file.view(0, LARGE_BYTES)
    assert caught.value.errno == errno.EIO


def test_every_page_of_a_mapping_was_read(large_file: RealFile, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.sendfile
    ranges = []

    def short(target: int, source: int, position: int, length: int) -> int:
        sent = whole(target, source, position, min(length, 10_000))
        ranges.append((position, position + sent))
        return sent

    monkeypatch.setattr(os, "sendfile", short)
    view = large_file.view(5000, COPY_BYTES_MAX + 1)
    assert view == CONTENT[5000 : 5000 + COPY_BYTES_MAX + 1]
    assert ranges[0][0] == 4096
    assert all(before[1] == after[0] for before, after in pairwise(ranges))
    assert ranges[-1][1] == 5000 + COPY_BYTES_MAX + 1


@pytest.mark.parametrize("result", [fail(errno.EINVAL), lambda *_: 0])
def test_what_cannot_be_mapped_safely_is_copied(
    large_file: RealFile, monkeypatch: pytest.MonkeyPatch, result: object
) -> None:
    monkeypatch.setattr(os, "sendfile", result)
    view = large_file.view(1, LARGE_BYTES)
    assert isinstance(view.obj, bytes)
    assert view == CONTENT[1:LARGE_BYTES]


# -- descriptors


def test_close_during_a_sync_leaves_the_descriptor_to_the_sync(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    file = disk.open("file", create=True)
    fd = file.fileno()
    began, go_on = Barrier(3), Event()
    synced = []

    def slow(number: int) -> None:
        began.wait(10)
        assert go_on.wait(10)
        synced.append(is_open(number))

    monkeypatch.setattr(os, "fdatasync", slow)
    threads = [Thread(target=file.sync), Thread(target=file.sync)]
    for thread in threads:
        thread.start()
    began.wait(10)
    file.close()
    assert is_open(fd)
    assert disk.open("other", create=True).fileno() != fd
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert synced == [True, True]
    assert not is_open(fd)


def test_a_failed_sync_is_told_and_leaves_the_file_open(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    file = disk.open("file", create=True)
    monkeypatch.setattr(os, "fdatasync", fail(errno.EIO))
    with pytest.raises(OSError):
        file.sync()
    fd = file.fileno()
    file.close()
    assert not is_open(fd)


def test_a_dropped_file_closes_its_descriptor(disk: RealDisk) -> None:
    file = disk.open("file", create=True)
    fd = file.fileno()
    assert is_open(fd)
    del file
    gc.collect()
    assert not is_open(fd)


def test_fileno_of_a_closed_file_is_refused(disk: RealDisk) -> None:
    file = disk.open("file", create=True)
    file.close()
    with pytest.raises(OSError) as caught:
        file.fileno()
    assert caught.value.errno == errno.EBADF


def test_files_are_not_for_child_processes_nor_for_strangers(disk: RealDisk) -> None:
    file = disk.open("file", create=True)
    assert not os.get_inheritable(file.fileno())
    assert os.fstat(file.fileno()).st_mode & 0o007 == 0


# -- directories


def test_every_directory_on_the_way_is_synced_even_if_it_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    real_fsync = os.fsync

    def recorded(fd: int) -> None:
        synced.append(Path(f"/proc/self/fd/{fd}").readlink())
        real_fsync(fd)

    monkeypatch.setattr(os, "fsync", recorded)
    root = tmp_path / "data"
    disk = RealDisk(root)
    disk.make_directory("a/b")
    assert synced == [tmp_path, root, root / "a"]
    synced.clear()
    disk.make_directory("a/b")
    assert synced == [root, root / "a"]
    synced.clear()
    disk.sync_directory("a/b")
    assert synced == [root / "a/b"]


def test_a_missing_root_is_made_on_demand(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path / "not/yet")
    assert not disk.exists("")
    assert disk.list("") == []
    disk.make_directory("")
    assert disk.exists("")


def test_exists_raises_where_it_cannot_tell(disk: RealDisk) -> None:
    with pytest.raises(OSError) as caught:
        disk.exists("x" * 300)
    assert caught.value.errno == errno.ENAMETOOLONG


# -- the lock: a dead broker's lock or pid must not keep the next one from starting

HOLDER = """
import sys
from pathlib import Path
from goqueue.storage.real_disk import RealDisk

lock = RealDisk(Path(sys.argv[1])).lock("lock")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_dies_with_its_owner_even_by_kill_9(disk: RealDisk, tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout
        assert owner.stdout.readline() == b"held\n"
        with pytest.raises(DataDirectoryLocked, match=rf"{tmp_path}/lock is held by pid {owner.pid}$"):
            disk.lock("lock")
        owner.kill()
        owner.wait()
        disk.lock("lock").release()


def test_a_pid_in_the_file_is_not_believed_even_if_that_process_lives(disk: RealDisk, tmp_path: Path) -> None:
    for pid in (os.getpid(), 1):
        (tmp_path / "lock").write_text(f"{pid}\n")
        disk.lock("lock").release()
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_two_disks_of_one_process_exclude_each_other(disk: RealDisk, tmp_path: Path) -> None:
    lock = disk.lock("lock")
    with pytest.raises(DataDirectoryLocked, match=f"pid {os.getpid()}$"):
        RealDisk(tmp_path).lock("lock")
    lock.release()
    RealDisk(tmp_path).lock("lock").release()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"no pid"])
def test_a_lock_file_without_a_pid_is_still_a_lock(disk: RealDisk, tmp_path: Path, content: bytes) -> None:
    lock = disk.lock("lock")
    (tmp_path / "lock").write_bytes(content)
    with pytest.raises(DataDirectoryLocked, match="another process"):
        disk.lock("lock")
    lock.release()


def test_a_full_disk_does_not_keep_the_broker_from_starting(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", fail(errno.ENOSPC))
    lock = disk.lock("lock")
    with pytest.raises(DataDirectoryLocked):
        disk.lock("lock")
    lock.release()


def test_a_file_system_without_locks_is_an_error_and_not_a_conflict(
    disk: RealDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fcntl.flock", fail(errno.ENOLCK))
    with pytest.raises(OSError) as caught:
        disk.lock("lock")
    assert caught.value.errno == errno.ENOLCK
