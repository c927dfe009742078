"""How long nobody was served: the longest time between two answers of each kind of operation, and whether all of them
are served again when what was broken is whole.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from tools.nemesis.history import Fault, Operation

STUCK_S = 30.0


class Gap(NamedTuple):
    seconds: float
    begin: float
    """When the last answer before it came."""


def longest_gaps(history: Iterable[Operation]) -> Mapping[str, Gap]:
    """Of each kind of operation, by its name."""
    answers: dict[str, list[float]] = defaultdict(list)
    for operation in history:
        if operation.is_ok:
            answers[operation.what].append(operation.ended)
    found = {}
    for what, times in sorted(answers.items()):
        times.sort()
        pairs = pairwise(times)
        found[what] = max((Gap(after - before, before) for before, after in pairs), default=Gap(0.0, times[0]))
    return found


def check_served(history: Iterable[Operation], healed: float, ended: float, stuck_s: float = STUCK_S) -> list[Fault]:
    """Everything that was asked after `healed` was answered in time, up to `ended`, when workloads stopped."""
    asked: dict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        if operation.ended >= healed and operation.began <= ended:
            asked[operation.what].append(operation)
    found = []
    for what, operations in sorted(asked.items()):
        times = sorted([healed, *(each.ended for each in operations if each.is_ok and each.ended <= ended), ended])
        worst = max(_waited(operations, before, after) for before, after in pairwise(times))
        if worst > stuck_s:
            found.append(Fault("stuck", f"nobody got an answer to {what} for {worst:.0f} s after all was healed"))
    return found


def _waited(operations: Iterable[Operation], before: float, after: float) -> float:
    """Between two answers. While nobody asks, nobody waits: some operations are rare."""
    asked = [max(each.began, before) for each in operations if each.began < after and each.ended > before]
    return after - min(asked, default=after)
