"""All checkers on one history, and a report for a person."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tools.nemesis.availability import check_served, longest_gaps
from tools.nemesis.check_delays import check_delays
from tools.nemesis.check_groups import check_groups
from tools.nemesis.check_log import check_logs
from tools.nemesis.check_queue import check_queues
from tools.nemesis.check_transactions import check_transactions
from tools.nemesis.history import Fault, Operation, Window

AFTER_S = 15.0
"""Leaders may still change, and what waited may still come, for so long after a fault is over."""


class Verdict(NamedTuple):
    faults: list[Fault]
    report: str


def judge(
    history: Sequence[Operation],
    troubles: Sequence[Window],
    healed: float,
    ended: float,
    wall_ahead: float,
    changes: Sequence[Window] = (),
    stuck: Sequence[Fault] = (),
) -> Verdict:
    """`changes`: of leaders, whatever their reason, and times in which nodes got no core. `wall_ahead`: what to add to
    the history's clock to get the time of day. `stuck`: workloads that did not end.
    """
    windows = [each._replace(end=each.end + AFTER_S) for each in (*troubles, *changes)]
    outages = [each._replace(begin=each.begin + wall_ahead, end=each.end + wall_ahead) for each in windows]
    forgetful = [each for each in windows if not each.ahead_s]  # leases do not ask for the time of day
    faults = [
        *stuck,
        *check_logs(history),
        *check_queues(history, forgetful),
        *check_transactions(history),
        *check_delays(history, outages),
        *check_groups(history),
        *check_served([each for each in history if "end" not in each.asked.get("door", "")], healed, ended),
    ]
    return Verdict(faults, report(history, troubles, faults))


def report(history: Sequence[Operation], troubles: Sequence[Window], faults: Sequence[Fault]) -> str:
    named = [operation._replace(what=_name(operation)) for operation in history]
    gaps = longest_gaps(named)
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for operation in named:
        outcomes[operation.what][operation.outcome] += 1
    lines = [f"{len(history)} operations, {len(troubles)} faults were made"]
    lines += [f"  {'operation':32} {'ok':>8} {'fail':>7} {'unknown':>8}  longest time without an ok"]
    for what, counts in sorted(outcomes.items()):
        gap = f"{gaps[what].seconds:6.2f} s" if what in gaps else "none was ok"
        lines.append(f"  {what:32} {counts['ok']:8} {counts['fail']:7} {counts['unknown']:8}  {gap}")
    kinds = Counter(fault.kind for fault in faults)
    lines.append(f"broken promises: {', '.join(f'{kind} {count}' for kind, count in kinds.items()) or 'none'}")
    return "\n".join([*lines, *_samples(faults)])


def _samples(faults: Iterable[Fault], each_max: int = 5) -> list[str]:
    shown: Counter[str] = Counter()
    lines = []
    for fault in faults:
        shown[fault.kind] += 1
        if shown[fault.kind] <= each_max:
            lines.append(f"  {fault}"[:600])
    return lines


def _name(operation: Operation) -> str:
    door = operation.asked.get("door")
    return f"{operation.what} ({door})" if door else operation.what


def told(notes: Iterable[str]) -> list[str]:
    """What clients were told, each once."""
    return [f"note: {note}{f' ({times} times)' if times > 1 else ''}" for note, times in Counter(notes).items()]
