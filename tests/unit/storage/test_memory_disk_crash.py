"""What a crash may and may not take. If this is too kind, nothing above it is tested."""

import errno
from random import Random

import pytest

from goqueue.testing import SECTOR_BYTES, MemoryDisk, PowerLost
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


def last_op(disk: MemoryDisk) -> int:
    return disk.op_count - 1


# -- contents


def test_a_lost_write_leaves_what_was_there_before(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"aaaaaa")
    file.write(2, [b"bb"])
    assert contents(disk.crashed()) == {"file": b"aabbaa"}
    assert contents(disk.crashed(lost=[last_op(disk)])) == {"file": b"aaaaaa"}


def test_a_lost_write_into_allocated_room_leaves_zeros(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"aa")
    file.allocate(6)
    file.sync()
    file.write(2, [b"bb"])
    assert contents(disk.crashed(lost=[last_op(disk)])) == {"file": b"aa\0\0\0\0"}


def test_only_what_survives_makes_the_file_long(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"aa")
    file.write(2, [b"bb"])
    file.write(4, [b"cc"])
    first, second = disk.unsynced()
    assert contents(disk.crashed(lost=[first])) == {"file": b"aa\0\0cc"}
    assert contents(disk.crashed(lost=[second])) == {"file": b"aabb"}
    assert contents(disk.crashed(lost=[first, second])) == {"file": b"aa"}


def test_a_lost_truncate_leaves_the_tail_and_a_lost_allocate_no_room(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"aaaa")
    file.truncate(1)
    file.allocate(3)
    cut, reserved = disk.unsynced()
    assert contents(disk.crashed()) == {"file": b"a\0\0"}
    assert contents(disk.crashed(lost=[cut])) == {"file": b"aaaa"}
    assert contents(disk.crashed(lost=[reserved])) == {"file": b"a"}


def test_what_was_cut_off_does_not_come_back_by_growing(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"aaaa")
    file.truncate(1)
    file.write(3, [b"b"])
    file.sync()
    assert contents(disk.crashed()) == {"file": b"a\0\0b"}


def test_a_synced_op_cannot_be_lost_or_torn(disk: MemoryDisk) -> None:
    file = disk.open("file", create=True)
    file.write(0, [b"aa"])
    write = last_op(disk)
    assert write in disk.unsynced()
    file.sync()
    assert write not in disk.unsynced()
    with pytest.raises(ValueError, match="durable: write file 0"):
        disk.crashed(lost=[write])
    with pytest.raises(ValueError, match="durable"):
        disk.crashed(torn=(write, 1))


def test_before_its_sync_a_synced_op_could_still_be_lost(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"aa")
    file.write(0, [b"b"])
    write = last_op(disk)
    file.sync()
    assert disk.unsynced(write) == []
    assert disk.unsynced(write + 1) == [write]
    assert disk.unsynced(write + 2) == []
    assert contents(disk.crashed(write + 1, lost=[write])) == {"file": b"aa"}


def test_a_sync_makes_its_own_file_durable_and_no_other(disk: MemoryDisk) -> None:
    first, second = durable_file(disk, b"a", "first"), durable_file(disk, b"a", "second")
    first.write(0, [b"b"])
    second.write(0, [b"b"])
    first.sync()
    assert contents(disk.crashed(lost=disk.unsynced())) == {"first": b"b", "second": b"a"}


def test_a_crash_can_come_behind_every_op(disk: MemoryDisk) -> None:
    file = disk.open("file", create=True)
    for number in range(3):
        file.write(number, [b"%d" % number])
    assert [contents(disk.crashed(upto)) for upto in range(5)] == [
        {},
        {"file": b""},
        {"file": b"0"},
        {"file": b"01"},
        {"file": b"012"},
    ]


# -- torn writes


@pytest.mark.parametrize(
    ("position", "length", "cuts"),
    [
        (0, 512, []),
        (0, 513, [512]),
        (0, 1500, [512, 1024]),
        (100, 413, [412]),
        (100, 412, []),
        (1000, 1100, [24, 536, 1048]),
    ],
)
def test_sector_cuts_are_counted_from_the_start_of_the_file(
    disk: MemoryDisk, position: int, length: int, cuts: list[int]
) -> None:
    file = disk.open("file", create=True)
    file.write(position, [bytes(length)])
    assert disk.sector_cuts(last_op(disk)) == cuts
    assert all((position + cut) % SECTOR_BYTES == 0 for cut in cuts)


def test_a_torn_write_keeps_its_first_bytes_only(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"a" * 600)
    file.write(100, [b"b" * 1000])
    write = last_op(disk)
    for kept in (0, 412, 924, 1000):
        expected = b"a" * 100 + b"b" * kept + b"a" * (500 - kept)
        assert contents(disk.crashed(torn=(write, kept))) == {"file": expected}


