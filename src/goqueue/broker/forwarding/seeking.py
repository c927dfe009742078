"""Where groups read as queues in partitions that other nodes lead, and where they would be moved: leaders tell that to
the coordinator of the group, which moves all of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from goqueue.broker.forwarding.calls import Call
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.parts import Answered, InParts
from goqueue.broker.queues.queues import Place, Queues
from goqueue.broker.queues.replay import OnMoved, Replays
from goqueue.model.errors import GoQueueError
from goqueue.ports.forwarding import NotHere, Stop
from goqueue.records.replays import Moved, Where


class Look(msgspec.Struct, array_like=True):
    group_id: str
    topic: str
    where: Where
    partitions: list[int]


LOOK: Call[Look, list[Moved]] = Call("look-at-places", Look, list[Moved])
PLACES: Call[str, list[Place]] = Call("places-of-group", str, list[Place])


class SpreadReplays:
    """What `Replays.look` and `Replays.places` do in a cluster."""

    def __init__(self, forwarding: Forwarding, replays: Replays, queues: Queues) -> None:
        self._forwarding = forwarding
        self._replays = replays
        self._queues = queues
        replays.elsewhere = self
        LOOK.serve(forwarding, self._serve_look)
        PLACES.serve(forwarding, self._serve_places)

    def look(self, group_id: str, topic: str, where: Where, partitions: Sequence[int], on_looked: OnMoved) -> None:
        def chosen(part: list[int]) -> list[int]:
            return [partitions[each] for each in part]

        def here(part: list[int], answered: Answered[Moved | GoQueueError]) -> None:
            try:
                answered(self._replays.look_here(group_id, topic, where, chosen(part)))
            except GoQueueError as error:
                answered(error.kept())

        def there(node_id: int, part: list[int], answered: Answered[Moved | GoQueueError]) -> None:
            LOOK.ask(self._forwarding, node_id, Look(group_id, topic, where, chosen(part)), answered)

        def all_looked(found: list[Moved | GoQueueError]) -> None:
            wrong = next((each for each in found if isinstance(each, GoQueueError)), None)
            on_looked(wrong or [each for each in found if isinstance(each, Moved)])

        spots = [(topic, each) for each in partitions]
        InParts(self._forwarding, spots, here, there, lambda _number, error: error, all_looked).start()

    def places(self, group_id: str, on_places: Callable[[list[Place] | GoQueueError], None]) -> None:
        """An error, if one node cannot be asked: nobody knows then whether the group reads there."""
        others = self._forwarding.homes.others()
        replies: list[list[Place] | GoQueueError] = [list(self._queues.places(group_id))]

        def told(reply: list[Place] | GoQueueError) -> None:
            replies.append(reply)
            if len(replies) > len(others):
                wrong = next((each for each in replies if isinstance(each, GoQueueError)), None)
                on_places(wrong or [one for each in replies if not isinstance(each, GoQueueError) for one in each])

        if not others:
            on_places([one for each in replies if not isinstance(each, GoQueueError) for one in each])
        for node_id in others:
            PLACES.ask(self._forwarding, node_id, group_id, told)

    def _serve_look(self, wanted: Look, _timeout_ms: int, on_reply: Callable[[Any], None]) -> Stop | None:
        homes = self._forwarding.homes
        if not all(homes.leads(wanted.topic, each) for each in wanted.partitions):
            raise NotHere(f"{wanted.topic} is not led here")
        on_reply(self._replays.look_here(wanted.group_id, wanted.topic, wanted.where, wanted.partitions))
        return None

    def _serve_places(self, group_id: str, _timeout_ms: int, on_reply: Callable[[Any], None]) -> Stop | None:
        on_reply(list(self._queues.places(group_id)))
        return None
