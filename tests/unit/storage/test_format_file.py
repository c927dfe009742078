"""A directory says in which formats it is written, and a version that does not know them leaves it alone."""

import errno
import json
from importlib.metadata import version
from pathlib import Path

import pytest

from goqueue.model.errors import NewerFormat
from goqueue.node.offline import look_at_logs, repair_directory
from goqueue.records.formats import FORMAT_NAME, FORMATS
from goqueue.storage.committer import Committer
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.disk import Disk
from goqueue.testing.memory_disk import MemoryDisk


def opened(disk: Disk) -> DataDirectory:
    """To be written to."""
    directory = DataDirectory.open(disk, committer=Committer(lambda call: call(), lambda: 0))
    directory.note_formats()
    return directory


def said(disk: Disk) -> object:
    file = disk.open(FORMAT_NAME)
    return json.loads(file.read(0, file.size()))


def write(disk: Disk, data: bytes) -> None:
    file = disk.open(FORMAT_NAME, create=True)
    file.write(0, [data])
    file.close()


def written_by(number: str, **formats: int) -> bytes:
    return json.dumps({"written_by": number, "formats": {**FORMATS, **formats}}).encode()


@pytest.mark.parametrize("kind", FORMATS)
def test_a_directory_of_a_later_version_is_refused_and_left_as_it_is(kind: str) -> None:
    disk = MemoryDisk()
    opened(disk).close()
    disk.make_directory("deleted/orders-0")
    disk.remove(FORMAT_NAME)
    newer = written_by("9.1.0", **{kind: FORMATS[kind] + 1})
    write(disk, newer)
    with pytest.raises(NewerFormat) as refused:
        opened(disk)
    words = str(refused.value)
    assert f"written by GoQueue 9.1.0, which stores {kind} in format {FORMATS[kind] + 1}" in words
    assert f"known here: {FORMATS[kind]}" in words
    assert f"this is GoQueue {version('goqueue')}" in words
    assert "Use GoQueue 9.1.0 or a later one" in words
    assert said(disk) == json.loads(newer)
    assert disk.exists("deleted/orders-0")
    disk.lock("lock").release()  # it was let go


def test_a_kind_of_ledger_that_is_not_known_is_refused() -> None:
    disk = MemoryDisk()
    write(disk, written_by("9.1.0", quotas=1))
    with pytest.raises(NewerFormat, match=r"quotas in format 1 \(known here: none\)"):
        opened(disk)


def test_a_directory_of_an_earlier_version_is_opened_and_says_the_formats_of_this_one() -> None:
    disk = MemoryDisk()
    write(disk, json.dumps({"written_by": "0.0.1", "formats": {"log": 1, "groups": 1}}).encode())
    opened(disk).close()
    assert said(disk) == {"written_by": version("goqueue"), "formats": dict(FORMATS)}


def test_a_new_directory_says_its_formats_before_anything_is_stored_in_it() -> None:
    disk = MemoryDisk()
    opened(disk)
    left = disk.crashed(lost=disk.unsynced())
    assert said(left) == {"written_by": version("goqueue"), "formats": dict(FORMATS)}


@pytest.mark.parametrize(
    "damage", [b"", b"\xff\x00", b"[]", b'{"formats": 3}', b'{"written_by": "1", "formats": {"log": "x"}}']
)
def test_a_damaged_file_costs_only_what_it_said(damage: bytes) -> None:
    disk = MemoryDisk()
    write(disk, damage)
    opened(disk).close()
    assert said(disk) == {"written_by": version("goqueue"), "formats": dict(FORMATS)}


def test_a_full_disk_is_no_reason_not_to_open_a_directory() -> None:
    disk = MemoryDisk()
    disk.make_directory("logs")
    fault = disk.faults.add("write", errno.ENOSPC, prefix=FORMAT_NAME)
    opened(disk).close()
    assert fault.hits == 1
    assert not disk.exists(FORMAT_NAME)


def test_neither_doctor_nor_repair_touch_what_a_later_version_wrote(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / FORMAT_NAME).write_bytes(written_by("9.1.0", metadata=99))
    looked = look_at_logs(tmp_path)
    assert "written by GoQueue 9.1.0" in looked.newer
    assert (looked.metadata, looked.faults) == ("", [])
    with pytest.raises(NewerFormat, match="metadata in format 99"):
        repair_directory(tmp_path, 0, is_dry_run=False)
