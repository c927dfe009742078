"""Leasing and acknowledging: the short way where the place is plain, else with a command. Whoever asks sees no
difference but in what it costs.
"""

from collections.abc import Callable
from typing import Any, Final

from goqueue.machines.deliveries.commands import How, Lease, LeasedRun, LeaseReply, Place, Settle, SettleReply, Verdict
from goqueue.machines.deliveries.direct import are_apart
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.model.errors import GoQueueError
from goqueue.runtime.coordinator import Coordinator, OnReply
from goqueue.telemetry.journeys import Journeys, Step

_ACK: Final = How.ACK  # looking up enum members costs
_DONE: Final = Verdict.DONE
_LEASED: Final = Step.LEASED
_ONE_DONE: Final = SettleReply((_DONE,))
_FIRST_ATTEMPT: Final = 1


class DirectWay:
    def __init__(self, journeys: Journeys, on_changed: Callable[[Coordinator[Deliveries]], None]) -> None:
        self._journeys = journeys
        self._on_changed = on_changed
        """Something was leased or settled there, and no fact tells of it."""

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
        machine = coordinator.peek()
        now_ms = coordinator.directly()
        if now_ms is not None:
            leased = machine.direct.lease(place, consumer, records_max, lease_ms, now_ms)
            if leased is not None:
                number, first, last, deadline_ms = leased
                coordinator.deadline_set(deadline_ms)
                group_id, topic, partition = place
                self._journeys.note(now_ms, _LEASED, topic, partition, first, last, group_id, consumer)
                self._on_changed(coordinator)
                return LeaseReply(number, deadline_ms, (LeasedRun(first, last, _FIRST_ATTEMPT, now_ms),))
        replies: list[LeaseReply | GoQueueError] = []
        coordinator.submit(Lease(place, consumer, records_max, lease_ms), replies.append)
        return replies.pop() if replies else coordinator.refusal()  # it met a fault, and reads its ledger again

    def settle(self, coordinator: Coordinator[Deliveries], command: Settle, on_reply: OnReply | None) -> None:
        """One settlement after the other, in their order; from the first that is not plain on, with a command."""
        place, settlements, consumer = command.place, command.settlements, command.consumer
        done = 0
        if are_apart(settlements) and coordinator.directly() is not None:
            settle = coordinator.peek().direct.settle
            for first, last, how, _, _, lease in settlements:
                if how is not _ACK or not settle(place, first, last, lease, consumer):
                    break
                done += 1
        if not done:
            coordinator.submit(command, on_reply)
            return
        self._on_changed(coordinator)
        if done == len(settlements):
            reply = _ONE_DONE if done == 1 else SettleReply((_DONE,) * done)
            coordinator.when_stored(lambda error: answer(on_reply, reply if error is None else error))
            return
        both = _Both(done, on_reply)
        coordinator.when_stored(both.stored)
        coordinator.submit(Settle(place, settlements[done:], consumer), both.decided)


def answer(on_reply: OnReply | None, reply: Any) -> None:
    if on_reply is not None:
        on_reply(reply)


class _Both:
    """A settlement of which some was done directly: it is answered when both parts are."""

    def __init__(self, done: int, on_reply: OnReply | None) -> None:
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
