"""Kill -9 of a Spark with everything that it has started: its JVM is in a process group of its own."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def kill_all_of(pid: int) -> None:
    """The process, its children, and theirs; the last first, so that one may kill itself."""
    for each in (*reversed(_descendants(pid)), pid):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            number, _, rest = stat.read_text().partition(" (")
            children.setdefault(int(rest.rpartition(") ")[2].split()[1]), []).append(int(number))
    found, left = [], [pid]
    while left:
        some = children.get(left.pop(), [])
        found += some
        left += some
    return found
