"""What both disks promise, so that a test on memory says something about a machine."""

import errno
import gc
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from goqueue.model.errors import DataDirectoryLocked
from goqueue.storage.disk import Disk, File
from goqueue.storage.real_disk import COPY_BYTES_MAX, IOV_MAX, RealDisk
from goqueue.testing import MemoryDisk

LARGE_BYTES = 2 * COPY_BYTES_MAX + 777


@pytest.fixture(params=["real", "memory"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return RealDisk(tmp_path) if request.param == "real" else MemoryDisk()


def new_file(disk: Disk, content: bytes = b"", path: str = "file") -> File:
    file = disk.open(path, create=True)
    file.write(0, [content])
    return file


def content_of(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    return file.read(0, file.size())


def errno_of(call: Callable[[], object]) -> int:
    with pytest.raises(OSError) as caught:
        call()
    assert caught.value.errno is not None
    return caught.value.errno


# -- bytes


def test_buffers_are_written_one_behind_the_other(disk: Disk) -> None:
    file = new_file(disk, b"..........")
    file.write(2, [b"ab", bytearray(b"cd"), b"", memoryview(b"xefx")[1:3]])
    assert file.read(0, 100) == b"..abcdef.."


def test_more_buffers_than_one_call_takes_are_all_written(disk: Disk) -> None:
    buffers = [bytes([number % 251]) * 3 for number in range(2 * IOV_MAX + 5)]
    file = new_file(disk)
    file.write(1, buffers)
    assert file.read(1, file.size()) == b"".join(buffers)


def test_a_gap_before_a_write_reads_as_zeros(disk: Disk) -> None:
    file = new_file(disk, b"ab")
    file.write(5, [b"c"])
    assert file.read(0, 100) == b"ab\0\0\0c"


@pytest.mark.parametrize("buffers", [[], [b""], [b"", b""]])
def test_writing_nothing_changes_nothing(disk: Disk, buffers: list[bytes]) -> None:
    file = new_file(disk, b"ab")
    file.write(100, buffers)
    assert file.read(0, 200) == b"ab"


def test_a_read_is_short_only_at_the_end(disk: Disk) -> None:
    file = new_file(disk, b"abcdef")
    assert file.read(1, 3) == b"bcd"
    assert file.read(4, 100) == b"ef"
    assert file.read(6, 1) == b""
    assert file.read(600, 1 << 50) == b""
    assert file.read(0, 1 << 50) == b"abcdef"


@pytest.mark.parametrize("position", [0, 1, 4095, 4096, 5000])
@pytest.mark.parametrize("length", [10, COPY_BYTES_MAX, COPY_BYTES_MAX + 1, LARGE_BYTES, 10 * LARGE_BYTES])
def test_a_view_shows_what_a_read_copies(disk: Disk, position: int, length: int) -> None:
    content = Random(1).randbytes(LARGE_BYTES)
    file = new_file(disk, content)
    view = file.view(position, length)
    assert view == content[position : position + length]
    assert view.readonly


@pytest.mark.parametrize("position", [LARGE_BYTES, LARGE_BYTES + 1, 10 * LARGE_BYTES])
@pytest.mark.parametrize("length", [0, 1, LARGE_BYTES])
def test_a_view_past_the_end_is_empty(disk: Disk, position: int, length: int) -> None:
    file = new_file(disk, bytes(LARGE_BYTES))
    assert len(file.view(position, length)) == 0


def test_a_view_outlives_its_file(disk: Disk) -> None:
    content = Random(2).randbytes(LARGE_BYTES)
    file = new_file(disk, content)
    view = file.view(3, LARGE_BYTES)
    file.close()
    disk.remove("file")
    assert view == content[3:]


@pytest.mark.parametrize(
    "call",
    [
        lambda file: file.read(-1, 1),
        lambda file: file.read(0, -1),
        lambda file: file.view(-1, 1),
        lambda file: file.view(-1, LARGE_BYTES),
        lambda file: file.view(0, -1),
        lambda file: file.write(-1, [b"a"]),
        lambda file: file.truncate(-1),
        lambda file: file.allocate(-1),
    ],
)
def test_negative_numbers_are_refused(disk: Disk, call: Callable[[File], object]) -> None:
    file = new_file(disk, bytes(LARGE_BYTES))
    assert errno_of(lambda: call(file)) == errno.EINVAL
    assert file.size() == LARGE_BYTES


def test_allocated_room_reads_as_zeros_and_never_shrinks(disk: Disk) -> None:
    file = new_file(disk, b"abc")
    file.allocate(0)
    file.allocate(2)
    assert file.size() == 3
    file.allocate(6)
    file.allocate(5)
    assert file.read(0, 100) == b"abc\0\0\0"


def test_truncate_cuts_and_extends_with_zeros(disk: Disk) -> None:
    file = new_file(disk, b"abcdef")
    file.truncate(2)
    assert file.read(0, 100) == b"ab"
    file.truncate(4)
    assert file.read(0, 100) == b"ab\0\0"


def test_truncate_is_refused_while_a_view_reaches_past_the_new_end(disk: Disk) -> None:
    content = Random(3).randbytes(LARGE_BYTES)
    file = new_file(disk, content)
    part = file.view(0, LARGE_BYTES)[100:200]
    assert errno_of(lambda: file.truncate(LARGE_BYTES - 1)) == errno.EBUSY
    file.truncate(LARGE_BYTES)
    assert part == content[100:200]
    del part
    gc.collect()
    file.truncate(1)
    assert file.size() == 1


def test_two_opens_of_one_file_see_each_other(disk: Disk) -> None:
    first = new_file(disk, b"ab")
    second = disk.open("file")
    second.write(1, [b"c"])
    assert first.read(0, 10) == b"ac"


def test_a_removed_file_stays_usable_while_it_is_open(disk: Disk) -> None:
    file = new_file(disk, b"ab")
    disk.remove("file")
    new_file(disk, b"other")
    file.write(2, [b"c"])
    file.sync()
    assert file.read(0, 10) == b"abc"
    assert content_of(disk, "file") == b"other"


@pytest.mark.parametrize(
    "call",
    [
        lambda file: file.size(),
        lambda file: file.write(0, [b"a"]),
        lambda file: file.read(0, 1),
        lambda file: file.view(0, 1),
        lambda file: file.view(0, LARGE_BYTES),
        lambda file: file.allocate(1),
        lambda file: file.truncate(0),
        lambda file: file.sync(),
    ],
)
def test_a_closed_file_refuses_everything_but_close(disk: Disk, call: Callable[[File], object]) -> None:
    file = new_file(disk, b"ab")
    file.close()
    file.close()
    assert errno_of(lambda: call(file)) == errno.EBADF


# -- names


def test_open_says_what_is_wrong_with_the_path(disk: Disk) -> None:
    disk.make_directory("d")
    new_file(disk)
    assert errno_of(lambda: disk.open("missing")) == errno.ENOENT
    assert errno_of(lambda: disk.open("missing/x", create=True)) == errno.ENOENT
    assert errno_of(lambda: disk.open("file", create=True)) == errno.EEXIST
    assert errno_of(lambda: disk.open("d", create=True)) == errno.EEXIST
    assert errno_of(lambda: disk.open("d")) == errno.EISDIR
    assert errno_of(lambda: disk.open("file/x")) == errno.ENOTDIR
    assert errno_of(lambda: disk.open("file/x", create=True)) == errno.ENOTDIR


def test_list_is_sorted_and_empty_for_what_is_missing(disk: Disk) -> None:
    for name in ("b", "a", "c"):
        new_file(disk, path=name)
    disk.make_directory("aa/x")
    assert disk.list("") == ["a", "aa", "b", "c"]
    assert disk.list("aa") == ["x"]
    assert disk.list("aa/x") == []
    assert disk.list("missing/x") == []
    assert errno_of(lambda: disk.list("a")) == errno.ENOTDIR


def test_exists_knows_files_and_directories(disk: Disk) -> None:
    disk.make_directory("d")
    new_file(disk, path="d/file")
    assert [disk.exists(path) for path in ("", "d", "d/file")] == [True] * 3
    assert [disk.exists(path) for path in ("x", "x/y", "d/x", "d/file/x")] == [False] * 4


def test_make_directory_makes_parents_and_may_be_repeated(disk: Disk) -> None:
    disk.make_directory("a/b/c")
    new_file(disk, b"kept", "a/b/c/file")
    disk.make_directory("a/b/c")
    disk.make_directory("a")
    disk.make_directory("")
    assert content_of(disk, "a/b/c/file") == b"kept"
    assert errno_of(lambda: disk.make_directory("a/b/c/file")) == errno.EEXIST
    assert errno_of(lambda: disk.make_directory("a/b/c/file/d")) == errno.EEXIST
    disk.make_directories("a/b", ["d", "c"])
    assert (disk.list("a/b"), content_of(disk, "a/b/c/file")) == (["c", "d"], b"kept")
    assert errno_of(lambda: disk.make_directories("a/b/c", ["file"])) == errno.EEXIST


def test_rename_moves_and_replaces(disk: Disk) -> None:
    disk.make_directory("d")
    file = new_file(disk, b"new")
    new_file(disk, b"old", "d/target")
    disk.rename("file", "d/target")
    file.write(3, [b"er"])
    assert disk.list("") == ["d"]
    assert content_of(disk, "d/target") == b"newer"


def test_rename_of_a_directory_takes_its_content_along(disk: Disk) -> None:
    disk.make_directory("a/b")
    disk.make_directory("empty")
    new_file(disk, b"x", "a/b/file")
    disk.rename("a", "empty")
    assert disk.list("") == ["empty"]
    assert content_of(disk, "empty/b/file") == b"x"


def test_rename_says_what_is_wrong(disk: Disk) -> None:
    disk.make_directory("d/full")
    disk.make_directory("other")
    new_file(disk)
    assert errno_of(lambda: disk.rename("missing", "x")) == errno.ENOENT
    assert errno_of(lambda: disk.rename("file", "missing/x")) == errno.ENOENT
    assert errno_of(lambda: disk.rename("file", "d")) == errno.EISDIR
    assert errno_of(lambda: disk.rename("d", "file")) == errno.ENOTDIR
    assert errno_of(lambda: disk.rename("other", "d")) == errno.ENOTEMPTY
    assert errno_of(lambda: disk.rename("d", "d/full/x")) == errno.EINVAL
    disk.rename("file", "file")
    assert disk.list("") == ["d", "file", "other"]


def test_remove_takes_files_and_empty_directories_only(disk: Disk) -> None:
    disk.make_directory("d")
    new_file(disk, path="d/file")
    assert errno_of(lambda: disk.remove("d")) == errno.ENOTEMPTY
    assert errno_of(lambda: disk.remove("d/missing")) == errno.ENOENT
    disk.remove("d/file")
    disk.remove("d")
    assert disk.list("") == []


def test_sync_directory_needs_a_directory(disk: Disk) -> None:
    new_file(disk)
    disk.sync_directory("")
    assert errno_of(lambda: disk.sync_directory("missing")) == errno.ENOENT
    assert errno_of(lambda: disk.sync_directory("file")) == errno.ENOTDIR


def test_free_bytes_are_told(disk: Disk) -> None:
    assert 0 < disk.free_bytes() <= disk.total_bytes()


@pytest.mark.parametrize("path", ["/etc/x", "..", "../x", "a/../../x", "a/..", ".", "./a", "a//b", "a/", "a\0b", "/"])
def test_a_path_that_could_leave_the_root_is_our_bug(disk: Disk, path: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: disk.open(path),
        lambda: disk.open(path, create=True),
        lambda: disk.exists(path),
        lambda: disk.list(path),
        lambda: disk.make_directory(path),
        lambda: disk.make_directories(path, ["x"]),
        lambda: disk.rename(path, "x"),
        lambda: disk.rename("x", path),
        lambda: disk.remove(path),
        lambda: disk.sync_directory(path),
        lambda: disk.lock(path),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="not a path inside"):
            call()


def test_the_root_itself_cannot_be_opened_renamed_removed_or_locked(disk: Disk) -> None:
    calls: list[Callable[[], object]] = [
        lambda: disk.open(""),
        lambda: disk.rename("", "x"),
        lambda: disk.remove(""),
        lambda: disk.lock(""),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="not a path inside"):
            call()


# -- the lock


def test_a_lock_is_held_until_it_is_released(disk: Disk) -> None:
    lock = disk.lock("lock")
    with pytest.raises(DataDirectoryLocked, match="lock is held"):
        disk.lock("lock")
    disk.lock("other").release()
    lock.release()
    again = disk.lock("lock")
    lock.release()
    with pytest.raises(DataDirectoryLocked):
        disk.lock("lock")
    again.release()
    assert disk.list("") == ["lock", "other"]


def test_a_forgotten_lock_stays_held(disk: Disk) -> None:
    disk.lock("lock")
    gc.collect()
    with pytest.raises(DataDirectoryLocked):
        disk.lock("lock")


# -- both at once


def outcome(call: Callable[[], object]) -> object:
    try:
        result = call()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return bytes(result) if isinstance(result, memoryview) else result


def random_call(random: Random, disk: Disk) -> object:
    """One operation, the same for the same dice. A file is closed again, for the next open to find what it did."""
    names = ["a", "b", "d", "d/a", "d/e", "d/e/a", "f"]
    path, other = random.choice(names), random.choice(names)
    position, length = random.randrange(20), random.randrange(20)
    data = random.randbytes(length)
    names_calls: list[Callable[[], object]] = [
        lambda: disk.open(path, create=True).close(),
        lambda: disk.exists(path),
        lambda: disk.list(path),
        lambda: disk.make_directory(path),
        lambda: disk.rename(path, other),
        lambda: disk.remove(path),
        lambda: disk.sync_directory(path),
    ]
    file_calls: list[Callable[[File], object]] = [
        lambda file: file.size(),
        lambda file: file.write(position, [data, b"x"]),
        lambda file: file.read(position, length),
        lambda file: file.view(position, length),
        lambda file: file.allocate(length),
        lambda file: file.truncate(length),
        lambda file: file.sync(),
        lambda file: file.read(0, 100),
    ]
    if random.random() < 0.5:
        return outcome(random.choice(names_calls))
    call = random.choice(file_calls)
    return outcome(lambda: call(disk.open(path)))


def test_both_disks_give_the_same_answers_to_random_operations(tmp_path: Path) -> None:
    real, memory = RealDisk(tmp_path), MemoryDisk()
    seen = set()
    for seed in range(3000):
        expected = random_call(Random(seed), real)
        assert random_call(Random(seed), memory) == expected, f"seed {seed}\n" + "\n".join(memory.trace())
        seen.add(str(expected))
    assert {"ENOENT", "EEXIST", "EISDIR", "ENOTDIR", "ENOTEMPTY", "EINVAL", "None", "True"} <= seen
