"""Snapshots of what a ledger's machine knows, so that a restart replays thousands of records and not millions.

A file is `snapshot-{kind}-{offset}-{time}.bin`: a header of 32 bytes (`GQ`, version, CRC-32C of the rest, the
ledger offset up to which the snapshot knows everything, when it was made, how many entries follow), then entries of
key length, key, value length, value. A damaged one is passed over for the one before it.
"""

import re
from collections.abc import Iterable
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from crc32c import crc32c

from goqueue.model.errors import DamagedFile
from goqueue.storage.disk import Disk
from goqueue.storage.side_file import DRAFT, replace_durably
from goqueue.telemetry.logs import get_logger

MAGIC = b"GQ"
VERSION = 1
HEADER = Struct("<2sHIqqq")
LENGTH = Struct("<I")
KEPT = 3
ANY_NAME = re.compile(r"snapshot-.+-(?P<offset>\d+)-\d+\.bin")

events = get_logger("storage")


class Snapshot(NamedTuple):
    """`entries` rebuild the machine as it was before the record at `offset`."""

    offset: int
    entries: list[tuple[bytes, bytes]]


class SnapshotFiles:
    """The snapshots of one kind in one directory, newest last."""

    def __init__(self, disk: Disk, directory: str, kind: str) -> None:
        self._disk = disk
        self._directory = directory
        self._kind = kind
        self._name = re.compile(rf"snapshot-{re.escape(kind)}-(\d+)-(\d+)\.bin")

    def save(self, offset: int, now_ms: int, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Durable when it returns; then all but the last few go."""
        pieces = []
        for key, value in entries:
            pieces += [LENGTH.pack(len(key)), key, LENGTH.pack(len(value)), value]
        body = b"".join(pieces)
        tail = HEADER.pack(MAGIC, VERSION, 0, offset, now_ms, len(pieces) // 4)[8:] + body
        data = HEADER.pack(MAGIC, VERSION, crc32c(tail), offset, now_ms, len(pieces) // 4)[:8] + tail
        path = f"{self._directory}/snapshot-{self._kind}-{offset:020d}-{now_ms}.bin"
        self._sweep_drafts()
        replace_durably(self._disk, path, data)
        for name in self._names()[:-KEPT]:
            self._disk.remove(f"{self._directory}/{name}")

    def _sweep_drafts(self) -> None:
        """What a crash or a full disk left of a snapshot that was being written."""
        for name in self._disk.list(self._directory):
            if name.endswith(DRAFT) and self._name.fullmatch(name.removesuffix(DRAFT)):
                self._disk.remove(f"{self._directory}/{name}")

    def latest(self, up_to: int) -> Snapshot | None:
        """The newest sound one that knows nothing behind offset `up_to`."""
        for name in reversed(self._names()):
            try:
                snapshot = self._load(name)
                if snapshot.offset <= up_to:
                    return snapshot
            except (DamagedFile, OSError) as error:
                events.error("snapshot passed over", path=f"{self._directory}/{name}", reason=str(error))
        return None

    def _names(self) -> list[str]:
        names = [name for name in self._disk.list(self._directory) if self._name.fullmatch(name)]
        return sorted(names, key=lambda name: [int(number) for number in self._name.fullmatch(name).groups()])  # type: ignore[union-attr]

    def _load(self, name: str) -> Snapshot:
        file = self._disk.open(f"{self._directory}/{name}")
        try:
            data = file.read(0, file.size())
        finally:
            file.close()
        try:
            magic, version, crc, offset, _, count = HEADER.unpack_from(data)
        except StructError as error:
            raise DamagedFile("shorter than its header") from error
        if magic != MAGIC or version != VERSION or crc32c(memoryview(data)[8:]) != crc:
            raise DamagedFile("wrong checksum")
        return Snapshot(offset, _entries(data, count))


def remove_behind(disk: Disk, directory: str, offset: int) -> bool:
    """Durably remove every snapshot, of whatever kind, that knows more than what is below `offset`; True if any did."""
    known = ((name, ANY_NAME.fullmatch(name)) for name in disk.list(directory))
    behind = [name for name, found in known if found is not None and int(found["offset"]) > offset]
    for name in behind:
        disk.remove(f"{directory}/{name}")
    if behind:
        disk.sync_directory(directory)
    return bool(behind)


def oldest_offset(disk: Disk, directory: str) -> int | None:
    """From where on a restart may read the log in `directory`, should it have to use the oldest snapshot there, sound
    or not; None: there is none.
    """
    found = (ANY_NAME.fullmatch(name) for name in disk.list(directory))
    return min((int(name["offset"]) for name in found if name is not None), default=None)


def _entries(data: bytes, count: int) -> list[tuple[bytes, bytes]]:
    entries = []
    position = HEADER.size
    for _ in range(count):
        pair = []
        for _ in range(2):
            (length,) = LENGTH.unpack_from(data, position)
            position += LENGTH.size
            pair.append(data[position : position + length])
            position += length
        entries.append((pair[0], pair[1]))
    return entries
