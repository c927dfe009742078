"""The file that says in which formats a data directory is written: read before anything else there, and written before
anything of a new format is.
"""

from collections.abc import Mapping

from goqueue.model.errors import DamagedFile, NewerFormat
from goqueue.model.own_version import own_version
from goqueue.records.formats import FORMAT_NAME, FORMATS, decode_formats, encode_formats, newer_formats
from goqueue.storage.disk import Disk
from goqueue.storage.side_file import replace_durably
from goqueue.telemetry.logs import get_logger

events = get_logger("storage")


def refuse_newer(disk: Disk, formats: Mapping[str, int] = FORMATS) -> None:
    """NewerFormat: a later version has written here. A damaged file is told, and costs only this protection."""
    try:
        data = _read(disk)
        refusal = newer_formats(data, own_version(), formats) if data is not None else ""
    except DamagedFile as error:
        events.error("formats of the data directory are not known", reason=str(error))
        return
    if refusal:
        raise NewerFormat(refusal)


def note_formats(disk: Disk, formats: Mapping[str, int] = FORMATS) -> None:
    """From now on versions that do not know these formats are refused. A disk that is full is no reason not to start:
    nothing else is written there either."""
    try:
        if not _is_noted(disk, formats):
            replace_durably(disk, FORMAT_NAME, encode_formats(own_version(), formats))
    except OSError as error:
        events.error("formats of the data directory not written", reason=str(error))


def _is_noted(disk: Disk, formats: Mapping[str, int]) -> bool:
    try:
        data = _read(disk)
        return data is not None and decode_formats(data) == (own_version(), dict(formats))
    except DamagedFile:
        return False


def _read(disk: Disk) -> bytes | None:
    try:
        file = disk.open(FORMAT_NAME)
    except FileNotFoundError:
        return None
    try:
        return file.read(0, file.size())
    finally:
        file.close()
