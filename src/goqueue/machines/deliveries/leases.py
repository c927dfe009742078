"""Leases: who may hold which records until when. A restart forgets them all."""

from collections.abc import Iterator, Sequence

from goqueue.machines.deliveries.commands import Place
from goqueue.machines.deliveries.deadlines import Deadlines


class HeldLease:
    """What was given to a consumer at one time. `left` counts the records of it that are still leased."""

    __slots__ = ("consumer", "deadline_ms", "leased_ms", "left", "own_deadlines_ms", "place", "runs")

    def __init__(
        self, place: Place, consumer: str, leased_ms: int, deadline_ms: int, runs: Sequence[tuple[int, int, int]]
    ) -> None:
        self.place = place
        self.consumer = consumer
        self.leased_ms = leased_ms
        self.deadline_ms = deadline_ms
        self.runs = runs
        """window, first and last offset"""
        self.left = 0
        self.own_deadlines_ms: dict[int, int] | None = None
        """Of records that were extended by themselves."""

    def extend(self, first: int, last: int, deadline_ms: int) -> None:
        if last + 1 - first >= self.left:
            self.deadline_ms, self.own_deadlines_ms = deadline_ms, None
        else:
            if self.own_deadlines_ms is None:
                self.own_deadlines_ms = {}
            self.own_deadlines_ms.update(dict.fromkeys(range(first, last + 1), deadline_ms))

    def shift(self, by_ms: int) -> None:
        self.leased_ms += by_ms
        self.deadline_ms += by_ms
        if self.own_deadlines_ms is not None:
            self.own_deadlines_ms = {offset: due_ms + by_ms for offset, due_ms in self.own_deadlines_ms.items()}

    def deadlines_ms(self) -> Iterator[int]:
        yield self.deadline_ms
        if self.own_deadlines_ms is not None:
            yield from self.own_deadlines_ms.values()


class Leases:
    """The leases of all places. Invariant: a lease is here while some of its records are leased.
    Invariant: `_by_consumer` has the same leases.
    """

    def __init__(self) -> None:
        self.next_number = 1
        self.deadlines: Deadlines[int] = Deadlines()
        self._held: dict[int, HeldLease] = {}
        self.get = self._held.get
        """By number."""
        self._by_consumer: dict[str, dict[int, HeldLease]] = {}
        """Of all groups: few have consumers of the same name."""

    def add(self, number: int, lease: HeldLease) -> None:
        self._held[number] = lease
        same = self._by_consumer.get(lease.consumer)
        if same is None:
            self._by_consumer[lease.consumer] = {number: lease}
        else:
            same[number] = lease
        self.next_number = number + 1
        self.deadlines.note(number, lease.deadline_ms)

    def put_back(self, number: int, lease: HeldLease) -> None:
        """Some records of it are leased again, as if they had never been released."""
        if number not in self._held:
            next_number = self.next_number
            self.add(number, lease)
            self.next_number = next_number
            self.deadlines.note(number, min(lease.deadlines_ms()))

    def all(self) -> list[tuple[int, HeldLease]]:
        return list(self._held.items())

    def of(self, group_id: str, consumer: str) -> list[tuple[int, HeldLease]]:
        same = self._by_consumer.get(consumer, {})
        return [(number, lease) for number, lease in same.items() if lease.place.group_id == group_id]

    def release(self, number: int, count: int) -> HeldLease:
        """So many records of it are no longer leased."""
        lease = self._held[number]
        lease.left -= count
        if not lease.left:
            del self._held[number]
            self.deadlines.drop(number)
            same = self._by_consumer[lease.consumer]
            del same[number]
            if not same:
                del self._by_consumer[lease.consumer]
        return lease

    def drop_place(self, place: Place) -> None:
        for number, lease in [each for each in self._held.items() if each[1].place == place]:
            self.release(number, lease.left)

    def shift(self, by_ms: int) -> None:
        """The clock was set: they last as long as they would have."""
        for lease in self._held.values():
            lease.shift(by_ms)
        self.deadlines.move(lambda _, due_ms: due_ms + by_ms)

    def note(self, number: int, after_ms: int) -> None:
        """Look at it again when one of its deadlines after `after_ms` comes."""
        lease = self._held.get(number)
        if lease is not None:
            to_come = [deadline_ms for deadline_ms in lease.deadlines_ms() if deadline_ms > after_ms]
            if to_come:
                self.deadlines.note(number, min(to_come))
