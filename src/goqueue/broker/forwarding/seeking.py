"""Where groups read as queues in partitions that other nodes lead, and where they would be moved: leaders tell that to
the coordinator of the group, which moves all of it.
"""

from collections.abc import Sequence

import msgspec

from goqueue.broker.forwarding.calls import Call, OnDone
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.others import ask_others, first_error, good_ones
from goqueue.broker.forwarding.parts import Answered, Spot, check_leads, in_parts
from goqueue.broker.queues.promotion import OnStep, PromotionStep, step_here
from goqueue.broker.queues.queues import Queues
from goqueue.broker.queues.replay import OnMoved, Replays
from goqueue.machines.deliveries.commands import Place
from goqueue.model.errors import GoQueueError, NotReached
from goqueue.ports.forwarding import NotHere, Stop
from goqueue.records.replays import Moved, Where


class Look(msgspec.Struct, array_like=True):
    group_id: str
    topic: str
    where: Where
    partitions: list[int]


class StepThere(msgspec.Struct, array_like=True):
    step: PromotionStep
    spots: list[Spot]


LOOK: Call[Look, list[Moved]] = Call("look-at-places", Look, list[Moved])
PLACES: Call[str, list[Place]] = Call("places-of-group", str, list[Place])
STEP: Call[StepThere, Sequence[bool]] = Call("promotion-step", StepThere, list[bool])


class SpreadReplays:
    """What `Replays.look`, `Replays.places` and steps of a promotion do in a cluster."""

    def __init__(self, forwarding: Forwarding, replays: Replays, queues: Queues) -> None:
        self._forwarding = forwarding
        self._replays = replays
        self._queues = queues
        replays.elsewhere = self
        LOOK.serve(forwarding, self._serve_look)
        PLACES.serve(forwarding, self._serve_places)
        STEP.serve(forwarding, self._serve_step)

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
            on_looked(first_error(found) or good_ones(found))

        spots = [(topic, each) for each in partitions]
        in_parts(self._forwarding, spots, here, there, all_looked)

    def places(self, group_id: str, on_places: OnDone[list[Place]]) -> None:
        """An error, if one node cannot be asked: nobody knows then whether the group reads there."""
        here = list(self._queues.places(group_id))

        def told(replies: dict[int, list[Place] | GoQueueError]) -> None:
            found = [here, *good_ones(replies.values())]
            on_places(first_error(replies.values()) or [one for each in found for one in each])

        ask_others(self._forwarding, PLACES, group_id, told)

    def at_leaders(self, step: PromotionStep, spots: Sequence[Spot], on_done: OnStep) -> None:
        def here(part: list[int], answered: Answered[bool | GoQueueError]) -> None:
            chosen = [spots[each] for each in part]
            try:
                self._check_leads(chosen)
            except NotHere as error:  # not yet, or not any more
                answered(NotReached(str(error)))
            else:
                step_here(self._queues, step, chosen, answered)

        def there(node_id: int, part: list[int], answered: Answered[bool | GoQueueError]) -> None:
            STEP.ask(self._forwarding, node_id, StepThere(step, [spots[each] for each in part]), answered)

        def all_done(found: list[bool | GoQueueError]) -> None:
            on_done(first_error(found) or good_ones(found))

        in_parts(self._forwarding, spots, here, there, all_done)

    def _check_leads(self, spots: Sequence[Spot]) -> None:
        for spot in spots:
            check_leads(self._forwarding, *spot)

    def _serve_step(self, wanted: StepThere, _timeout_ms: int, on_reply: OnDone[Sequence[bool]]) -> Stop | None:
        self._check_leads(wanted.spots)
        step_here(self._queues, wanted.step, wanted.spots, on_reply)
        return None

    def _serve_look(self, wanted: Look, _timeout_ms: int, on_reply: OnDone[list[Moved]]) -> Stop | None:
        for partition in wanted.partitions:
            check_leads(self._forwarding, wanted.topic, partition)
        on_reply(self._replays.look_here(wanted.group_id, wanted.topic, wanted.where, wanted.partitions))
        return None

    def _serve_places(self, group_id: str, _timeout_ms: int, on_reply: OnDone[list[Place]]) -> Stop | None:
        on_reply(list(self._queues.places(group_id)))
        return None
