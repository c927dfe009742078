"""What a consumer gets when it asks for records: from which window, which lanes, which offsets."""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from goqueue.machines.deliveries.blocks import Range, without
from goqueue.machines.deliveries.commands import OWN_WINDOW, Lease, LeasedRun, LeaseReply, Policy
from goqueue.machines.deliveries.facts import Leased, Pick
from goqueue.machines.deliveries.fair import FairQueues, Looks
from goqueue.machines.deliveries.lanes import NO_DEFICITS, Shares, share_out
from goqueue.machines.deliveries.look import expired_in
from goqueue.machines.deliveries.place import DEAD_MAX, Delivery
from goqueue.machines.deliveries.window import Window
from goqueue.machines.machine import Fact
from goqueue.model.lanes import LANES

LEASE_RECORDS_MAX = 10_000
"""If they all die at once, that is one batch in the ledger."""
LOOKS_MAX = 65536
"""Records of a lane that are looked at for one that may be delivered. The rest have expired and are due to be
cleared away; then the place is woken again.
"""


class History(NamedTuple):
    """Neighbours that were delivered equally often, first at the same time."""

    first: int
    last: int
    attempts: int
    first_delivered_ms: int


def histories(window: Window, first: int, last: int, leased_ms: int) -> list[History]:
    """Of first..last, which were observed. `leased_ms`: when those were delivered that are delivered the first time."""
    low, high = first - window.base, last + 1 - window.base
    attempts = window.attempts[low:high]
    known = {
        offset: retry.first_delivered_ms
        for retry in window.retries(first, last)
        for offset in range(max(retry.first, first), min(retry.last, last) + 1)
    }
    if not known and attempts.count(attempts[0]) == len(attempts):
        return [History(first, last, attempts[0], leased_ms)]
    found: list[History] = []
    alike = groupby(range(first, last + 1), lambda offset: (attempts[offset - first], known.get(offset, leased_ms)))
    for (count, first_ms), offsets in alike:
        members = list(offsets)
        found.append(History(members[0], members[-1], count, first_ms))
    return found


def decide_lease(delivery: Delivery, command: Lease, number: int, now_ms: int) -> tuple[list[Fact], LeaseReply]:
    policy = delivery.policy
    deadline_ms = now_ms + (policy.lease_ms if command.lease_ms is None else command.lease_ms)
    room = policy.unacked_max - delivery.unacked.get(command.consumer, 0)
    count = min(command.records_max, room, LEASE_RECORDS_MAX)
    if count <= 0 or len(delivery.dead) >= DEAD_MAX:
        return [], LeaseReply(number, deadline_ms, ())
    turn, shares = delivery.turn, []
    if not delivery.replays:
        picks, left = _pick(delivery.own, count, policy, (), now_ms)
        shares.append((OWN_WINDOW, left))
    else:
        picks, shares, turn = _pick_in_turn(delivery, count, now_ms)
    if not picks:
        return [], LeaseReply(number, deadline_ms, ())
    runs: list[LeasedRun] = []
    for pick in picks:
        if pick.is_fresh:
            runs.append(LeasedRun(pick.first, pick.last, 1, now_ms))
        else:
            runs += _later_runs(delivery, pick, now_ms)
    leased = Leased(command.place, number, command.consumer, deadline_ms, tuple(picks), tuple(shares), turn, now_ms)
    return [leased], LeaseReply(number, deadline_ms, tuple(runs))


def _later_runs(delivery: Delivery, pick: Pick, now_ms: int) -> list[LeasedRun]:
    """Of what was delivered before, or some of it."""
    window = delivery.window(pick.window)
    assert window is not None
    return [
        LeasedRun(each.first, each.last, each.attempts + 1, each.first_delivered_ms)
        for each in histories(window, pick.first, pick.last, now_ms)
    ]


def _pick_in_turn(delivery: Delivery, count: int, now_ms: int) -> tuple[list[Pick], list[tuple[int, Shares]], int]:
    """The window after that which came first last time comes first now. Returns whose turn it is next, too."""
    line = list(enumerate(delivery.windows()))
    first = delivery.turn % len(line)
    picks: list[Pick] = []
    shares: list[tuple[int, Shares]] = []
    turn = delivery.turn
    for position, window in line[first:] + line[:first]:
        allowed = delivery.allowance(window, now_ms, count)
        if allowed <= 0 or not window.has_ready():
            continue
        chosen, left = _pick(window, allowed, delivery.policy, _busy_keys(delivery, window), now_ms)
        if chosen:
            if not picks:
                turn = position + 1
            picks += chosen
            shares.append((window.number, left))
            count -= sum(pick.last + 1 - pick.first for pick in chosen)
    return picks, shares, turn


