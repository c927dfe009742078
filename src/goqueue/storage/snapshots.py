"""Snapshots of what a ledger's machine knows, so that a restart replays thousands of records and not millions.

A file is `snapshot-{kind}-{offset}-{time}.bin`: a header of 36 bytes (`GQ`, version, CRC-32C of the rest, the
ledger offset up to which the snapshot knows everything, when it was made, how many entries follow, the epoch that wrote
what it knows last), then entries of key length, key, value length, value. Version 1 has no epoch. A damaged one is
passed over for the one before it, and so is one of another history than the log's.
"""

import re
from collections.abc import Callable, Iterable
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from crc32c import crc32c

from goqueue.model.errors import DamagedFile
from goqueue.records.batch import NO_EPOCH
from goqueue.storage.disk import Disk
from goqueue.storage.side_file import DRAFT, replace_durably
from goqueue.telemetry.logs import get_logger

MAGIC = b"GQ"
VERSION = 2
HEADER = Struct("<2sHIqqqi")
HEADERS = {1: Struct("<2sHIqqq"), VERSION: HEADER}
PREFIX = Struct("<2sH")
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

    def __init__(
        self, disk: Disk, directory: str, kind: str, epoch_before: Callable[[int], int] = lambda offset: NO_EPOCH
    ) -> None:
        """`epoch_before`: by the log's history, which epoch wrote the last record below an offset."""
        self._disk = disk
        self._directory = directory
        self._kind = kind
        self._epoch_before = epoch_before
        self._name = re.compile(rf"snapshot-{re.escape(kind)}-(\d+)-(\d+)\.bin")

    def save(self, offset: int, now_ms: int, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Durable when it returns; then all but the last few go."""
        pieces = []
        for key, value in entries:
            pieces += [LENGTH.pack(len(key)), key, LENGTH.pack(len(value)), value]
        body = b"".join(pieces)
        fields = offset, now_ms, len(pieces) // 4, self._epoch_before(offset)
        tail = HEADER.pack(MAGIC, VERSION, 0, *fields)[8:] + body
        data = HEADER.pack(MAGIC, VERSION, crc32c(tail), *fields)[:8] + tail
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
            magic, version = PREFIX.unpack_from(data)
            if magic != MAGIC or version not in HEADERS:
                raise DamagedFile("not a snapshot of a version that is known")
            header = HEADERS[version]
            _, _, crc, offset, _, count, *more = header.unpack_from(data)
        except StructError as error:
            raise DamagedFile("shorter than its header") from error
        if crc32c(memoryview(data)[8:]) != crc:
            raise DamagedFile("wrong checksum")
        epoch, known_epoch = more[0] if more else NO_EPOCH, self._epoch_before(offset)
        if NO_EPOCH not in (epoch, known_epoch) and epoch != known_epoch:
            raise DamagedFile(f"of epoch {epoch}, but {known_epoch} wrote the record before it")
        return Snapshot(offset, _entries(data, count, header.size))


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


def _entries(data: bytes, count: int, position: int) -> list[tuple[bytes, bytes]]:
    entries = []
    for _ in range(count):
        pair = []
        for _ in range(2):
            (length,) = LENGTH.unpack_from(data, position)
            position += LENGTH.size
            pair.append(data[position : position + length])
            position += length
        entries.append((pair[0], pair[1]))
    return entries
