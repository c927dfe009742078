"""One process owns a data directory, and what it creates there is what it finds again."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from goqueue.model.errors import DataDirectoryLocked, InvalidName, LogPoisoned
from goqueue.storage.committer import Committer
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.disk import Disk
from goqueue.storage.log import Log
from goqueue.storage.real_disk import RealDisk
from goqueue.storage.snapshots import SnapshotFiles
from goqueue.testing.memory_disk import MemoryDisk
from tests.directories import open_directory
from tests.logs import SMALL, append, batch, stored


def opened(disk: Disk) -> DataDirectory:
    return DataDirectory.open(disk, committer=Committer(lambda call: call(), lambda: 0))


def reopened(disk: Disk) -> DataDirectory:
    """With every log that is there."""
    return open_directory(disk, 0, SMALL)


def make(directory: DataDirectory, topic: str, partition: int) -> Log:
    return directory.open_log(topic, partition, SMALL, now_ms=0)


def test_what_is_created_is_what_is_reloaded() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    names = [("orders", 0), ("orders", 1), ("Orders", 0), ("a.b-c_d", 12)]
    for name in names:
        append(make(directory, *name), batch(repr(name).encode()))
    directory.close()
    again = opened(disk)
    assert again.logs == {}
    assert set(again.names()) == set(names)
    for name in names:
        make(again, *name)
    assert {name: stored(log) for name, log in again.logs.items()} == {n: [(0, repr(n).encode())] for n in names}


def test_ledgers_of_an_older_node_get_the_names_of_today() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    for name in ("orders", "@groups", "@metadata"):
        append(make(directory, name, 0), batch(name.encode()))
    SnapshotFiles(disk, "logs/@metadata/0", "metadata").save(1, 0, [])
    directory.close()
    for name in ("groups", "metadata"):
        disk.rename(f"logs/@{name}", f"logs/__{name}")
    again = reopened(disk)
    assert {name: stored(log) for name, log in again.logs.items()} == {
        (name, 0): [(0, name.encode())] for name in ("orders", "@groups", "@metadata")
    }
    again.close()


def test_a_topic_called_like_an_old_ledger_keeps_its_name() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    for name in ("__metadata", "__groups"):
        append(make(directory, name, 0), batch(name.encode()))
    directory.close()
    assert set(reopened(disk).logs) == {("__metadata", 0), ("__groups", 0)}


@pytest.mark.parametrize(
    "topic", ["../escape", "a b/../c", "", ".", "..", "a/b", "x" * 250, "nul\0", "/etc", "@", "@@a", "a@"]
)
def test_a_bad_name_never_reaches_the_disk(topic: str) -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    before = disk.op_count
    with pytest.raises(InvalidName):
        make(directory, topic, 0)
    assert disk.op_count == before


def test_a_negative_partition_is_refused() -> None:
    with pytest.raises(InvalidName):
        make(opened(MemoryDisk()), "orders", -1)


def test_a_second_owner_is_refused_before_anything_is_looked_at() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    before = disk.op_count
    with pytest.raises(DataDirectoryLocked):
        opened(disk)
    assert disk.op_count == before
    directory.close()
    directory.close()
    opened(disk)


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    """The kernel keeps the lock, not a pid in a file, so a container whose pid is always 1 starts again."""
    program = (
        "import sys, pathlib\n"
        "from goqueue.storage.real_disk import RealDisk\n"
        "lock = RealDisk(pathlib.Path(sys.argv[1])).lock('lock')\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        with pytest.raises(DataDirectoryLocked):
            opened(RealDisk(tmp_path))
        owner.kill()
        owner.wait()
    opened(RealDisk(tmp_path)).close()


def test_deleting_a_log_removes_it_and_its_last_brother_the_topic() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    for partition in (0, 1):
        make(directory, "orders", partition)
    directory.retire("orders", [0])()
    assert disk.list("logs/orders") == ["1"]
    directory.retire("orders", [1])()
    assert disk.list("logs") == []
    assert disk.list("deleted") == []
    log = make(directory, "orders", 0)
    assert (log.start_offset, log.end_offset) == (0, 0)


def test_one_log_that_cannot_be_opened_costs_the_others_nothing() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    for topic in ("bad", "good"):
        append(make(directory, topic, 0), batch(b"x"))
    directory.close()
    disk.faults.add("open", errno.EIO, prefix="logs/bad/0", suffix=".log", forever=True)
    again = opened(disk)
    with pytest.raises(LogPoisoned, match="cannot be opened"):
        make(again, "bad", 0)
    make(again, "good", 0)
    assert list(again.logs) == [("good", 0)]


def test_what_is_not_one_of_our_logs_is_left_alone() -> None:
    disk = MemoryDisk()
    disk.make_directory("logs/backups/yesterday")
    disk.make_directory("logs/not a topic/0")
    disk.make_directory("logs/orders/007")
    assert list(opened(disk).names()) == []
    assert disk.list("logs") == ["backups", "not a topic", "orders"]


def test_maintenance_applies_retention_and_a_failing_log_takes_only_itself_out() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    for topic in ("bad", "good"):
        log = make(directory, topic, 0)
        append(log, batch(b"x", timestamp=1))
        log.sync()
    disk.faults.add("write", errno.EIO, prefix="logs/bad", forever=True)
    directory.maintain(now_ms=30 * 24 * 3600 * 1000)
    assert directory.logs["good", 0].start_offset == 1
    assert isinstance(directory.logs["bad", 0].failure, LogPoisoned)
    directory.close()


def test_opening_a_log_twice_gives_the_same_one() -> None:
    directory = opened(MemoryDisk())
    assert make(directory, "orders", 0) is make(directory, "orders", 0)


def test_a_log_that_was_never_opened_can_be_deleted() -> None:
    """After a crash between forgetting a topic and removing its logs; and one that cannot be opened can go too."""
    disk = MemoryDisk()
    directory = opened(disk)
    append(make(directory, "orders", 0), batch(b"x"))
    directory.close()
    again = opened(disk)
    again.retire("orders", [0])()
    assert disk.list("logs") == []
    again.retire("orders", [0])()
    assert make(again, "orders", 0).end_offset == 0


def test_only_logs_that_took_work_to_open_are_reported() -> None:
    disk = MemoryDisk()
    directory = opened(disk)
    for topic in ("a", "b"):
        log = make(directory, topic, 0)
        append(log, batch(b"x"))
        log.sync()
    directory.logs["a", 0].close()
    assert [report.log for report in reopened(disk.crashed()).report] == ["logs/b/0"]
