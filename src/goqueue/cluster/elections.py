"""Partitions without a living leader get one: of the replicas in sync that are alive, the first stands at once, the
next if nothing has changed a while later. Nobody else need agree: the step compares all that it was decided from.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from goqueue.cluster.controller import ClusterController
from goqueue.machines.cluster.election import (
    Partition,
    elect,
    has_leader,
    heirs,
    joined,
    stand_after_ms,
    together,
)
from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import ClusterKey, Committed, Conflict, PartitionKey, Step
from goqueue.model.placements import NOWHERE
from goqueue.model.topics import Image
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas, Seat
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.logs import get_logger

UNDER_WAY_MAX = 8
"""Transactions at once."""
AGAIN_MS = 100
"""After a transaction of which nobody knows whether it was done."""

events = get_logger("cluster")

Place = tuple[str, int]


class Standing(Protocol):
    """What replication knows of a copy."""

    def is_electable(self, replica: Replica) -> bool: ...

    def withdraw(self, replica: Replica) -> None:
        """No fetch of this node speaks for it any more."""


class _Leaderless(NamedTuple):
    since_s: float
    revision: int
    heirs: tuple[int, ...]


class Elections:
    """`start` when copies are open; told of every change of the metadata."""

    def __init__(
        self,
        controller: ClusterController,
        image: Callable[[], Image],
        replicas: Replicas,
        standing: Standing,
        clock: Clock,
    ) -> None:
        self._controller = controller
        self._image = image
        self._replicas = replicas
        self._standing = standing
        self._clock = clock
        self._leaderless: dict[Place, _Leaderless] = {}
        self._under_way: dict[Place, None] = {}
        self._alone: dict[Place, None] = {}
        """Stood in a transaction with others that came to nothing: next time by itself."""
        self._rounds: deque[list[tuple[Place, Step]]] = deque()
        self._transactions = 0
        self._timer: Timer | None = None
        self._due: dict[Place, None] = {}
        """To be looked at again, though their placement is as it was."""
        self._seen: tuple[Image, Seat | None] = Image(), None
        self._is_due = False
        self._is_stopped = False
        self.won = 0
        """Elections of this node."""

    def start(self) -> None:
        self._controller.on_change.append(self.look_soon)
        self._replicas.on_role.append(self._role_changed)
        self.look_soon()

    def _role_changed(self, replica: Replica) -> None:
        self._due[replica.place] = None
        self.look_soon()

    def stop(self) -> None:
        """This node stands for nothing any more."""
        self._is_stopped = True
        self._rounds.clear()
        if self._timer is not None:
            self._timer.cancel()

    def look_soon(self) -> None:
        if not self._is_due and not self._is_stopped:
            self._is_due = True
            self._clock.call_soon(self._look)

    def _look(self) -> None:
        self._is_due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        image, seat = self._image(), self._replicas.seat
        me = None if seat is None else image.nodes.get(seat.node_id)
        if self._is_stopped or me is None or seat is None or me.incarnation != seat.incarnation:
            return
        if self._controller.mirror.cluster.halted:
            return
        now_s = self._clock.monotonic_s()
        seen: dict[Place, _Leaderless] = {}
        due: list[tuple[Place, Step]] = []
        next_s: float | None = None
        for replica in self._to_look_at(image, seat):
            place = replica.place
            placement = image.placement(*place)
            if place in self._under_way or has_leader(placement, image.nodes):
                continue
            order = tuple(heirs(placement, image.nodes))
            known = self._leaderless.get(place)
            if known is None or (known.revision, known.heirs) != (placement.revision, order):
                known = _Leaderless(now_s, placement.revision, order)
            seen[place] = known
            is_doubtful = not self._standing.is_electable(replica)
            wait_ms = stand_after_ms(placement, image.nodes, seat.node_id, is_doubtful=is_doubtful)
            if wait_ms is None or replica.log.failure is not None:
                continue
            at_s = known.since_s + wait_ms / 1000
            if at_s <= now_s:
                due.append((place, self._stand(image, replica)))
            else:
                next_s = at_s if next_s is None else min(next_s, at_s)
        self._leaderless = seen
        self._begin(due)
        if next_s is not None:
            self._timer = self._clock.call_after((next_s - now_s) * 1000 + 1, self.look_soon)

    def _to_look_at(self, image: Image, seat: Seat) -> list[Replica]:
        """Nodes that have come or gone concern everything; else it is a few among thousands."""
        (before, was), self._seen = self._seen, (image, seat)
        due, self._due = self._due, {}
        if before.nodes is not image.nodes or was != seat:
            return self._replicas.hosts()
        places = dict.fromkeys([*image.placed_anew(before), *self._leaderless, *due])
        found = (self._replicas.find(*place) for place in places if image.placement(*place) is not NOWHERE)
        return [replica for replica in found if replica is not None]

    def _stand(self, image: Image, replica: Replica) -> Step:
        self._standing.withdraw(replica)
        assert self._replicas.seat is not None
        cluster = self._controller.mirror.revision_of(ClusterKey())
        return elect(partition_of(image, replica), image.nodes, self._replicas.seat.node_id, cluster)

    # -- transactions

    def _begin(self, due: Sequence[tuple[Place, Step]]) -> None:
        self._under_way.update(dict.fromkeys(place for place, _ in due))
        lone = [one for one in due if one[0] in self._alone]
        many = [one for one in due if one[0] not in self._alone]
        by_step = {id(step): place for place, step in many}
        for steps in together([step for _, step in many]):
            self._rounds.append([(by_step[id(step)], step) for step in steps])
        self._rounds.extend([one] for one in lone)
        self._go_on()

    def _go_on(self) -> None:
        while self._rounds and self._transactions < UNDER_WAY_MAX:
            batch = self._rounds.popleft()
            self._transactions += 1
            self._controller.txn(joined(step for _, step in batch), partial(self._done, [place for place, _ in batch]))

    def _done(self, places: Sequence[Place], outcome: Committed | Conflict | GoQueueError) -> None:
        self._transactions -= 1
        for place in places:
            self._under_way.pop(place, None)
            self._alone.pop(place, None)
            self._due[place] = None
        if isinstance(outcome, Committed):
            self.won += len(places)
            events.info("elected", partitions=len(places), first=f"{places[0][0]}/{places[0][1]}")
        else:
            if len(places) > 1:
                self._alone.update(dict.fromkeys(places))
            if isinstance(outcome, Conflict):
                self.look_soon()
            else:
                # Read before it is decided anew. A key that has not changed says nothing: the request may still
                # arrive, and does what is asked for then; the next one finds its compare broken.
                self._clock.call_after(AGAIN_MS, lambda: self._controller.reread(self.look_soon))
        self._go_on()


def partition_of(image: Image, replica: Replica) -> Partition:
    """As the image has it."""
    topic, number = replica.place
    known = image.find(topic)
    assert known is not None, replica.name
    minimum = replica.options.min_insync_replicas
    return Partition(PartitionKey(known.id, number), image.placement(topic, number), minimum)
