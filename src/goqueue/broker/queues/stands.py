"""Where a group stands in its partitions, in a form that one node tells another: the coordinator of a group is asked,
and others may lead what it reads.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol

from goqueue.machines.deliveries.commands import Measure, Place, Stand
from goqueue.model.again import Again
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock

OnStands = Callable[[Sequence[Stand]], None]
PER_TURN = 50


class Measures(Protocol):
    """Of queues, in partitions that this node leads."""

    def measure(self, place: Place) -> Measure: ...

    def replica(self, place: Place) -> Replica: ...


def stand_of(queues: Measures, place: Place) -> Stand:
    """In one partition that this node leads."""
    try:
        replica = queues.replica(place)
        measure = queues.measure(place)
    except GoQueueError as error:
        # A partition that the group has not read yet has no offset, and that is no error.
        is_new = code_of(error) is Code.GROUP_ID_NOT_FOUND
        code, message = (Code.NONE, "") if is_new else (code_of(error), str(error))
        return Stand(place.topic, place.partition, code=code, message=message)
    unsettled = sum(measure.ready) + sum(measure.leased) + measure.waiting + measure.held + measure.dead
    lag = unsettled + max(0, replica.high_watermark - measure.end_offset)
    return Stand(place.topic, place.partition, measure.start_offset, replica.leader_epoch, lag)


def stands_of(queues: Measures, places: Sequence[Place], clock: Clock, on_stands: OnStands) -> None:
    """In some partitions that this node leads. Many are looked at in turns, since others want to be served too."""
    rest = iter(places)
    found: list[Stand] = []

    def turn(again: Again) -> None:
        found.extend(stand_of(queues, place) for place in islice(rest, PER_TURN))
        if len(found) < len(places):
            clock.call_soon(again)
        else:
            on_stands(found)

    Again(turn)()
