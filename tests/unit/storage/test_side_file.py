import pytest

from goqueue.model.errors import DamagedFile
from goqueue.records.log_files import Kind
from goqueue.storage import side_file
from goqueue.testing.memory_disk import MemoryDisk


def saved(body: bytes) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("d")
    side_file.save_durably(disk, "d/state", Kind.LOG_STATE, body)
    return disk


def test_our_files_begin_with_the_letters_gq() -> None:
    assert saved(b"body").open("d/state").read(0, 2) == b"\x47\x51"


def test_every_flipped_bit_is_seen() -> None:
    body = bytes(range(40))
    size = saved(body).open("d/state").size()
    for bit in range(size * 8):
        disk = saved(body)
        disk.flip_bit("d/state", bit)
        with pytest.raises(DamagedFile):
            side_file.load(disk, "d/state", Kind.LOG_STATE)


def test_every_cut_is_seen() -> None:
    size = saved(b"body").open("d/state").size()
    for length in range(size):
        disk = saved(b"body")
        disk.open("d/state").truncate(length)
        with pytest.raises(DamagedFile):
            side_file.load(disk, "d/state", Kind.LOG_STATE)


def test_a_file_of_another_kind_is_not_taken_for_it() -> None:
    with pytest.raises(DamagedFile):
        side_file.load(saved(b"body"), "d/state", Kind.COMPACTION)


def test_a_crash_while_saving_leaves_the_old_or_the_new_file() -> None:
    """The rename is not durable before the content is."""
    disk = saved(b"old")
    before = disk.op_count
    side_file.save_durably(disk, "d/state", Kind.LOG_STATE, b"new")
    for upto in range(before, disk.op_count + 1):
        for lost in ([], disk.unsynced(upto), *[[one] for one in disk.unsynced(upto)]):
            found = side_file.load(disk.crashed(upto, lost=lost), "d/state", Kind.LOG_STATE)
            assert found in ((b"old", b"new") if upto < disk.op_count else (b"new",))
