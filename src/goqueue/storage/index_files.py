"""Indexes on disk. They are only ever a shortcut: a missing, torn or damaged one is rebuilt from the data.

`.index` holds a summary of the segment and the offset index, `.timeindex` the time index.
"""

from contextlib import suppress

from goqueue.model.errors import DamagedFile
from goqueue.records.log_files import INDEX_SUFFIX, Kind, Summary, pack, read_frame
from goqueue.storage import side_file
from goqueue.storage.disk import Disk
from goqueue.storage.index import OffsetIndex, TimeIndex

TIME_INDEX_SUFFIX = ".timeindex"
SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX)


def load_summary(disk: Disk, stem: str) -> Summary | None:
    try:
        file = disk.open(stem + INDEX_SUFFIX)
    except OSError:
        return None
    try:
        return Summary.read(file)[0]
    except (OSError, DamagedFile):
        return None
    finally:
        file.close()


def save(disk: Disk, stem: str, summary: Summary, index: OffsetIndex, time_index: TimeIndex) -> None:
    head = pack(Kind.SUMMARY, summary.encode())
    _overwrite(disk, stem + INDEX_SUFFIX, head + pack(Kind.OFFSET_INDEX, index.encode()))
    _overwrite(disk, stem + TIME_INDEX_SUFFIX, pack(Kind.TIME_INDEX, time_index.encode()))


def load(disk: Disk, stem: str, base_offset: int, end_position: int) -> tuple[OffsetIndex, TimeIndex]:
    """OSError or DamagedFile if they are not there, not sound, or describe another state of the segment."""
    file = disk.open(stem + INDEX_SUFFIX)
    try:
        summary, position = Summary.read(file)
        if summary.end_position != end_position:
            raise DamagedFile("the offset index describes another state of its segment")
        index = OffsetIndex.decode(base_offset, read_frame(file, position, Kind.OFFSET_INDEX)[0])
    finally:
        file.close()
    time_index = TimeIndex.decode(side_file.load(disk, stem + TIME_INDEX_SUFFIX, Kind.TIME_INDEX))
    if len(index) == 0 or len(index) != len(time_index):
        raise DamagedFile("offset index and time index do not belong together")
    return index, time_index


def sync(disk: Disk, stem: str) -> None:
    for suffix in SUFFIXES:
        with suppress(FileNotFoundError):
            file = disk.open(stem + suffix)
            file.sync()
            file.close()


def remove(disk: Disk, stem: str) -> None:
    for suffix in SUFFIXES:
        with suppress(FileNotFoundError):
            disk.remove(stem + suffix)


def _overwrite(disk: Disk, path: str, data: bytes) -> None:
    """In place and not synced: a torn index is seen by its checksum, and rebuilding one is cheaper than syncing all."""
    file = disk.open(path, create=not disk.exists(path))
    try:
        file.write(0, [data])
        file.truncate(len(data))
    finally:
        file.close()
