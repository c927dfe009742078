"""Which shards of ledgers a data directory has. They are made when they are first needed, so no other file tells one
that was lost from one that never was.
"""

import json
from collections.abc import Iterable

from goqueue.model.errors import DamagedFile
from goqueue.records.log_files import Kind
from goqueue.storage import side_file
from goqueue.storage.data_directory import DataDirectory
from goqueue.telemetry.logs import get_logger

SHARDS_NAME = "shards"

events = get_logger("storage")


def missing_shards(directory: DataDirectory, ledger: str) -> list[int]:
    """Those that were there when the directory was noted last, and are not now."""
    known = _load(directory).get(ledger, [])
    return sorted(set(known) - set(directory.partitions_of(ledger)))


def note_shards(directory: DataDirectory, ledgers: Iterable[str]) -> None:
    """To be called when they are durable: after a start, and at its end. A full disk costs only that the loss of a new
    one would not be told."""
    found = {ledger: sorted(directory.partitions_of(ledger)) for ledger in ledgers}
    if found == _load(directory):
        return
    try:
        side_file.save_durably(directory.disk, SHARDS_NAME, Kind.SHARDS, encode_shards(found))
    except OSError as error:
        events.warning("shards not noted", reason=str(error))


def encode_shards(shards: dict[str, list[int]]) -> bytes:
    return json.dumps(shards).encode()


def decode_shards(body: bytes) -> dict[str, list[int]]:
    try:
        return {str(ledger): [int(number) for number in numbers] for ledger, numbers in json.loads(body).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise DamagedFile(f"{SHARDS_NAME} cannot be read: {error}") from error


def _load(directory: DataDirectory) -> dict[str, list[int]]:
    try:
        return decode_shards(side_file.load(directory.disk, SHARDS_NAME, Kind.SHARDS))
    except FileNotFoundError:
        return {}
    except (OSError, DamagedFile) as error:
        events.warning("shards not known", reason=str(error))
        return {}
