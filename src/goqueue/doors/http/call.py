"""What a handler is given: the broker, and a way to wait for its answers."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from goqueue.broker.broker import Broker
from goqueue.broker.topics import Replica
from goqueue.doors.http.errors import NOT_FOUND, HttpError
from goqueue.doors.http.operation import Operation
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.topics import Topic


@dataclass(frozen=True)
class Call:
    broker: Broker
    started_ms: int
    """When the door was opened."""
    version: str
    operations: Sequence[Operation]
    """All that this door does."""
    on_stop: set[Callable[[], None]] = field(default_factory=set)
    """To be called when the node stops, by whoever would otherwise go on for ever."""

    @property
    def now_ms(self) -> int:
        return self.broker.clock.now_ms()

    async def ask(self, submit: Callable[[Callable[[Any], None]], object]) -> Any:
        """Wait for what a call of the broker gives to its callback; raise it if it is an error of ours. What the call
        returns is cancelled with the wait, if it can be: nobody shall be leased what nobody waits for.
        """
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answer(reply: Any) -> None:
            if not future.done():
                future.set_result(reply)

        parked = submit(answer)
        try:
            reply = await future
        except asyncio.CancelledError:
            if hasattr(parked, "cancel"):
                parked.cancel()
            raise
        if isinstance(reply, GoQueueError):
            raise reply
        return reply

    async def order(self, submit: Callable[[Callable[[Any], None]], object]) -> Any:
        """As `ask`, for calls whose reply has a code: raises if that says no."""
        reply = await self.ask(submit)
        if reply.code is not Code.NONE:
            raise Refused(reply.code, getattr(reply, "message", "") or "")
        return reply

    def topic(self, name: str) -> Topic:
        topic = self.broker.topics.image.topics.get(name)
        if topic is None:
            raise HttpError(NOT_FOUND, "UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {name!r}")
        return topic

    def replicas(self, topic: Topic) -> dict[int, Replica]:
        """The partitions of a topic that are in service."""
        found = {}
        for number in range(topic.partitions):
            with suppress(Refused):
                found[number] = self.broker.topics.replica(topic.name, number)
        return found
