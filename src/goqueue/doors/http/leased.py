"""Leased messages as JSON; and giving them back when there is nobody left to take them."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from goqueue.broker.queues.taking import LeasedPlace
from goqueue.doors.http.as_json import shown_record
from goqueue.doors.http.call import Call
from goqueue.machines.deliveries.commands import How, Place
from goqueue.model.errors import InvalidMoment
from goqueue.model.moments import format_moment, parse_duration_ms
from goqueue.wire.rest.common import Duration
from goqueue.wire.rest.groups import ReceivedMessage

WAIT_MS_MAX = 60_000
LEASE_MS_MAX = 12 * 3_600_000
BYTES_MAX = 8 * 1024 * 1024


def wait_ms_of(given: Duration) -> int:
    """What is too long is cut: a client that wants to wait for ever comes again."""
    return min(parse_duration_ms(given), WAIT_MS_MAX)


def lease_ms_of(given: Duration | None) -> int | None:
    if given is None:
        return None
    lease_ms = parse_duration_ms(given)
    if not 1 <= lease_ms <= LEASE_MS_MAX:
        raise InvalidMoment(f"a lease lasts from 1 ms to {LEASE_MS_MAX} ms, not {lease_ms} ms")
    return lease_ms


async def lease(
    call: Call,
    group_id: str,
    submit: Callable[[Callable[[Any], None]], object],
    found_in: Callable[[Any], Sequence[LeasedPlace]],
    nothing: Any,
) -> Any:
    """Wait for what `submit` leases. A client that has left meanwhile gets nothing: others do. When the node stops,
    whoever waits is told that there is nothing, and asks again elsewhere.
    """
    leased: list[Any] = []
    parked: list[Any] = []

    def keep(done: Callable[[Any], None]) -> object:
        def answer(reply: Any) -> None:
            leased.append(reply)
            done(reply)

        def stop() -> None:
            if not leased:
                for each in parked:
                    each.cancel()
                answer(nothing)

        call.on_stop[stop] = None
        stops.append(stop)
        waiting = submit(answer)
        if hasattr(waiting, "cancel"):
            parked.append(waiting)
        return waiting

    stops: list[Callable[[], None]] = []
    try:
        return await call.ask(keep)
    except asyncio.CancelledError:
        for reply in leased:
            for each in found_in(reply):
                _give_back(call, group_id, each)
        raise
    finally:
        for stop in stops:
            call.on_stop.pop(stop, None)
        leased.clear()  # what may be an error holds this frame


def _give_back(call: Call, group_id: str, leased: LeasedPlace) -> None:
    if leased.slices is not None:
        place = Place(group_id, leased.topic, leased.partition)
        call.broker.receiver.settle_runs(place, leased.slices.runs, leased.lease, How.UNDO)


def received(call: Call, group_id: str, found: Sequence[LeasedPlace]) -> list[ReceivedMessage]:
    """Raises what is wrong with a partition if no other has a message."""
    messages = [message for leased in found if leased.error is None for message in _messages_of(call, group_id, leased)]
    for leased in found:
        if leased.error is not None and not messages:
            try:
                raise leased.error.kept()
            finally:
                del leased, found  # the error holds this frame
    return messages


def _messages_of(call: Call, group_id: str, leased: LeasedPlace) -> list[ReceivedMessage]:
    place = Place(group_id, leased.topic, leased.partition)
    until = format_moment(leased.deadline_ms)
    return [
        ReceivedMessage(
            **shown_record(leased.partition, record),
            topic=leased.topic,
            delivery_count=run.attempt,
            receipt_handle=call.broker.settler.receipt(place, record.offset, leased.lease, leased.epoch),
            lease_until=until,
        )
        for record, run in call.broker.receiver.read(leased, group_id)
    ]
