"""A queue group takes over from its fork: in every partition, then its options, and only then is the fork dropped. So a
promotion that fails, or whose node dies, leaves the fork whole, and may be asked for again.

In a cluster the node that is asked leads all of it, and each step is done by the leaders of partitions. A step does
nothing where it was done before.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from goqueue.broker.queues.companions import Spot
from goqueue.broker.queues.queue_groups import for_each
from goqueue.broker.queues.queues import Queues
from goqueue.broker.queues.restoring import drop_at, take_over_at
from goqueue.machines.deliveries.commands import Place
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.group_options import FORK_OF
from goqueue.model.refusal import Refused


class PromotionStep(msgspec.Struct, array_like=True, frozen=True):
    fork_id: str
    group_id: str | None
    """Who takes over what the fork has settled. None: the fork is dropped."""


OnStep = Callable[[Sequence[bool] | GoQueueError], None]
"""Given, for each partition, whether the fork reads there; or the first error of any."""
AtLeaders = Callable[[PromotionStep, Sequence[Spot], OnStep], None]
"""Do a step in these partitions."""


def step_here(queues: Queues, step: PromotionStep, spots: Sequence[Spot], on_done: OnStep) -> None:
    """In partitions that this node leads."""
    found: dict[Spot, bool] = {}

    def one(spot: Spot, done: Callable[[object], None]) -> None:
        def told(reply: bool | GoQueueError) -> None:
            if not isinstance(reply, GoQueueError):
                found[spot] = reply
            done(reply)

        if step.group_id is None:
            drop_at(queues, Place(step.fork_id, *spot), told)
        else:
            take_over_at(queues, Place(step.group_id, *spot), step.fork_id, told)

    if step.group_id is None:
        queues.forget(step.fork_id)
    for_each(spots, one, lambda error: on_done(error or [found[spot] for spot in spots]))


class Promotion:
    """`spots`: all partitions of the topics that the fork reads. `places`: where it is known to read."""

    def __init__(
        self,
        queues: Queues,
        at_leaders: AtLeaders,
        names: tuple[str, str],
        spots: Sequence[Spot],
        places: Sequence[Place],
        on_done: Callable[[GoQueueError | None], None],
    ) -> None:
        self._queues = queues
        self._at_leaders = at_leaders
        self._fork_id, self._group_id = names
        self._spots = spots
        self._known = {(place.topic, place.partition) for place in places}
        self._on_done = on_done

    def start(self) -> None:
        self._at_leaders(PromotionStep(self._fork_id, self._group_id), self._spots, self._copied)

    def _copied(self, found: Sequence[bool] | GoQueueError) -> None:
        if isinstance(found, GoQueueError):
            self._on_done(found)
            return
        lost = sorted(self._known - {spot for spot, is_there in zip(self._spots, found, strict=True) if is_there})
        if lost:
            topic, partition = lost[0]
            words = f"{self._fork_id!r} has just been changed in {topic}/{partition}; it was not dropped, try again"
            self._on_done(Refused(Code.LEADER_NOT_AVAILABLE, words))
            return
        kept = self._queues.kept_options(self._fork_id)
        if kept:
            options = {**kept, FORK_OF: self._queues.origin(self._group_id)}
            self._queues.replace_options(self._group_id, options, partial(self._then, self._drop))
        else:  # a promotion that was not finished has forgotten them: the group has them
            self._drop()

    def _drop(self) -> None:
        self._at_leaders(PromotionStep(self._fork_id, None), self._spots, partial(self._then, self._forget))

    def _forget(self) -> None:
        if self._queues.kept_options(self._fork_id):
            self._queues.replace_options(self._fork_id, {}, partial(self._then, lambda: self._on_done(None)))
        else:
            self._on_done(None)

    def _then(self, follow: Callable[[], None], reply: object) -> None:
        if isinstance(reply, GoQueueError):
            self._on_done(reply)
        else:
            follow()
