"""A node whose metadata is gone or short must not start: it would come up as a new one, without its topics. This is
asked before anything in the data directory is changed.
"""

from goqueue.model.errors import LogPoisoned, MetadataDamaged
from goqueue.model.names import LEDGER_PREFIX, is_topic_name
from goqueue.records.log_files import LOGS_NAME
from goqueue.storage.disk import Disk
from goqueue.storage.inspection import inspect

METADATA = f"{LEDGER_PREFIX}metadata"
METADATA_PATH = f"{LOGS_NAME}/{METADATA}/0"
OLD_METADATA = "__metadata"


def metadata_fault(disk: Disk, ledger: str = METADATA) -> str:
    """What is wrong with it, for a person; empty: it is whole, or this directory is new."""
    path = f"{LOGS_NAME}/{ledger}/0"
    found = inspect(disk, path)
    if found.is_short:
        return f"{path}: {found.words()}"
    if found.has_segments:
        return ""
    others = [name for name in disk.list(LOGS_NAME) if name != ledger and _is_log(name)]
    if not others:
        return ""
    if OLD_METADATA in others:
        return (
            "it was written by an older GoQueue that was not stopped cleanly: start and stop that version once; or"
            f" {path} is gone"
        )
    return f"{path} is gone, though there are logs of {len(others)} topics and ledgers"


def refuse_damaged_metadata(disk: Disk) -> None:
    """MetadataDamaged: with the way out. LogPoisoned: it cannot be read, whatever it is like."""
    try:
        fault = metadata_fault(disk)
    except OSError as error:
        raise LogPoisoned(f"{METADATA_PATH} cannot be read: {error}") from error
    if fault:
        raise MetadataDamaged(
            f"the metadata, which tells what topics there are, is damaged: {fault}. Nothing was changed. Restore the"
            " directory from a backup; or see what `goqueue repair --dry-run` can put together from snapshots and logs"
        )


def _is_log(name: str) -> bool:
    return is_topic_name(name.removeprefix(LEDGER_PREFIX))
