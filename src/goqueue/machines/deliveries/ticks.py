"""What the passing of time does to deliveries: leases end, delays are over, records expire, replays go on."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from goqueue.machines.deliveries.blocks import BLOCK, Range, merged, without
from goqueue.machines.deliveries.commands import Place
from goqueue.machines.deliveries.draft import Draft
from goqueue.machines.deliveries.facts import LEASE_ENDED, TimePassed, Woken
from goqueue.machines.deliveries.groups import forgotten_replay
from goqueue.machines.deliveries.leases import HeldLease, Leases
from goqueue.machines.deliveries.look import expired_in, visible_again
from goqueue.machines.deliveries.pick import histories
from goqueue.machines.deliveries.place import DEAD_MAX, Delivery
from goqueue.machines.deliveries.settle import end_delivery
from goqueue.machines.deliveries.window import DEAD, LEASED, WAITING, Window
from goqueue.machines.machine import Fact

Spot: TypeAlias = tuple[Place, int, int]
"""place, window, and a block of it or one of the numbers below"""

RATE = -1
"""Its rate allows the next record."""
FINISHED = -2
"""All of the replay is settled."""

LEASES_PER_TICK = 256
RECORDS_PER_TICK = 4096
"""Of leases that end; of one lease all."""
SPOTS_PER_TICK = 64
"""More have to wait for the next tick, which follows at once: others get their turn in between, and what a tick decides
fits into one batch of the ledger.
"""
PAUSE_MS = 1000
"""Until something is tried again that waits for dead letters to be written."""


class Passing:
    """One tick."""

    def __init__(self, places: Mapping[Place, Delivery], leases: Leases, now_ms: int) -> None:
        self._places = places
        self._leases = leases
        self._now_ms = now_ms
        self._drafts: dict[tuple[Place, int], Draft] = {}
        self._facts: list[Fact] = []

    def decide(self, leases: list[int], spots: list[Spot]) -> list[Fact]:
        """What becomes of these, which are due."""
        looked_at: list[int] = []
        room = RECORDS_PER_TICK
        for number in leases:
            if room <= 0:
                break
            looked_at.append(number)
            lease = self._leases.get(number)
            if lease is not None:
                self._end(number, lease)
                room -= lease.left
        for spot in spots:
            self._look(*spot)
        facts = [fact for draft in self._drafts.values() for fact in draft.facts()]
        return [*facts, *self._facts, TimePassed(self._now_ms, tuple(looked_at), tuple(spots))]

    def give_back(self, leases: Iterable[tuple[int, HeldLease]]) -> list[Fact]:
        """End these, due or not."""
        for number, lease in leases:
            self._end(number, lease, is_given_back=True)
        return [fact for draft in self._drafts.values() for fact in draft.facts()]

    def _draft(self, delivery: Delivery, window: Window) -> Draft:
        key = delivery.place, window.number
        if key not in self._drafts:
            self._drafts[key] = Draft(delivery, window, self._now_ms)
        return self._drafts[key]

    def _end(self, number: int, lease: HeldLease, *, is_given_back: bool = False) -> None:
        delivery = self._places[lease.place]
        for window_number, first, last in lease.runs:
            window = delivery.window(window_number)
            if window is None:
                continue
            for holder, low, high in window.leased_runs(first, last):
                if holder == number:
                    for run in [(low, high)] if is_given_back else self._over(lease, low, high):
                        self._draft(delivery, window).count("lapsed", *run)
                        for history in histories(window, *run, lease.leased_ms):
                            end_delivery(self._draft(delivery, window), history, 0, "", number, LEASE_ENDED)

    def _over(self, lease: HeldLease, first: int, last: int) -> list[Range]:
        """What of first..last is past its deadline."""
        own = lease.own_deadlines_ms
        if own is None:
            return [(first, last)] if lease.deadline_ms <= self._now_ms else []
        return merged(
            (offset, offset) for offset in range(first, last + 1) if own.get(offset, lease.deadline_ms) <= self._now_ms
        )

    def _look(self, place: Place, window_number: int, block: int) -> None:
        delivery = self._places.get(place)
        window = None if delivery is None else delivery.window(window_number)
        if delivery is None or window is None:
            return
        if block == RATE:
            self._facts.append(Woken(place))
        elif block == FINISHED:
            self._facts += forgotten_replay(delivery, window)
        else:
            self._look_at_block(delivery, window, block)

    def _look_at_block(self, delivery: Delivery, window: Window, block: int) -> None:
        first, last = max(block * BLOCK, window.start), min((block + 1) * BLOCK, window.end) - 1
        if first > last:
            return
        draft = self._draft(delivery, window)
        expired: list[Range] = []
        if len(delivery.dead) < DEAD_MAX:
            for offset in expired_in(window, first, last, self._now_ms):
                kind = window.kind_at(offset)
                if kind < DEAD and not LEASED <= kind < WAITING:
                    draft.expire(histories(window, offset, offset, 0)[0])
                    expired.append((offset, offset))
        for run in without(visible_again(window, block, self._now_ms), expired):
            draft.make_ready(*run)
