"""Leasing and acknowledging: the short way where the place is plain, else with a command. Whoever asks sees no
difference but in what it costs.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from goqueue.broker.queues.settle_latency import measured_settle
from goqueue.broker.queues.watchers import Watchers
from goqueue.machines.deliveries.commands import How, Lease, LeaseReply, Place, Settle, SettleReply, Verdict
from goqueue.machines.deliveries.direct import NOTHING_NEW, are_apart
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.model.errors import GoQueueError
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator
from goqueue.telemetry.journeys import Journeys, Step
from goqueue.telemetry.meters import Meters

R = TypeVar("R")

_ACK: Final = How.ACK  # looking up enum members costs
_DONE: Final = Verdict.DONE
_LEASED: Final = Step.LEASED
_ONE_DONE: Final = SettleReply((_DONE,))


class DirectWay:
    def __init__(
        self,
        journeys: Journeys,
        meters: Meters,
        clock: Clock,
        watchers: Watchers,
        on_settled: Callable[[Coordinator[Deliveries], Deliveries], None],
    ) -> None:
        self._journeys = journeys
        self._meters = meters
        self._clock = clock
        self._watchers = watchers
        self._on_settled = on_settled
        """Something was settled there, and no fact tells of it."""

    def lease_plain(
        self,
        coordinator: Coordinator[Deliveries],
        place: Place,
        consumer: str,
        records_max: int,
        lease_ms: int | None,
        log: tuple[int, int] = NOTHING_NEW,
    ) -> LeaseReply | None:
        """At once, without a command. None: that cannot be done now, or there is nothing; see `Direct.lease`."""
        now_ms = coordinator.directly()
        if now_ms is None:
            return None
        leased = coordinator.peek().direct.lease(place, consumer, records_max, lease_ms, now_ms, log)
        if leased is not None:
            coordinator.deadline_set(leased.deadline_ms)
            group_id, topic, partition = place
            first, last, _, _ = leased.runs[0]
            self._journeys.note(now_ms, _LEASED, topic, partition, first, last, group_id, consumer)
            if self._watchers.by_group:
                self._watchers.changed()
        return leased

    def lease(
        self,
        coordinator: Coordinator[Deliveries],
        place: Place,
        consumer: str,
        records_max: int,
        lease_ms: int | None,
    ) -> LeaseReply | GoQueueError:
        """At once: whoever asks is not within a reply of the coordinator."""
        if not coordinator.is_active:
            return coordinator.refusal()
        leased = self.lease_plain(coordinator, place, consumer, records_max, lease_ms)
        if leased is not None:
            return leased
        replies: list[LeaseReply | GoQueueError] = []
        coordinator.submit(Lease(place, consumer, records_max, lease_ms), replies.append)
        return replies.pop() if replies else coordinator.refusal()  # it met a fault, and reads its ledger again

    def settle(
        self, coordinator: Coordinator[Deliveries], command: Settle, on_reply: OnReply[SettleReply] | None
    ) -> None:
        """One settlement after the other, in their order; from the first that is not plain on, with a command."""
        place, settlements, consumer = command.place, command.settlements, command.consumer
        done = 0
        if (len(settlements) == 1 or are_apart(settlements)) and coordinator.takes_changes:
            machine = coordinator.peek()
            settle = machine.direct.settle
            for first, last, how, _, _, lease in settlements:
                if how is not _ACK or not settle(place, first, last, lease, consumer):
                    break
                done += 1
            if done:
                self._on_settled(coordinator, machine)
        if done and done == len(settlements):
            coordinator.when_stored(self._told(place.topic, done, on_reply))
            return
        if on_reply is not None:
            on_reply = measured_settle(command, on_reply, self._meters, self._clock)
        if not done:
            coordinator.submit(command, on_reply)
            return
        both = _Both(done, on_reply)
        coordinator.when_stored(both.stored)
        coordinator.submit(Settle(place, settlements[done:], consumer), both.decided)

    def _told(
        self, topic: str, done: int, on_reply: OnReply[SettleReply] | None
    ) -> Callable[[GoQueueError | None], None]:
        """What answers that so many were acknowledged, when they are stored."""
        if on_reply is None:
            return _tell_nobody
        reply = _ONE_DONE if done == 1 else SettleReply((_DONE,) * done)
        monotonic_s, settled = self._clock.monotonic_s, self._meters.settled
        started_s = monotonic_s()

        def stored(error: GoQueueError | None) -> None:
            if error is None:
                settled(topic, "ack", monotonic_s() - started_s)
                on_reply(reply)
            else:
                on_reply(error)

        return stored


def _tell_nobody(error: GoQueueError | None) -> None:
    """Nobody asked."""


def answer(on_reply: OnReply[R] | None, reply: R | GoQueueError) -> None:
    if on_reply is not None:
        on_reply(reply)


class _Both:
    """A settlement of which some was done directly: it is answered when both parts are."""

    def __init__(self, done: int, on_reply: OnReply[SettleReply] | None) -> None:
        self._done = done
        self._on_reply = on_reply
        self._errors: list[GoQueueError | None] = []
        self._replies: list[SettleReply] = []

    def stored(self, error: GoQueueError | None) -> None:
        self._errors.append(error)
        self._give()

    def decided(self, reply: SettleReply | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            self._errors.append(reply)
        else:
            self._errors.append(None)
            self._replies.append(reply)
        self._give()

    def _give(self) -> None:
        if len(self._errors) < len(("stored", "decided")):
            return
        error = self._errors[0] or self._errors[1]
        answer(self._on_reply, error or SettleReply((_DONE,) * self._done + self._replies[0].verdicts))
