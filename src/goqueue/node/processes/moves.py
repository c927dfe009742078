"""Renames that are made all or none, though a crash may come between any two of them: they are written down first, and
a start goes on with what it finds. What is in `next.draft` was never decided, or is done.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from goqueue.model.errors import DamagedFile
from goqueue.storage import side_file
from goqueue.storage.disk import Disk

DRAFT, NEXT = "next.draft", "next"
OLD = f"{NEXT}/old"
"""What is moved here goes when all is done."""
MOVES_NAME = "moves"


class Move(NamedTuple):
    source: str
    """One that is not there was moved before."""
    target: str


def begin(disk: Disk) -> None:
    """An empty `next.draft`."""
    _sweep(disk)
    disk.make_directory(DRAFT)


def decide(disk: Disk, moves: Sequence[Move]) -> None:
    """From now on they are made, whatever happens. What `next.draft` holds is in `next`."""
    disk.make_directory(f"{DRAFT}/old")
    side_file.replace_durably(disk, f"{DRAFT}/{MOVES_NAME}", json.dumps(moves).encode() + b"\n")
    disk.rename(DRAFT, NEXT)
    disk.sync_directory("")


def finish(disk: Disk) -> bool:
    """Make what was decided and is not done. False: there is nothing. OSError: it is to be tried again."""
    _sweep(disk)
    if not disk.exists(NEXT):
        return False
    moves = _read(disk)
    touched: dict[str, None] = {}
    for source, target in moves:
        is_dropped = target.startswith(OLD)
        if is_dropped:  # what was moved out of it must be elsewhere for good, or it would be dropped with it
            _sync(disk, touched)
        if disk.exists(source) and not disk.exists(target):
            disk.make_directory(_parent(target))
            disk.rename(source, target)
        touched |= dict.fromkeys((_parent(target), _parent(source)))
        if is_dropped:  # before another takes its name
            _sync(disk, touched)
    _sync(disk, touched)
    _clear(disk, dict.fromkeys(_parent(move.source) for move in moves))
    disk.rename(NEXT, DRAFT)
    disk.sync_directory("")
    _sweep(disk)
    return True


def _read(disk: Disk) -> list[Move]:
    file = disk.open(f"{NEXT}/{MOVES_NAME}")
    try:
        return [Move(str(source), str(target)) for source, target in json.loads(file.read(0, file.size()))]
    except ValueError as error:
        raise DamagedFile(f"{NEXT}/{MOVES_NAME}, which tells what goes where, is damaged: {error}") from error
    finally:
        file.close()


def _sync(disk: Disk, directories: dict[str, None]) -> None:
    for each in directories:
        if disk.exists(each):
            disk.sync_directory(each)
    directories.clear()


def _clear(disk: Disk, directories: Iterable[str]) -> None:
    """Those of topics that have nothing left."""
    empty = [each for each in directories if "/" in each and disk.exists(each) and not disk.list(each)]
    for directory in empty:
        disk.remove(directory)
    for parent in dict.fromkeys(map(_parent, empty)):
        disk.sync_directory(parent)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _sweep(disk: Disk) -> None:
    if disk.exists(DRAFT):
        _remove(disk, DRAFT)
        disk.sync_directory("")


def _remove(disk: Disk, path: str) -> None:
    with suppress(NotADirectoryError):
        for name in disk.list(path):
            _remove(disk, f"{path}/{name}")
    disk.remove(path)
