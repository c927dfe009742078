"""The short way to lease and to settle: for what most consumers do all day, in a place where nothing else is going on.

The general way decides facts and applies them. Here a decision and what it changes are one step on the same arrays, and
no object is made for it. Nothing of a lease is stored, so a lease makes no fact at all. What was settled is stored as
state and not as history: once for all that was settled in one turn of the loop. Whoever settled is told after that; if
it cannot be stored it is taken back, and the records are leased as before.

Whatever is not plain is left to the general way, which finds nothing unstored: the coordinator sees to that.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from goqueue.machines.deliveries.apply import DeliveryState
from goqueue.machines.deliveries.blocks import Range, merged
from goqueue.machines.deliveries.commands import OWN_WINDOW, LeasedRun, LeaseReply, Place, Settlement
from goqueue.machines.deliveries.draft import Draft
from goqueue.machines.deliveries.facts import Progress, SettledStored
from goqueue.machines.deliveries.lanes import NO_DEFICITS
from goqueue.machines.deliveries.leases import HeldLease
from goqueue.machines.deliveries.pick import LEASE_RECORDS_MAX
from goqueue.machines.deliveries.place import DEAD_MAX, Delivery
from goqueue.machines.deliveries.window import LANE_BITS, LEASED, Window
from goqueue.machines.machine import Fact
from goqueue.records.plain import NumberRecord

NOTHING_NEW = (0, 0)
"""As the ends of a log: nothing in it that was not observed."""

_new_tuple = tuple.__new__


class Unstored(NamedTuple):
    """Settled, and not in the ledger yet: all that it takes to undo it."""

    first: int
    last: int
    kind: int
    """What they all were."""
    lease: int
    held: HeldLease


def are_apart(settlements: Sequence[Settlement]) -> bool:
    """In rising order, none of them twice: then each may be settled by itself."""
    return all(one.last < following.first for one, following in pairwise(settlements))


class Direct:
    """Invariant: `_unstored` names what is settled in the arrays of own windows and in nothing that is stored."""

    def __init__(self, state: DeliveryState) -> None:
        self._state = state
        self._unstored: dict[Place, list[Unstored]] = state.unstored

    def lease(
        self,
        place: Place,
        consumer: str,
        records_max: int,
        lease_ms: int | None,
        now_ms: int,
        log: tuple[int, int] = NOTHING_NEW,
    ) -> LeaseReply | None:
        """Neighbours that were never delivered before. None: nothing was leased here; the general way may find
        something, if the `log` is observed first. That is where it begins and ends: who has not seen all of it may have
        to serve others first.
        """
        state = self._state
        delivery = state.places.get(place)
        if delivery is None or not delivery.is_open or delivery.replays or len(delivery.dead) >= DEAD_MAX:
            return None
        window, policy = delivery.own, delivery.policy
        if window.end < log[1] or window.start < log[0]:
            return None
        unacked = delivery.unacked.get(consumer, 0)
        count = min(records_max, policy.unacked_max - unacked, LEASE_RECORDS_MAX)
        if count <= 0 or window.expires or not window.is_plain:
            return None
        run = _next_run(window, count)
        if run is None:
            return None
        lane, first, last = run
        taken, leases = last + 1 - first, state.leases
        number = leases.next_number
        window.lease(lane, first, last, number, now_ms, is_fresh=True)
        window.shares = NO_DEFICITS
        deadline_ms = now_ms + (policy.lease_ms if lease_ms is None else lease_ms)
        held = HeldLease(place, consumer, now_ms, deadline_ms, ((OWN_WINDOW, first, last),))
        held.left = taken
        leases.add(number, held)
        delivery.served[lane] += taken
        delivery.unacked[consumer] = unacked + taken
        state.tally.leased += taken
        return LeaseReply(number, deadline_ms, (_new_tuple(LeasedRun, (first, last, 1, now_ms)),))

    def settle(self, place: Place, first: int, last: int, lease: int, consumer: str | None) -> bool:
        """Acknowledge first..last, which one lease holds: this one, or if `consumer` is given one of that consumer's.
        False: nothing was done; the general way may find who holds what.
        """
        state = self._state
        delivery = state.places.get(place)
        if delivery is None or delivery.replays or first > last:
            return False
        window = delivery.own
        low, count = first - window.base, last + 1 - first
        if low < 0 or last >= window.end or window.keys is not None:
            return False
        if consumer is not None:
            lease = window.lease_of[low]
        held = state.leases.get(lease)
        if held is None or (consumer is not None and held.consumer != consumer):
            return False
        kind = window.kinds[low]
        if count == 1:
            if window.lease_of[low] != lease or kind & ~LANE_BITS != LEASED:
                return False
        elif not window.all_leased(first, last, lease) or window.kinds.count(kind, low, low + count) != count:
            return False
        window.finish(first, last, kind)
        state.release(delivery, lease, count)
        state.tally.acked += count
        unstored = self._unstored.get(place)
        if unstored is None:
            unstored = self._unstored[place] = []
        unstored.append(_new_tuple(Unstored, (first, last, kind, lease, held)))
        return True

    @property
    def is_ahead(self) -> bool:
        return bool(self._unstored)

    def facts_ahead(self, now_ms: int) -> list[Fact]:
        """What has to be stored so that a restart knows what was settled; reads only."""
        facts: list[Fact] = []
        for place, unstored in self._unstored.items():
            delivery = self._state.places[place]
            ranges = _ranges(unstored)
            facts += _stored(delivery, ranges, now_ms)
            facts.append(SettledStored(place, ranges, now_ms))
        return facts

    def number_ahead(self) -> tuple[NumberRecord, int] | None:
        """What most acks need: one place, settled in order, so that all there is to store is how far."""
        if len(self._unstored) != 1:
            return None
        ((place, unstored),) = self._unstored.items()
        delivery = self._state.places[place]
        window = delivery.own
        start = window.start
        if window.stored:
            return None
        for each in unstored:
            if each[1] >= start:
                return None
        return delivery.progress_record(), start

    def number_stored(self, now_ms: int) -> Fact:
        ((place, unstored),) = self._unstored.items()
        window = self._state.places[place].own
        self._unstored.clear()
        window.stored_start = window.start
        window.sweep()
        return SettledStored(place, _ranges(unstored), now_ms)

    def take_back(self, now_ms: int) -> None:
        """It could not be stored: who held the records holds them still, and may settle them again."""
        state = self._state
        for place, unstored in self._unstored.items():
            delivery = state.places[place]
            for first, last, kind, lease, held in unstored:
                count = last + 1 - first
                delivery.own.unfinish(first, last, kind, now_ms)
                held.left += count
                state.leases.put_back(lease, held)
                delivery.unacked[held.consumer] = delivery.unacked.get(held.consumer, 0) + count
                state.tally.acked -= count
        self._unstored.clear()


def _next_run(window: Window, count: int) -> tuple[int, int, int] | None:
    """Lane, first and last of the next `count` ready records, or of all if they are fewer; if they are of the only lane
    with any, are neighbours, and were never delivered before.
    """
    lane = window.only_lane()
    if lane is None:
        return None
    base = window.base
    if count == 1:
        low = window.kinds.find(lane, window.hints[lane] - base)
        return None if window.attempts[low] else (lane, base + low, base + low)
    first, last = next(window.ready_runs(lane, count))
    low, taken = first - base, last + 1 - first
    is_in_pieces = taken < min(count, window.counts[lane])
    if is_in_pieces or window.attempts.count(0, low, low + taken) != taken:
        return None
    return lane, first, last


def _ranges(unstored: Sequence[Unstored]) -> tuple[Range, ...]:
    if len(unstored) == 1:
        return (unstored[0][:2],)
    return tuple(merged(each[:2] for each in unstored))


def _stored(delivery: Delivery, ranges: Sequence[Range], now_ms: int) -> list[Fact]:
    window = delivery.own
    if not window.stored and ranges[-1][1] < window.start:  # in order: the one fact that most acks need
        assert delivery.topic_id is not None
        return [Progress(delivery.place, OWN_WINDOW, delivery.topic_id, window.start)]
    draft = Draft(delivery, window, now_ms)
    draft.settled(ranges)
    return draft.stored_facts()
