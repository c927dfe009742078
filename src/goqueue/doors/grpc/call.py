"""What every service is given: the broker, and a way to wait for its answers."""

from collections.abc import Callable
from typing import Protocol

from goqueue.broker.asking import Asking
from goqueue.broker.view.view import View
from goqueue.doors.grpc.errors import NOT_FOUND, GrpcError
from goqueue.model.topics import Topic
from goqueue.telemetry.calls import call_each
from goqueue.wire.grpc import common_pb2 as pb

PAGE_MAX = 1000


class Stopping:
    """Of the door, so of all its calls."""

    def __init__(self) -> None:
        self.is_stopping = False
        self.on_stop: dict[Callable[[], None], None] = {}
        """To be called when the node stops, by whoever would otherwise go on for ever."""

    def stop(self) -> None:
        self.is_stopping = True
        call_each(list(self.on_stop))


class Call(Asking):
    """One method, as one client may use it."""

    def __init__(self, broker: View, stopping: Stopping) -> None:
        self.broker = broker
        self.stopping = stopping

    @property
    def is_stopping(self) -> bool:
        return self.stopping.is_stopping

    @property
    def on_stop(self) -> dict[Callable[[], None], None]:
        return self.stopping.on_stop

    @property
    def now_ms(self) -> int:
        return self.broker.clock.now_ms()

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


class PageRequest(Protocol):
    @property
    def page_size(self) -> int: ...

    @property
    def page_token(self) -> str: ...


def page_of(request: PageRequest) -> tuple[str | None, int]:
    """Behind which name, and how many."""
    if not 0 <= request.page_size <= PAGE_MAX:
        raise GrpcError(f"page_size is {request.page_size}, but must be from 1 to {PAGE_MAX}, or 0")
    return request.page_token or None, request.page_size or PAGE_MAX
