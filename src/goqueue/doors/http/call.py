"""What a handler is given: the broker, and a way to wait for its answers."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from goqueue.broker.asking import Asking
from goqueue.broker.topics.auto_creation import create_missing, missing
from goqueue.broker.view.view import View
from goqueue.doors.http.errors import NOT_FOUND, HttpError
from goqueue.model.accounts import ANONYMOUS
from goqueue.model.console import Console
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.topics import Topic
from goqueue.ports.forwarding import Forwarding
from goqueue.replica.replica import Replica


@dataclass(frozen=True)
class Call(Asking):
    broker: View
    started_ms: int
    """When the door was opened."""
    version: str
    forwarding: Forwarding | None = None
    """The way to other nodes, in a cluster."""
    principal: str = ANONYMOUS
    """Who asks."""
    host: str = ""
    """From where, if there are rules about addresses."""
    console: Console = Console.ON
    """What its pages are good for."""
    on_stop: dict[Callable[[], None], None] = field(default_factory=dict)
    """To be called when the node stops, by whoever would otherwise go on for ever."""

    @property
    def now_ms(self) -> int:
        return self.broker.clock.now_ms()

    def topic(self, name: str) -> Topic:
        topic = self.broker.topics.image.topics.get(name)
        if topic is None:
            raise HttpError(NOT_FOUND, "UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {name!r}")
        return topic

    async def topic_to_publish_to(self, name: str) -> Topic:
        """As `topic`, but it is made if there is none, where the settings allow it."""
        wanted = missing(self.broker, (name,))
        if wanted:
            failed: dict[str, GoQueueError] = await self.ask(lambda done: create_missing(self.broker, wanted, done))
            for error in failed.values():
                raise error.kept()
        return self.topic(name)

    def led(self, topic: Topic) -> list[int]:
        """The partitions of a topic that this node looks after: on one node, all."""
        return self.broker.topics.led(topic.name, range(topic.partitions))

    def replicas(self, topic: Topic) -> dict[int, Replica]:
        """The partitions of a topic that are in service."""
        found = {}
        for number in self.led(topic):
            with suppress(Refused):
                found[number] = self.broker.topics.replica(topic.name, number)
        return found
