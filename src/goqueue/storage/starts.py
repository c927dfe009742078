"""How often a node was started on its data directory. Each start leads its partitions in an epoch of its own, so that
nothing that was begun before it can be taken for its own.
"""

from goqueue.model.errors import DamagedFile
from goqueue.records.log_files import Kind
from goqueue.storage import side_file
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.state import LogState
from goqueue.telemetry.logs import get_logger

STARTS_NAME = "starts"
BYTES = 8

events = get_logger("storage")


def count_start(directory: DataDirectory) -> int:
    """The number of this start, from 0; above every epoch in the logs, also where the count is new or was lost. A disk
    that has no room for it costs only that the next start may have the same number, as far as the logs allow it."""
    number = _next(directory)
    try:
        side_file.save_durably(directory.disk, STARTS_NAME, Kind.STARTS, number.to_bytes(BYTES, "little"))
    except OSError as error:
        events.warning("start not counted", number=number, reason=str(error))
    return number


def _next(directory: DataDirectory) -> int:
    try:
        return int.from_bytes(side_file.load(directory.disk, STARTS_NAME, Kind.STARTS), "little") + 1
    except (OSError, DamagedFile):
        return max((_latest_epoch(directory, *name) for name in directory.names()), default=-1) + 1


def _latest_epoch(directory: DataDirectory, topic: str, partition: int) -> int:
    try:
        return LogState.load(directory.disk, f"logs/{topic}/{partition}").epochs.latest
    except (OSError, DamagedFile):
        return -1
