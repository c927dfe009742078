"""Topics that are made because somebody publishes to them, where the setting `auto_create_topics` allows it: the same
for every API that publishes by name.
"""

from collections.abc import Callable, Collection

from goqueue.broker.broker import Broker
from goqueue.machines.controller_commands import CreateTopic, Result
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused

AT_ONCE_MAX = 10
"""For one request: whoever wants many topics can ask for them by name."""

OnReady = Callable[[dict[str, GoQueueError]], None]
"""Why topics could not be made, by name."""


def missing(broker: Broker, names: Collection[str]) -> list[str]:
    """Those that are not there and may be made; none, if topics are made on demand only."""
    if not broker.creates_topics:
        return []
    topics = broker.topics.image.topics
    return [name for name in dict.fromkeys(names) if name and name not in topics][:AT_ONCE_MAX]


def create_missing(broker: Broker, names: list[str], on_ready: OnReady) -> None:
    """Called once all of them are there, or cannot be. Somebody else may make the same ones meanwhile."""
    waiting = len(names)
    failed: dict[str, GoQueueError] = {}

    def created(name: str, reply: Result | GoQueueError) -> None:
        nonlocal waiting
        waiting -= 1
        if isinstance(reply, GoQueueError):
            failed[name] = reply
        elif reply.code not in (Code.NONE, Code.TOPIC_ALREADY_EXISTS):
            failed[name] = Refused(reply.code, reply.message)
        if not waiting:
            on_ready(failed)

    for name in names:
        command = CreateTopic(name, broker.topics.new_id(), broker.default_partitions)
        broker.topics.submit(command, lambda reply, name=name: created(name, reply))  # type: ignore[misc]
