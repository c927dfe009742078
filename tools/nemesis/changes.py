"""When leaders changed, as nodes wrote it into their logs: also for reasons of their own, such as handing partitions
back to a node that has returned. A change forgets leases, and delays may wait for it.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from tools.nemesis.history import Window

BEFORE_S = 10.0
"""A hand-over is told when it is done. It begins with a moment in which nobody leads."""
EVENTS = frozenset(("elected", "leaderships handed over", "session lost"))


def changes_in(lines: Iterable[str], wall_ahead: float, who: str) -> list[Window]:
    """`wall_ahead`: the time of day minus the history's clock."""
    found = []
    for line in lines:
        try:
            told = json.loads(line)
            if told["event"] in EVENTS:
                at = datetime.fromisoformat(told["time"]).timestamp() - wall_ahead
                found.append(Window(at - BEFORE_S, at, f"{who}: {told['event']}"))
        except (ValueError, KeyError, TypeError):
            continue  # whatever a process says that is no event
    return found


def read_changes(logs: Sequence[Path], wall_ahead: float) -> list[Window]:
    found: list[Window] = []
    for path in logs:
        with path.open("r", encoding="utf-8", errors="replace") as lines:
            found += changes_in(lines, wall_ahead, path.parent.name)
    return found
