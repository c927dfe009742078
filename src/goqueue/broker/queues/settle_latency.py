"""How long it takes until an acknowledgement is durable."""

from typing import Final

from goqueue.machines.deliveries.commands import How, Settle, SettleReply
from goqueue.model.errors import GoQueueError
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.clock import Clock
from goqueue.telemetry.meters import Meters

_TYPES: Final = {How.ACK: "ack", How.RETRY: "nack", How.REJECT: "reject", How.EXTEND: "extend"}
"""Others are no wish of a consumer."""


def measured_settle(
    command: Settle, on_reply: OnReply[SettleReply], meters: Meters, clock: Clock
) -> OnReply[SettleReply]:
    how = _TYPES.get(command.settlements[0].how) if command.settlements else None
    if how is None:
        return on_reply
    started_s, topic = clock.monotonic_s(), command.place.topic

    def replied(reply: SettleReply | GoQueueError) -> None:
        if not isinstance(reply, GoQueueError):
            meters.settled(topic, how, clock.monotonic_s() - started_s)
        on_reply(reply)

    return replied
