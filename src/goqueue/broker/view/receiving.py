"""Receives that wait, of clients whose rights may be taken away meanwhile."""

from collections.abc import Callable
from typing import Any

from goqueue.broker.queues.receive import OnLeased, Receiver
from goqueue.broker.queues.taking import LeasedPlace, Parked, ReceiveRequest
from goqueue.broker.view.ports import Port
from goqueue.broker.view.scope import Scope
from goqueue.machines.deliveries.commands import How, Place
from goqueue.model.access import Kind
from goqueue.model.errors import GoQueueError


class ReceiverPort(Port):
    def __getattr__(self, name: str) -> Any:
        found, scope = super().__getattr__(name), self._scope
        if name != "receive" or all(map(scope.is_open_to, (Kind.TOPIC, Kind.GROUP))):
            return found

        def receive(request: ReceiveRequest, on_leased: OnLeased) -> Parked | None:
            return Waiting(self._service, scope, request, on_leased).start(found)

        self.__dict__[name] = receive
        return receive


class Waiting:
    """It ends when all that it waits for may not be read any more, and leases nothing for whoever may not read it."""

    def __init__(self, receiver: Receiver, scope: Scope, request: ReceiveRequest, on_leased: OnLeased) -> None:
        self._receiver = receiver
        self._scope = scope
        self._request = request
        self._on_leased = on_leased
        self._rights = scope.rights
        self._parked: Parked | None = None
        self.is_over = False

    def start(self, receive: Callable[[ReceiveRequest, OnLeased], Parked | None]) -> Parked | None:
        parked = receive(self._request, self._leased)
        if parked is None or self.is_over:
            return parked
        self._parked = parked
        self._scope.on_renewed[self._renewed] = None
        return self

    def cancel(self) -> None:
        parked = self._parked
        self._end()
        if parked is not None:
            parked.cancel()

    def _end(self) -> None:
        self.is_over, self._parked = True, None  # each of the two holds the other
        self._scope.on_renewed.pop(self._renewed, None)

    def _renewed(self) -> None:
        """Others are told of their rights first."""
        self._receiver.clock.call_soon(self._look_again)

    def _look_again(self) -> None:
        if self.is_over:
            return
        told = [LeasedPlace(topic, partition, self._refusal(topic)) for topic, partition in self._request.places]
        if all(each.error is not None for each in told):
            self.cancel()
            self._on_leased(told)

    def _leased(self, found: list[LeasedPlace]) -> None:
        self._end()
        has_changed = self._scope.rights is not self._rights
        self._on_leased([self._allowed(each) for each in found] if has_changed else found)

    def _allowed(self, leased: LeasedPlace) -> LeasedPlace:
        """What may not be read is given back, as if it had not been leased."""
        refusal = None if leased.error is not None else self._refusal(leased.topic)
        if refusal is None:
            return leased
        if leased.slices is not None:
            full = self._scope.tenancy.full
            place = Place(full(self._request.group_id), full(leased.topic), leased.partition)
            self._receiver.settle_runs(place, leased.slices.runs, leased.lease, How.UNDO)
        return LeasedPlace(leased.topic, leased.partition, refusal)

    def _refusal(self, topic: str) -> GoQueueError | None:
        try:
            self._scope.admit(Kind.GROUP, self._request.group_id)
            self._scope.admit(Kind.TOPIC, topic)
        except GoQueueError as error:
            return error.kept()
        return None
