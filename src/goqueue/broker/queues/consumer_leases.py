"""What one consumer holds, so that it can be given back at once when the consumer is gone: others need not wait for
the end of its leases.
"""

from collections.abc import Sequence
from typing import TypeAlias

from goqueue.broker.queues.queues import Place, Queues
from goqueue.broker.queues.receive import LeasedPlace
from goqueue.machines.deliveries.commands import How, LeasedRun, Settle, Settlement, SettleReply, Verdict
from goqueue.model.errors import GoQueueError
from goqueue.model.ranges import Range, subtract
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import OnReply

__all__ = ["Holdings", "How", "LeasedRun", "Settlement", "Verdict"]

Lease: TypeAlias = tuple[float, list[Range]]
"""When it ends, by the monotonic clock as leases do, and the offsets that are leased until then."""


class Holdings:
    """Invariant: whatever this consumer was given and can still settle is in `_leases`; there may be more, since others
    may end a lease.
    """

    def __init__(self, queues: Queues, clock: Clock, group_id: str, consumer: str) -> None:
        self._queues = queues
        self._clock = clock
        self._group_id = group_id
        self._consumer = consumer
        self._leases: dict[Place, list[Lease]] = {}

    def take(self, leased: LeasedPlace, now_ms: int) -> None:
        if leased.slices is not None and leased.slices.runs:
            ranges = [(run.first, run.last) for run in leased.slices.runs]
            self._add(Place(self._group_id, leased.topic, leased.partition), leased.deadline_ms - now_ms, ranges)

    def settle(self, place: Place, settlements: Sequence[Settlement], on_reply: OnReply) -> None:
        """`on_reply` gets a SettleReply, or a GoQueueError."""

        def settled(reply: SettleReply | GoQueueError) -> None:
            if not isinstance(reply, GoQueueError):
                self._note(place, settlements, reply.verdicts)
            on_reply(reply)

        self._queues.submit(Settle(place, tuple(settlements), self._consumer), settled)

    def give_back(self, how: How) -> None:
        """All of it, to be delivered again at once."""
        held, self._leases = self._leases, {}
        for place, leases in held.items():
            settlements = tuple(Settlement(*each, how, 0) for _, ranges in leases for each in ranges)
            if settlements:
                self._queues.submit(Settle(place, settlements, self._consumer))

    def _note(self, place: Place, settlements: Sequence[Settlement], verdicts: Sequence[Verdict]) -> None:
        gone = [(each.first, each.last) for each in settlements]
        left = [(ends_s, subtract(ranges, gone)) for ends_s, ranges in self._leases.get(place, ())]
        self._leases[place] = [lease for lease in left if lease[1]]
        for each, verdict in zip(settlements, verdicts):
            if each.how is How.EXTEND and verdict is Verdict.DONE:
                self._add(place, each.delay_ms, [(each.first, each.last)])
        if not self._leases[place]:
            del self._leases[place]

    def _add(self, place: Place, lease_ms: int, ranges: list[Range]) -> None:
        """Leases that have run out are left out: who never settles must not fill the memory."""
        now_s = self._clock.monotonic_s()
        live = [lease for lease in self._leases.get(place, ()) if lease[0] > now_s]
        self._leases[place] = [*live, (now_s + lease_ms / 1000, ranges)]
