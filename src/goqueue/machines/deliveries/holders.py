"""What consumers hold right now, and whether an earlier delivery has ended: for whoever settles many records by one
receipt, and for whoever wants to see all leases.
"""

from collections.abc import Iterator

from goqueue.machines.deliveries.apply import DeliveryState
from goqueue.machines.deliveries.blocks import Range
from goqueue.machines.deliveries.commands import HeldRun, Place
from goqueue.machines.deliveries.leases import HeldLease
from goqueue.machines.deliveries.pick import histories
from goqueue.machines.deliveries.window import LEASED, WAITING, Window


class Held:
    def __init__(self, state: DeliveryState) -> None:
        self._state = state

    def runs_of(self, place: Place, number: int) -> list[Range]:
        """What of a lease is still leased."""
        lease = self._state.leases.get(number)
        if lease is None or lease.place != place:
            return []
        return [(first, last) for _, first, last in self._held(lease, number)]

    def runs_of_consumer(self, place: Place, consumer: str) -> list[Range]:
        """What it holds there, by all its leases."""
        leases = self._state.leases.of(place.group_id, consumer)
        return [run for number, _ in leases for run in self.runs_of(place, number)]

    def all(self) -> Iterator[HeldRun]:
        for number, lease in self._state.leases.all():
            for window, first, last in self._held(lease, number):
                for low, high, attempt, _ in histories(window, first, last, lease.leased_ms):
                    own = lease.own_deadlines_ms or {}
                    ends = {own.get(offset, lease.deadline_ms) for offset in range(low, high + 1)} if own else ()
                    deadline_ms = min(ends, default=lease.deadline_ms)
                    yield HeldRun(lease.place, low, high, lease.consumer, attempt, lease.leased_ms, deadline_ms)

    def reach(self, place: Place, consumer: str) -> int:
        """The first offset that is neither settled nor held by this consumer: so far may it commit."""
        own, leases = self._state.places[place].own, self._state.leases
        offset = own.start
        while offset < own.end:
            offset = own.done_until(offset)
            if offset >= own.end or not LEASED <= own.kind_at(offset) < WAITING:
                break
            lease = leases.get(own.lease_of[offset - own.base])
            if lease is None or lease.consumer != consumer:
                break
            offset += 1
        return offset

    def ended(self, place: Place, first: int, last: int, attempt: int) -> list[Range]:
        """Of first..last, delivered for the `attempt`-th time: where that delivery is known to be over. A restart
        forgets who holds what, but not this.
        """
        delivery = self._state.places.get(place)
        if delivery is None:
            return []
        return [
            (max(retry.first, low), min(retry.last, high))
            for window, low, high in delivery.parts(first, last)
            for retry in window.retries(low, high)
            if retry.attempts >= attempt
        ]

    def _held(self, lease: HeldLease, number: int) -> Iterator[tuple[Window, int, int]]:
        delivery = self._state.places[lease.place]
        for window_number, first, last in lease.runs:
            window = delivery.window(window_number)
            if window is not None:
                for holder, low, high in window.leased_runs(first, last):
                    if holder == number:
                        yield window, low, high
