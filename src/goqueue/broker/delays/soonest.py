"""What waits for its time, the soonest first. It is kept by place: so all of it is walked over, in turns."""

from collections.abc import Callable
from heapq import nsmallest

from goqueue.broker.delays.schedules import Schedules
from goqueue.machines.delays.commands import FoundSchedule, ScheduleKey
from goqueue.model.again import Again
from goqueue.runtime.clock import Clock

SCHEDULES_PER_TURN = 4000


def soonest(
    schedules: Schedules, clock: Clock, topic: str, count: int, on_found: Callable[[list[FoundSchedule], int], None]
) -> None:
    """Give the first `count` that will be due in `topic`, by time and place, and how many wait in all."""
    best: list[FoundSchedule] = []
    total = 0
    after: ScheduleKey | None = None

    def step(again: Again) -> None:
        nonlocal best, total, after
        some = schedules.waiting(topic, None, after, SCHEDULES_PER_TURN)
        total += len(some)
        latest_ms = best[-1].due_ms if best and len(best) >= count else None
        sooner = some if latest_ms is None else [each for each in some if each.due_ms <= latest_ms]
        if sooner:
            best = nsmallest(count, [*best, *sooner], key=lambda each: (each.due_ms, each.key))
        if len(some) < SCHEDULES_PER_TURN:
            on_found(best, total)
        else:
            after = some[-1].key
            clock.call_soon(again)

    Again(step)()