def _busy_keys(delivery: Delivery, window: Window) -> Collection[int]:
    """Keys of which something is leased in another window; in its own, a window sees to that itself."""
    if not delivery.replays or not delivery.policy.orders_by_key:
        return ()
    busy: set[int] = set()
    for other in delivery.windows():
        if other is not window and other.keys is not None:
            for _, first, last in other.leased_runs(other.start, other.end - 1):
                busy.update(other.keys.hash_at(offset - other.base) for offset in range(first, last + 1))
    busy.discard(0)
    return busy


def _pick(window: Window, count: int, policy: Policy, busy: Collection[int], now_ms: int) -> tuple[list[Pick], Shares]:
    if window.fair is not None:
        runs = [deque(_shared(window, window.fair, lane, count, busy, now_ms)) for lane in range(LANES)]
        ready: Sequence[int] = [sum(last + 1 - first for first, last in each) for each in runs]
    elif window.expires or busy:
        runs = [deque(_deliverable(window, lane, count, busy, now_ms)) for lane in range(LANES)]
        ready = [sum(last + 1 - first for first, last in each) for each in runs]
    else:
        lane = window.only_lane()
        if lane is not None:
            picks = [
                Pick(window.number, lane, first, last, _is_fresh(window, first, last))
                for first, last in window.ready_runs(lane, count)
            ]
            return picks, NO_DEFICITS
        ready = window.counts[:LANES]
        runs = []
    boosted = _boosted(window, ready, policy, now_ms)[:count] if policy.lane_boost_ms > 0 else []
    if boosted:
        ready = [ready[lane] - (lane in boosted) for lane in range(LANES)]
    plan, shares = share_out(ready, window.shares, policy.lane_weights, count - len(boosted))
    if boosted:
        plan[:0] = [(lane, 1) for lane in boosted]
    if not runs:
        wanted = [0] * LANES
        for lane, taken in plan:
            wanted[lane] += taken
        runs = [deque(window.ready_runs(lane, wanted[lane])) for lane in range(LANES)]
    return [pick for lane, taken in plan for pick in _taken(window, lane, runs[lane], taken)], shares


def _is_fresh(window: Window, first: int, last: int) -> bool:
    return window.attempts.count(0, first - window.base, last + 1 - window.base) == last + 1 - first


def _boosted(window: Window, ready: Sequence[int], policy: Policy, now_ms: int) -> list[int]:
    """Lanes that others have kept waiting for too long."""
    late = [
        lane for lane in range(LANES) if ready[lane] and now_ms - window.unserved_since_ms[lane] >= policy.lane_boost_ms
    ]
    return late if len(late) < sum(map(bool, ready)) else []


def _taken(window: Window, lane: int, runs: deque[Range], count: int) -> Iterator[Pick]:
    while count > 0 and runs:
        first, last = runs.popleft()
        if last + 1 - first > count:
            runs.appendleft((first + count, last))
            last = first + count - 1
        yield Pick(window.number, lane, first, last, _is_fresh(window, first, last))
        count -= last + 1 - first


def _shared(window: Window, fair: FairQueues, lane: int, count: int, busy: Collection[int], now_ms: int) -> list[Range]:
    """As `_deliverable`, in the order in which senders are served."""
    if not window.counts[lane]:
        return []

    def may_have(offset: int) -> bool:
        return not expired_in(window, offset, offset, now_ms) and bool(_idle_runs(window, offset, offset, busy))

    looks = Looks(may_have, LOOKS_MAX) if window.expires or busy else None
    runs: list[Range] = []
    for offset in fair.pick(lane, count, window.kinds, window.base, looks):
        if runs and runs[-1][1] == offset - 1:
            runs[-1] = runs[-1][0], offset
        else:
            runs.append((offset, offset))
    return runs


def _deliverable(window: Window, lane: int, count: int, busy: Collection[int], now_ms: int) -> Iterator[Range]:
    """Ready, not expired, and nothing of its key is leased elsewhere."""
    for first, last in window.ready_runs(lane, LOOKS_MAX):
        expired = [(offset, offset) for offset in expired_in(window, first, last, now_ms)]
        for low, high in without([(first, last)], expired):
            for run in _idle_runs(window, low, high, busy):
                yield run[0], min(run[1], run[0] + count - 1)
                count -= run[1] + 1 - run[0]
                if count <= 0:
                    return


def _idle_runs(window: Window, first: int, last: int, busy: Collection[int]) -> list[Range]:
    if not busy or window.keys is None:
        return [(first, last)]
    keys = window.keys
    waiting = [(each, each) for each in range(first, last + 1) if keys.hash_at(each - window.base) in busy]
    return without([(first, last)], waiting)
