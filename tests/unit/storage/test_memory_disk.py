"""What can be made to go wrong with a disk in memory besides the losses of a crash."""

import errno
from collections.abc import Callable
from itertools import pairwise
from threading import Thread

import pytest

from goqueue.testing import MemoryDisk, PowerLost
from goqueue.testing.faults import Kind
from goqueue.testing.memory_disk import MemoryFile


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


def durable_file(disk: MemoryDisk, content: bytes, path: str = "file") -> MemoryFile:
    file = disk.open(path, create=True)
    file.write(0, [content])
    file.sync()
    disk.sync_directory(path.rpartition("/")[0])
    return file


def contents(disk: MemoryDisk, directory: str = "") -> dict[str, bytes]:
    """All files below a directory by path."""
    found: dict[str, bytes] = {}
    for name in disk.list(directory):
        path = f"{directory}/{name}" if directory else name
        try:
            found[path] = disk.open(path).read(0, 1 << 30)
        except IsADirectoryError:
            found |= contents(disk, path)
    return found


# -- power


def test_power_is_lost_at_the_chosen_op_and_stays_lost(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"aa")
    disk.crash_at(disk.op_count + 1)
    file.write(0, [b"b"])
    assert file.read(0, 2) == b"ba"
    with pytest.raises(PowerLost) as caught:
        file.write(1, [b"c"])
    assert not isinstance(caught.value, OSError)
    assert disk.power_lost
    calls: list[Callable[[], object]] = [
        file.size,
        file.sync,
        lambda: file.read(0, 1),
        lambda: disk.list(""),
        lambda: disk.exists("file"),
        lambda: disk.make_directory(""),
        lambda: disk.sync_directory("missing"),
        lambda: disk.lock("file"),
        disk.free_bytes,
    ]
    for call in calls:
        with pytest.raises(PowerLost):
            call()
    file.close()
    assert contents(disk.crashed()) == {"file": b"ba"}
    assert contents(disk.crashed(lost=disk.unsynced())) == {"file": b"aa"}


def test_power_can_be_lost_at_every_kind_of_op() -> None:
    def run(disk: MemoryDisk) -> None:
        disk.make_directory("d")
        file = disk.open("d/a", create=True)
        file.allocate(4)
        file.write(0, [b"x"])
        file.truncate(2)
        file.sync()
        disk.rename("d/a", "d/b")
        disk.sync_directory("d")
        disk.remove("d/b")

    whole = MemoryDisk()
    run(whole)
    assert whole.op_count == 9
    for number in range(whole.op_count):
        disk = MemoryDisk()
        disk.crash_at(number)
        with pytest.raises(PowerLost):
            run(disk)
        assert disk.op_count == number
        assert contents(disk.crashed()) == contents(whole.crashed(number))


# -- faults


def test_a_fault_hits_the_nth_operation_of_its_kind_on_its_paths_once(disk: MemoryDisk) -> None:
    disk.make_directory("logs")
    log, other = durable_file(disk, b"aa", "logs/0.log"), durable_file(disk, b"aa", "logs/0.index")
    fault = disk.faults.add("read", errno.EIO, prefix="logs/", suffix=".log", nth=2)
    log.size()
    other.read(0, 1)
    log.read(0, 1)
    other.read(0, 1)
    with pytest.raises(OSError) as caught:
        log.read(0, 1)
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, "logs/0.log")
    assert log.read(0, 1) == b"a"
    assert (fault.seen, fault.hits) == (3, 1)


def test_a_fault_can_stay_until_it_is_cleared(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"aa")
    fault = disk.faults.add("sync", errno.EIO, nth=2, forever=True)
    file.sync()
    for _ in range(3):
        with pytest.raises(OSError):
            file.sync()
    assert fault.hits == 3
    disk.faults.clear()
    file.sync()


def test_every_kind_of_operation_can_fail_and_then_has_no_effect(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"aa")
    before = contents(disk)
    calls: dict[Kind, Callable[[], object]] = {
        "open": lambda: disk.open("file"),
        "create": lambda: disk.open("new", create=True),
        "stat": lambda: disk.exists("file"),
        "list": lambda: disk.list(""),
        "read": lambda: file.read(0, 1),
        "view": lambda: file.view(0, 1),
        "write": lambda: file.write(0, [b"b"]),
        "allocate": lambda: file.allocate(10),
        "truncate": lambda: file.truncate(0),
        "sync": file.sync,
        "rename": lambda: disk.rename("file", "new"),
        "remove": lambda: disk.remove("file"),
        "make_directory": lambda: disk.make_directory("d"),
        "sync_directory": lambda: disk.sync_directory(""),
    }
    for kind, call in calls.items():
        disk.faults.add(kind, errno.ENOMEM)
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == errno.ENOMEM, kind
        assert contents(disk) == before, kind


