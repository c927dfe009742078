"""Our own small files beside the log (indexes, state): framed, so that damage is seen before it is believed.

A frame is `GQ`, version, kind, CRC-32C of the body, body length, body. A file holds one or more frames.
"""

from enum import IntEnum
from struct import Struct

from crc32c import crc32c

from goqueue.model.errors import DamagedFile
from goqueue.storage.disk import Disk, File

MAGIC = b"GQ"
VERSION = 1
FRAME = Struct("<2sBBII")
DRAFT = ".tmp"
"""Behind the name of a file that is being written; recovery sweeps up what a crash leaves of them."""


class Kind(IntEnum):
    SUMMARY = 1
    OFFSET_INDEX = 2
    TIME_INDEX = 3
    LOG_STATE = 4
    COMPACTION = 5


def pack(kind: Kind, body: bytes) -> bytes:
    return FRAME.pack(MAGIC, VERSION, kind, crc32c(body), len(body)) + body


def read_frame(file: File, position: int, kind: Kind) -> tuple[bytes, int]:
    """The body of the frame at `position` and where the next one starts."""
    head = file.read(position, FRAME.size)
    if len(head) < FRAME.size:
        raise DamagedFile(f"{kind.name.lower()} frame cut off at byte {position}")
    magic, version, found, crc, length = FRAME.unpack(head)
    if magic != MAGIC or version != VERSION or found != kind:
        raise DamagedFile(f"no {kind.name.lower()} frame of version {VERSION} at byte {position}")
    if length > file.size() - position - FRAME.size:
        raise DamagedFile(f"{kind.name.lower()} frame is longer than its file")
    body = file.read(position + FRAME.size, length)
    if len(body) != length or crc32c(body) != crc:
        raise DamagedFile(f"{kind.name.lower()} frame has a wrong checksum")
    return body, position + FRAME.size + length


def load(disk: Disk, path: str, kind: Kind) -> bytes:
    """The body of a file that holds one frame; a missing file is FileNotFoundError."""
    file = disk.open(path)
    try:
        return read_frame(file, 0, kind)[0]
    finally:
        file.close()


def save_durably(disk: Disk, path: str, kind: Kind, body: bytes) -> None:
    """A file of one frame, replaced at once or not at all."""
    replace_durably(disk, path, pack(kind, body))


def replace_durably(disk: Disk, path: str, data: bytes) -> None:
    """A crash leaves the old content or the new."""
    replace_synced(disk, path, data)
    disk.sync_directory(path.rpartition("/")[0])


def replace_synced(disk: Disk, path: str, data: bytes) -> None:
    """The same, but for the sync of the directory, which is the caller's: a crash before it may leave the old content
    still, or nothing where there was nothing."""
    draft = path + DRAFT
    if disk.exists(draft):
        disk.remove(draft)
    file = disk.open(draft, create=True)
    try:
        file.write(0, [data])
        file.sync()
    finally:
        file.close()
    disk.rename(draft, path)
