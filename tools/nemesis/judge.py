"""All checkers on one history, and a report for a person."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tools.nemesis.availability import STUCK_S, check_served, longest_gaps
from tools.nemesis.check_delays import check_delays
from tools.nemesis.check_groups import check_groups
from tools.nemesis.check_log import check_logs
from tools.nemesis.check_queue import check_queues
from tools.nemesis.check_transactions import check_transactions
from tools.nemesis.history import Fault, Operation, Window, kind_of

AFTER_S = 15.0
"""Leaders may still change, and what waited may still come, for so long after a fault is over."""


class Verdict(NamedTuple):
    faults: list[Fault]
    report: str


class Healed(NamedTuple):
    """When all was whole again, and what is asked from then on."""

    at: float
    ended: float
    """When workloads were told to stop."""
    stuck_s: float = STUCK_S
    """Whoever waits longer for an answer is stuck."""
    may_be_late: bool = False
    """Delays, from the first fault until that long after the last. Else only around each fault."""


def judge(
    history: Sequence[Operation],
    troubles: Sequence[Window],
    healed: Healed,
    wall_ahead: float,
    changes: Sequence[Window] = (),
    stuck: Sequence[Fault] = (),
) -> Verdict:
    """`changes`: of leaders, whatever their reason, and times in which nodes got no core. `wall_ahead`: what to add to
    the history's clock to get the time of day. `stuck`: workloads that did not end.
    """
    windows = [each._replace(end=each.end + AFTER_S) for each in (*troubles, *changes)]
    late = [Window(troubles[0].begin, healed.at + healed.stuck_s)] if troubles and healed.may_be_late else []
    outages = [each._replace(begin=each.begin + wall_ahead, end=each.end + wall_ahead) for each in (*windows, *late)]
    forgetful = [each for each in windows if not each.ahead_s]  # leases do not ask for the time of day
    faults = [
        *stuck,
        *check_logs(history),
        *check_queues(history, forgetful),
        *check_transactions(history),
        *check_delays(history, outages),
        *check_groups(history),
        *check_served(
            [each for each in history if "end" not in each.asked.get("door", "")],
            healed.at,
            healed.ended,
            healed.stuck_s,
        ),
    ]
    return Verdict(faults, report(history, faults))


def acknowledged(history: Iterable[Operation]) -> int:
    """Messages that nodes have answered for: published, delayed, or committed in a transaction."""
    counts = {"send": 1, "publish": 1, "delay": 1}
    return sum(
        sum(step[0] == "append" for step in each.asked["steps"])
        if each.what == "transaction"
        else counts.get(each.what, 0)
        for each in history
        if each.is_ok
    )


def report(history: Sequence[Operation], faults: Sequence[Fault]) -> str:
    named = [operation._replace(what=kind_of(operation.what, operation.asked)) for operation in history]
    gaps = longest_gaps(named)
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for operation in named:
        outcomes[operation.what][operation.outcome] += 1
    lines = [f"{len(history)} operations"]
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


def told(notes: Iterable[str]) -> list[str]:
    """What clients were told, each once."""
    return [f"note: {note}{f' ({times} times)' if times > 1 else ''}" for note, times in Counter(notes).items()]