def test_a_torn_write_does_not_touch_what_was_written_later(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"a" * 4)
    file.write(0, [b"bbbb"])
    file.write(3, [b"c"])
    assert contents(disk.crashed(torn=(last_op(disk) - 1, 1))) == {"file": b"baac"}


def test_only_an_unsynced_write_of_the_past_can_be_torn(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"aa")
    file.write(0, [b"bb"])
    write = last_op(disk)
    file.truncate(1)
    for upto, lost, torn in [
        (None, [write], (write, 1)),
        (None, [], (write, 3)),
        (None, [], (write, -1)),
        (None, [], (write + 1, 0)),
        (write, [], (write, 1)),
        (None, [], (-1, 0)),
        (None, [-1], None),
        (None, [99], None),
        (99, [], None),
        (-1, [], None),
    ]:
        with pytest.raises(ValueError):
            disk.crashed(upto, lost=lost, torn=torn)
    with pytest.raises(ValueError, match="not a write: truncate"):
        disk.sector_cuts(write + 1)


# -- names


def test_a_lost_create_is_a_missing_file_even_if_its_content_was_synced(disk: MemoryDisk) -> None:
    file = disk.open("file", create=True)
    file.write(0, [b"aa"])
    file.sync()
    assert disk.unsynced() == [0]
    assert contents(disk.crashed(lost=[0])) == {}
    disk.sync_directory("")
    assert disk.unsynced() == []


def test_a_lost_rename_leaves_the_old_name_and_the_old_target(disk: MemoryDisk) -> None:
    durable_file(disk, b"new", "source")
    durable_file(disk, b"old", "target")
    disk.rename("source", "target")
    assert contents(disk.crashed()) == {"target": b"new"}
    assert contents(disk.crashed(lost=[last_op(disk)])) == {"source": b"new", "target": b"old"}


def test_a_file_renamed_before_its_sync_can_lose_its_content(disk: MemoryDisk) -> None:
    file = disk.open("temporary", create=True)
    file.write(0, [b"aa"])
    disk.rename("temporary", "file")
    disk.sync_directory("")
    assert disk.unsynced() == [1]
    assert contents(disk.crashed(lost=[1])) == {"file": b""}


def test_a_rename_survives_the_loss_of_the_creation_before_it(disk: MemoryDisk) -> None:
    disk.open("temporary", create=True).write(0, [b"aa"])
    disk.rename("temporary", "file")
    assert contents(disk.crashed(lost=[0])) == {"file": b"aa"}


def test_a_rename_across_directories_needs_both_synced(disk: MemoryDisk) -> None:
    disk.make_directory("a")
    disk.make_directory("b")
    durable_file(disk, b"x", "a/file")
    for order in (("a", "b"), ("b", "a")):
        source, target = ("a/file", "b/file") if disk.exists("a/file") else ("b/file", "a/file")
        disk.rename(source, target)
        rename = last_op(disk)
        disk.sync_directory(order[0])
        assert disk.unsynced() == [rename]
        assert contents(disk.crashed(lost=[rename])) == {source: b"x"}
        disk.sync_directory(order[1])
        assert disk.unsynced() == []


def test_a_lost_rename_of_a_directory_leaves_all_of_it_in_place(disk: MemoryDisk) -> None:
    disk.make_directory("old/deep")
    durable_file(disk, b"x", "old/deep/file")
    disk.rename("old", "new")
    rename = last_op(disk)
    disk.open("new/deep/file").write(0, [b"y"])
    assert contents(disk.crashed(lost=[rename])) == {"old/deep/file": b"y"}
    assert contents(disk.crashed()) == {"new/deep/file": b"y"}


def test_a_lost_remove_leaves_the_file(disk: MemoryDisk) -> None:
    durable_file(disk, b"aa")
    disk.remove("file")
    assert contents(disk.crashed(lost=[last_op(disk)])) == {"file": b"aa"}
    disk.sync_directory("")
    assert disk.unsynced() == []
    assert contents(disk.crashed()) == {}


def test_a_name_used_twice_can_be_either_file(disk: MemoryDisk) -> None:
    durable_file(disk, b"first")
    disk.remove("file")
    disk.open("file", create=True).write(0, [b"second"])
    removed, created, written = disk.unsynced()
    assert contents(disk.crashed(lost=[removed, created])) == {"file": b"first"}
    assert contents(disk.crashed(lost=[removed])) == {"file": b"second"}
    assert contents(disk.crashed(lost=[created])) == {}
    assert contents(disk.crashed(lost=[written])) == {"file": b""}


def test_made_directories_are_durable_at_once(disk: MemoryDisk) -> None:
    disk.make_directory("a/b")
    assert disk.unsynced() == []
    assert disk.crashed().list("a") == ["b"]
    assert disk.crashed(1).list("a") == []


