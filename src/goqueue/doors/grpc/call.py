"""What every service is given: the broker, and a way to wait for its answers."""

import asyncio
from collections.abc import Callable
from typing import Any

from goqueue.broker.broker import Broker
from goqueue.doors.grpc.errors import NOT_FOUND, GrpcError
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.topics import Topic
from goqueue.wire.grpc import common_pb2 as pb


class Call:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.is_stopping = False
        self.on_stop: set[Callable[[], None]] = set()
        """To be called when the node stops, by whoever would otherwise go on for ever."""

    @property
    def now_ms(self) -> int:
        return self.broker.clock.now_ms()

    def stop(self) -> None:
        self.is_stopping = True
        for call in list(self.on_stop):
            call()

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
            raise GrpcError(f"there is no topic {name!r}", NOT_FOUND, pb.ERROR_CODE_TOPIC_NOT_FOUND)
        return topic

    def partition(self, topic: str, partition: int) -> int:
        if not 0 <= partition < self.topic(topic).partitions:
            words = f"there is no partition {partition} of {topic!r}"
            raise GrpcError(words, NOT_FOUND, pb.ERROR_CODE_PARTITION_NOT_FOUND)
        return partition


def named(name: str, given: str) -> str:
    if not given:
        raise GrpcError(f"{name} is missing")
    return given
