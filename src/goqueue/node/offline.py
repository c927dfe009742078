"""A data directory on which no node runs: looked at, repaired, and opened to its owner again."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from goqueue.model.errors import GoQueueError, NewerFormat, NoDataDirectory
from goqueue.model.names import LEDGER_PREFIX, is_topic_name
from goqueue.node.bootstrap import RESET_NAME
from goqueue.node.metadata_check import METADATA, metadata_fault
from goqueue.node.processes.member_names import STORE, member_directory, members_of
from goqueue.node.repair import Repair, repair
from goqueue.ports.dice import system_dice
from goqueue.records.log_files import LOGS_NAME
from goqueue.storage.data_directory import ASIDE_NAME, LOCK_NAME
from goqueue.storage.directory_id import load_directory_id
from goqueue.storage.format_file import refuse_newer
from goqueue.storage.inspection import inspect
from goqueue.storage.real_disk import RealDisk


class Fault(NamedTuple):
    log: str
    words: str


class Looked(NamedTuple):
    logs: int
    metadata: str
    """What keeps the node from starting; empty: nothing."""
    faults: list[Fault]
    newer: str = ""
    """A later version wrote here: nothing else was looked at."""


def look_at_logs(directory: Path) -> Looked:
    """Changes nothing, and takes no lock."""
    disk = RealDisk(directory)
    found = _looked_at(disk)
    for number in members_of(disk):
        of_member = _looked_at(RealDisk(directory / member_directory(number)))
        named = [Fault(f"{member_directory(number)}/{fault.log}", fault.words) for fault in of_member.faults]
        found = Looked(
            found.logs + of_member.logs,
            found.metadata or of_member.metadata,
            found.faults + named,
            found.newer or of_member.newer,
        )
    return found


def _looked_at(disk: RealDisk) -> Looked:
    try:
        refuse_newer(disk)
    except NewerFormat as error:
        return Looked(0, "", [], str(error))
    logs = 0
    faults: list[Fault] = []
    for name in _logs(disk):
        logs += 1
        try:
            found = inspect(disk, f"{LOGS_NAME}/{name}")
        except (OSError, GoQueueError) as error:
            faults.append(Fault(name, f"cannot be read: {error}"))
            continue
        if not found.is_whole:
            faults.append(Fault(name, found.words()))
    for name in disk.list(ASIDE_NAME):
        words = "put aside, since it belongs to another topic that had this name; delete it if nobody needs it"
        faults.append(Fault(f"{ASIDE_NAME}/{name}", words))
    try:
        metadata = "" if load_directory_id(disk) is not None else metadata_fault(disk, _metadata_of(disk))
    except (OSError, GoQueueError) as error:
        metadata = f"the metadata cannot be read: {error}"
    return Looked(logs, metadata, faults)


def _metadata_of(disk: RealDisk) -> str:
    return STORE if members_of(disk) else METADATA


def _logs(disk: RealDisk) -> Iterator[str]:
    for topic in disk.list(LOGS_NAME):
        if is_topic_name(topic.removeprefix(LEDGER_PREFIX)):
            try:
                numbers = disk.list(f"{LOGS_NAME}/{topic}")
            except NotADirectoryError:
                continue
            yield from (f"{topic}/{number}" for number in numbers if number.isascii() and number.isdigit())


def ask_for_first_key(directory: Path) -> None:
    """At the next start, whatever accounts there are. DataDirectoryLocked: a node runs on it."""
    _check_directory(directory)
    disk = RealDisk(directory)
    lock = disk.lock(LOCK_NAME)
    try:
        (directory / RESET_NAME).touch(mode=0o600)
        disk.sync_directory("")
    finally:
        lock.release()


def _check_directory(directory: Path) -> None:
    if not (directory / LOGS_NAME).is_dir():
        words = f"{directory} is no data directory: it has no {LOGS_NAME!r}. Say which is with --data-dir"
        raise NoDataDirectory(words)


def repair_directory(directory: Path, now_ms: int, *, is_dry_run: bool) -> Repair:
    """DataDirectoryLocked: a node runs on it. NoDataDirectory: nothing is made in it, not even a lock."""
    _check_directory(directory)
    if members_of(RealDisk(directory)):
        words = f"{directory} belongs to several processes, whose metadata cannot be put together: restore a backup"
        raise NoDataDirectory(words)
    return repair(RealDisk(directory), now_ms, system_dice(), is_dry_run=is_dry_run)