def test_many_directories_are_durable_when_all_are_made(disk: MemoryDisk) -> None:
    disk.make_directories("a", ["0", "1"])
    assert disk.unsynced() == []
    assert disk.crashed().list("a") == ["0", "1"]
    assert disk.unsynced(3) == [1, 2]
    assert disk.crashed(3, lost=[1]).list("a") == ["1"]


# -- failed syncs


def test_after_a_failed_sync_a_good_one_does_not_bring_the_data_back(disk: MemoryDisk) -> None:
    file = durable_file(disk, b"aaa")
    file.write(0, [b"b"])
    doomed = last_op(disk)
    disk.faults.add("sync", errno.EIO)
    with pytest.raises(OSError):
        file.sync()
    file.write(1, [b"c"])
    file.sync()
    assert file.read(0, 3) == b"bca"
    assert disk.unsynced() == [doomed]
    assert contents(disk.crashed(lost=[doomed])) == {"file": b"aca"}


def test_after_a_failed_directory_sync_a_good_one_does_not_bring_the_names_back(disk: MemoryDisk) -> None:
    disk.open("first", create=True)
    disk.faults.add("sync_directory", errno.EIO)
    with pytest.raises(OSError):
        disk.sync_directory("")
    disk.open("second", create=True)
    disk.sync_directory("")
    assert contents(disk.crashed(lost=disk.unsynced())) == {"second": b""}


# -- images


def test_images_and_their_disk_do_not_know_each_other(disk: MemoryDisk) -> None:
    disk.make_directory("d")
    file = durable_file(disk, b"aaaa", "d/file")
    image = disk.crashed()
    twin = disk.crashed()
    image.open("d/file").write(0, [b"b"])
    image.open("d/new", create=True)
    image.make_directory("e")
    assert contents(twin) == contents(disk) == {"d/file": b"aaaa"}
    file.write(0, [b"c"])
    disk.remove("d/file")
    assert contents(twin) == {"d/file": b"aaaa"}
    assert contents(image) == {"d/file": b"baaa", "d/new": b""}
    assert twin.list("") == ["d"]


def test_an_image_begins_a_new_history_with_everything_durable(disk: MemoryDisk) -> None:
    file = disk.open("file", create=True)
    file.write(0, [b"aaaa"])
    image = disk.crashed()
    assert (image.op_count, image.unsynced(), image.trace()) == (0, [], [])
    image.open("file").write(1, [b"b"])
    assert contents(image.crashed()) == {"file": b"abaa"}
    assert contents(image.crashed(lost=[0])) == {"file": b"aaaa"}
    assert contents(image.crashed(0)) == {"file": b"aaaa"}


def test_new_files_of_an_image_do_not_mix_with_lost_ones(disk: MemoryDisk) -> None:
    disk.open("lost", create=True).write(0, [b"ghost"])
    image = disk.crashed(lost=[0])
    image.open("new", create=True)
    assert contents(image) == {"new": b""}


def test_an_image_has_no_locks_no_faults_and_power(disk: MemoryDisk) -> None:
    disk.lock("lock")
    file = durable_file(disk, b"aa")
    disk.faults.add("read", errno.EIO, forever=True)
    disk.crash_at(disk.op_count)
    with pytest.raises(PowerLost):
        file.sync()
    image = disk.crashed()
    image.lock("lock")
    assert contents(image) == {"file": b"aa", "lock": b""}
    image.open("file").sync()


def test_a_random_crash_loses_all_none_one_or_some_and_tears_the_last_write() -> None:
    disk = MemoryDisk()
    file = durable_file(disk, bytes(5 * SECTOR_BYTES))
    for number in range(4):
        file.write(number, [b"%d" % (number + 1)])
    file.write(4, [b"x" * 3 * SECTOR_BYTES])
    seen = set()
    for seed in range(400):
        content = contents(disk.crash(Random(seed)))["file"]
        assert contents(disk.crash(Random(seed)))["file"] == content
        seen.add((content[:4], content.count(b"x")))
    heads, tails = {head for head, _ in seen}, {tail for _, tail in seen}
    assert {b"1234", bytes(4), b"\0" + b"234"} <= heads
    assert len(heads) == 16
    cuts = [3 * SECTOR_BYTES, *disk.sector_cuts(last_op(disk))]
    assert tails == {0, *cuts}
    assert {(bytes(4), cut) for cut in cuts[1:]} <= seen, "a torn write must be seen with other ops lost, too"


def test_a_random_crash_of_a_synced_disk_loses_nothing(disk: MemoryDisk) -> None:
    durable_file(disk, b"aa")
    assert all(contents(disk.crash(Random(seed))) == {"file": b"aa"} for seed in range(20))
