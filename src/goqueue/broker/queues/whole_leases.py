"""Leases as wholes, by one receipt each: held longer, or finished. What of them was settled by itself stays as it is.

For consumers that take thousands of records at a time and remember ranges of them, not each one.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from goqueue.broker.queues.queues import Queues
from goqueue.broker.queues.settle import Settler
from goqueue.machines.deliveries.commands import (
    OLD_LEASE,
    HeldRun,
    How,
    Place,
    Settle,
    Settlement,
    SettleReply,
    Verdict,
)
from goqueue.model.errors import GoQueueError
from goqueue.model.ranges import subtract
from goqueue.model.receipts import LeaseReceipt

OnDone: TypeAlias = Callable[[int | GoQueueError], None]
"""How many records it was done to."""


class Run(NamedTuple):
    first: int
    last: int
    attempt: int
    """As it was leased."""


class WholeLeases:
    def __init__(self, queues: Queues, settler: Settler) -> None:
        self._queues = queues
        self._settler = settler

    def lease_of(self, receipt: str) -> LeaseReceipt:
        """MalformedReceipt: it is none of ours."""
        return self._settler.lease_of(receipt)

    def extend(self, receipt: str, hold_ms: int, on_done: OnDone) -> None:
        """What of it is still leased stays so until `hold_ms` from now. A lease of before the last restart is over."""
        if self._settler.spread is not None:
            self._settler.lease_of(receipt)
            self._settler.spread.extend(receipt, hold_ms, on_done)
        else:
            extend_lease_here(self._queues, self._settler, receipt, hold_ms, on_done)

    def finish(self, receipt: str, runs: Sequence[Run], on_done: OnDone) -> None:
        """Acknowledge what of it is still leased. After a restart, which forgets leases: of `runs`, what was delivered
        to nobody since and is not known to have been given back.
        """
        if self._settler.spread is not None:
            self._settler.lease_of(receipt)
            self._settler.spread.finish(receipt, runs, on_done)
        else:
            finish_lease_here(self._queues, self._settler, receipt, runs, on_done)

    def held(self, group_id: str | None, topic: str | None) -> list[HeldRun]:
        """All that consumers hold, by group and place, in the order of offsets."""
        return sorted(
            run
            for run in self._queues.held()
            if (group_id is None or run.place.group_id == group_id) and (topic is None or run.place.topic == topic)
        )


def extend_lease_here(queues: Queues, settler: Settler, receipt: str, hold_ms: int, on_done: OnDone) -> None:
    found = settler.lease_of(receipt)
    place = Place(found.group_id, found.topic, found.partition)
    runs = queues.peek_at(place).held.runs_of(place, found.lease)
    settlements = [Settlement(*run, How.EXTEND, hold_ms, lease=found.lease) for run in runs]
    _settle(queues, place, settlements, 0, on_done)


def finish_lease_here(queues: Queues, settler: Settler, receipt: str, runs: Sequence[Run], on_done: OnDone) -> None:
    found = settler.lease_of(receipt)
    place = Place(found.group_id, found.topic, found.partition)
    held = queues.peek_at(place).held
    if found.lease == OLD_LEASE:
        within = [run for run in runs if found.first <= run.first <= run.last <= found.last]
        ranges = [
            each
            for first, last, attempt in within
            for each in subtract([(first, last)], held.ended(place, first, last, attempt))
        ]
    else:
        ranges = held.runs_of(place, found.lease)
    _settle(queues, place, [Settlement(*each, How.ACK, lease=found.lease) for each in ranges], 0, on_done)


def _settle(queues: Queues, place: Place, settlements: Sequence[Settlement], done_before: int, on_done: OnDone) -> None:
    if not settlements:
        on_done(done_before)
        return

    def settled(reply: SettleReply | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            on_done(reply)
            return
        done = done_before
        apart: list[Settlement] = []
        for each, verdict in zip(settlements, reply.verdicts):
            if verdict is Verdict.DONE:
                done += each.last + 1 - each.first
            elif each.last > each.first:
                apart += (each._replace(first=offset, last=offset) for offset in range(each.first, each.last + 1))
        _settle(queues, place, apart, done, on_done)

    queues.submit(Settle(place, tuple(settlements)), settled)