def test_a_fault_on_a_rename_looks_at_both_names(disk: MemoryDisk) -> None:
    durable_file(disk, b"aa")
    disk.faults.add("rename", errno.EIO, prefix="target")
    with pytest.raises(OSError):
        disk.rename("file", "target")
    disk.rename("file", "target")


def test_a_failing_write_can_leave_its_first_bytes(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"aaaa")
    disk.faults.add("write", errno.EIO, kept_bytes=2)
    with pytest.raises(OSError):
        file.write(1, [b"b", b"bb"])
    assert file.read(0, 10) == b"abba"
    assert disk.trace()[-1].endswith("* write file 1+2 of 3, then failed")
    assert contents(disk.crashed(lost=disk.unsynced())) == {"file": b"aaaa"}


def test_a_flipped_bit_is_silent_and_survives_a_crash(disk: MemoryDisk) -> None:
    durable_file(disk, b"aaaa")
    image = disk.crashed()
    image.flip_bit("file", 9)
    assert image.unsynced() == []
    assert contents(image) == contents(image.crashed()) == {"file": b"acaa"}
    assert contents(disk) == {"file": b"aaaa"}
    with pytest.raises(ValueError, match="no bit 32"):
        image.flip_bit("file", 32)


# -- room


def test_a_full_disk_refuses_growth_and_goes_on_when_room_returns(disk: MemoryDisk) -> None:
    disk.capacity_bytes = 10
    file = durable_file(disk, b"a" * 6)
    other = durable_file(disk, b"b" * 3, "other")
    assert disk.free_bytes() == 1
    with pytest.raises(OSError) as caught:
        file.allocate(8)
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError) as caught:
        file.truncate(8)
    assert caught.value.errno == errno.ENOSPC
    assert file.size() == 6
    file.write(0, [b"c" * 7])
    assert disk.free_bytes() == 0
    other.truncate(1)
    file.allocate(9)
    assert disk.free_bytes() == 0
    disk.remove("other")
    assert disk.free_bytes() == 1
    disk.capacity_bytes = 12
    assert disk.free_bytes() == 3
    disk.capacity_bytes = 5
    assert disk.free_bytes() == 0
    file.write(0, [b"d" * 9])
    assert file.read(0, 100) == b"d" * 9


def test_a_write_that_meets_a_full_disk_leaves_what_fits(disk: MemoryDisk) -> None:
    disk.capacity_bytes = 5
    file = durable_file(disk, b"aaa")
    with pytest.raises(OSError) as caught:
        file.write(2, [b"bbbbbb"])
    assert caught.value.errno == errno.ENOSPC
    assert file.read(0, 100) == b"aabbb"
    with pytest.raises(OSError):
        file.write(9, [b"c" * 8])
    assert file.size() == 5


def test_allocated_room_cannot_be_taken_by_others(disk: MemoryDisk) -> None:
    disk.capacity_bytes = 10
    file = durable_file(disk, b"")
    file.allocate(10)
    with pytest.raises(OSError):
        durable_file(disk, b"a", "other")
    file.write(0, [b"a" * 10])
    assert file.size() == 10


def test_a_crash_does_not_change_the_capacity(disk: MemoryDisk) -> None:
    disk.capacity_bytes = 10
    durable_file(disk, b"aaa")
    assert disk.crashed().free_bytes() == 7


# -- the rest


def test_the_trace_tells_the_story_and_marks_what_could_be_lost(disk: MemoryDisk) -> None:
    disk.make_directory("a/b")
    file = disk.open("a/b/0.log", create=True)
    file.allocate(200)
    file.write(128, [b"x" * 60, b"y"])
    file.sync()
    file.truncate(189)
    disk.rename("a/b/0.log", "a/0.log")
    disk.sync_directory("a")
    disk.remove("a/0.log")
    assert disk.trace() == [
        "   0  make_directory a",
        "   1  make_directory a/b",
        "   2* create a/b/0.log",
        "   3  allocate a/b/0.log 200",
        "   4  write a/b/0.log 128+61",
        "   5  sync a/b/0.log",
        "   6* truncate a/b/0.log 189",
        "   7* rename a/b/0.log a/0.log",
        "   8  sync_directory a",
        "   9* remove a/0.log",
    ]


def test_there_is_no_descriptor(disk: MemoryDisk) -> None:
    with pytest.raises(OSError) as caught:
        disk.open("file", create=True).fileno()
    assert caught.value.errno == errno.ENOTSUP


def test_a_file_can_be_synced_while_its_owner_writes(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"")
    stop = False

    def sync() -> None:
        while not stop:
            file.sync()

    thread = Thread(target=sync)
    thread.start()
    for number in range(500):
        file.write(number, [b"x"])
    stop = True
    thread.join()
    assert contents(disk.crashed()) == {"file": b"x" * 500}
    sizes = [len(contents(disk.crashed(upto, lost=disk.unsynced(upto)))["file"]) for upto in range(4, 200)]
    assert all(before <= after for before, after in pairwise(sizes))
