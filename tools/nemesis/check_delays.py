"""Delays: a delayed message comes once, not before its time and soon after it, and never when it was cancelled.

Operations: `delay` asks topic, id and `due`; `cancel` asks topic and id, `fail` means that it was too late; `arrived`
is answered with topic, id, `at` and the place where the message stands, once for each place where it was found. `due`
and `at` are times of one clock; `at` is when the message was there, as near as a reader can tell.

The kinds of faults: early, late, never, after cancel, twice, phantom.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tools.nemesis.history import FAIL, Fault, Operation, Window

LATE_S_MAX = 5.0
EARLY_S_MAX = 0.002
"""Clocks of doors and logs count whole milliseconds."""


def check_delays(history: Iterable[Operation], outages: Sequence[Window] = ()) -> list[Fault]:
    """`outages`: times, of the clock of `due`, in which a message may wait for what comes after them. Where a clock was
    ahead, it may come as much too early.
    """
    asked: dict[Any, Operation] = {}
    cancelled: dict[Any, Operation] = {}
    arrived: dict[Any, dict[Any, float]] = defaultdict(dict)
    for operation in history:
        if operation.what == "delay":
            asked[operation.asked["topic"], operation.asked["id"]] = operation
        elif operation.what == "cancel":
            cancelled[operation.asked["topic"], operation.asked["id"]] = operation
        elif operation.what == "arrived" and operation.is_ok:
            answer = operation.answer
            arrived[answer["topic"], answer["id"]].setdefault(answer["place"], answer["at"])
    found: list[Fault] = []
    for name in sorted(asked.keys() | arrived.keys()):
        found += _judge(name, asked.get(name), cancelled.get(name), arrived[name], outages)
    return found


def _judge(
    name: Any,
    delay: Operation | None,
    cancel: Operation | None,
    arrivals: dict[Any, float],
    outages: Sequence[Window],
) -> Iterator[Fault]:
    text = f"{name[1]!r} of {name[0]}"
    if len(arrivals) > 1:
        yield Fault("twice", f"{text} stands at {sorted(arrivals)}")
    if delay is None or delay.outcome == FAIL:
        if arrivals:
            yield Fault("phantom", f"{text} came and was {'refused' if delay else 'asked by nobody'}")
        return
    if cancel is not None and cancel.is_ok:
        if arrivals:
            yield Fault("after cancel", f"{text} came and was cancelled")
        return
    due = delay.asked["due"]
    if not arrivals:
        if delay.is_ok and (cancel is None or cancel.outcome == FAIL):
            yield Fault("never", f"{text}, due at {due:.3f}, did not come")
        return
    first = min(arrivals.values())
    if first < due - EARLY_S_MAX - _ahead_s(first, outages):
        yield Fault("early", f"{text} came {due - first:.3f} s before its time")
    elif first > _may_wait_until(due, outages) + LATE_S_MAX:
        yield Fault("late", f"{text} came {first - due:.1f} s after its time")


def _ahead_s(at: float, outages: Sequence[Window]) -> float:
    return max([0.0, *(outage.ahead_s for outage in outages if outage.touches(at, at))])


def _may_wait_until(due: float, outages: Sequence[Window]) -> float:
    for outage in sorted(outages):
        if outage.begin <= due + LATE_S_MAX and due <= outage.end:
            due = outage.end
    return due
