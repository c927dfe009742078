"""Leaders give their place to another copy that has everything: when their node stops, when the preferred leader is
back, when a partition moves. For a moment nothing is appended, so that the other one can reach the end; whoever wants
to append meanwhile waits, and goes where the next leader is. That moment is as long as a transaction of its own group
takes: the others take writes until it is their turn.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from goqueue.cluster.elections import partition_of
from goqueue.cluster.store import Store
from goqueue.machines.cluster.election import hand_over, joined
from goqueue.machines.cluster.steward import heir_of_removed, preferred
from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import Committed, Conflict, Step
from goqueue.model.topics import Image
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.runtime.clock import Clock
from goqueue.telemetry.logs import get_logger

AT_ONCE = 20
AT_ONCE_WHEN_LEAVING = 60
"""As many as one transaction takes."""
SIDE_BY_SIDE = 8
"""Groups of a node that stops. A connection of Kafka is answered in order, so a producer that meets a group after the
other would wait for all of them, one after the other."""
AT_ONCE_WHEN_IDLE = 60
"""Of what nobody has appended to lately. It comes last, one group at a time, as slowly as there is time for: every
change of a leader takes time on all nodes from those that are being served."""
IDLE_PAUSE_S_MAX = 0.25
"""Between two such groups."""
SETTLING_S = 0.5
"""Before the first of them: clients look for the next leaders of what they write to, and connect to them."""
UNHURRIED = 0.75
"""Of the time for a stop: what is left then is handed over at once."""
REST_S_MAX = 0.2
"""How long appends wait for a copy that may not get to the end."""
PATIENCE_S = 0.03
"""How long those that could be handed over wait for the others that rest with them."""
LOOK_S = 0.002
BALANCE_S = 10.0
BALANCE_S_MIN = 1.0
SETTLED_S = 30.0
"""The preferred leader has been in sync for so long."""
FIRST_EPOCH = 0
TRIES = 3
"""A stop goes through what it leads so often: something may have come between."""

events = get_logger("cluster")

Place = tuple[str, int]


class InSync(Protocol):
    """What a leader knows of the other copies."""

    def is_at_end(self, host: Replica, follower: int) -> bool:
        """Whether this member of the ISR has all that the leader has, in companions too."""

    def is_settled(self, host: Replica) -> bool:
        """Whether all members have: nobody waits for an acknowledgement any more."""

    def is_busy(self, host: Replica) -> bool:
        """Whether something was appended lately, to companions too."""

    def copies_of(self, host: Replica) -> list[Replica]:
        """The partition and its companions."""


class Move(NamedTuple):
    replica: Replica
    targets: tuple[int, ...]
    """In order of preference."""


class HandingOver:
    def __init__(
        self, store: Store, image: Callable[[], Image], replicas: Replicas, in_sync: InSync, clock: Clock
    ) -> None:
        self._store = store
        self._image = image
        self._replicas = replicas
        self._in_sync = in_sync
        self._clock = clock
        self._back_since: dict[Place, float] = {}
        self._has_changed = asyncio.Event()

    def image_changed(self) -> None:
        """The metadata is another: somebody may have come in sync that should lead."""
        self._has_changed.set()

    def _led(self) -> list[Replica]:
        return [one for one in self._replicas.hosts() if one.role.is_leader and one.log.failure is None]

    async def all(self, within_s: float) -> int:
        """Everything that another node can lead. Returns how much that was. `within_s`: how long it may take."""
        moved, hurry_s = 0, self._clock.monotonic_s() + within_s * UNHURRIED
        for _ in range(TRIES):
            moves = list(self._given_up())
            if not moves:
                break
            busy = [move for move in moves if self._in_sync.is_busy(move.replica)]
            idle = [move for move in moves if not self._in_sync.is_busy(move.replica)]
            moved += await self._leave(busy)
            if busy and idle:
                await asyncio.sleep(SETTLING_S)
            moved += await self._leave_slowly(idle, hurry_s)
        _tell(moved)
        return moved

    async def _leave(self, moves: Sequence[Move]) -> int:
        groups = iter(_groups(moves, AT_ONCE_WHEN_LEAVING))
        moved = 0

        async def one_after_the_other() -> None:
            nonlocal moved
            for group in groups:
                moved += await self._move_some(group, leaves=True)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(SIDE_BY_SIDE):
                tasks.create_task(one_after_the_other())
        return moved

    async def _leave_slowly(self, moves: Sequence[Move], hurry_s: float) -> int:
        """As long as there is time for it."""
        moved, groups = 0, _groups(moves, AT_ONCE_WHEN_IDLE)
        for number, group in enumerate(groups):
            if self._clock.monotonic_s() >= hurry_s:
                return moved + await self._leave([move for left in groups[number:] for move in left])
            moved += await self._move_some(group, leaves=True)
            if coming := len(groups) - number - 1:
                left_s = hurry_s - self._clock.monotonic_s()
                await asyncio.sleep(min(max(0.0, left_s / coming), IDLE_PAUSE_S_MAX))
        return moved

    def _given_up(self) -> Iterable[Move]:
        image = self._image()
        for replica in self._led():
            placement = image.placement(*replica.place)
            others = (one for one in placement.replicas if one != placement.leader and one in placement.isr)
            targets = tuple(one for one in others if one in image.nodes)
            if targets:
                yield Move(replica, targets)

    async def keep_balanced(self) -> None:
        """For as long as the node serves."""
        while True:
            await asyncio.sleep(BALANCE_S_MIN)
            with suppress(TimeoutError):
                async with asyncio.timeout(BALANCE_S - BALANCE_S_MIN):
                    await self._has_changed.wait()
            self._has_changed.clear()
            moves = list(self._wanted())
            moved = 0
            for first in range(0, len(moves), AT_ONCE):
                moved += await self._move_some(moves[first : first + AT_ONCE], leaves=False)
            _tell(moved)

    def _wanted(self) -> Iterable[Move]:
        image, now_s = self._image(), self._clock.monotonic_s()
        since: dict[Place, float] = {}
        for replica in self._led():
            placement = image.placement(*replica.place)
            heir = heir_of_removed(placement, image.nodes)
            first = preferred(placement, image.nodes)
            if heir is not None:
                yield Move(replica, (heir,))
            elif first is not None:
                # In its first epoch a partition is led by whoever was there when it was made, as all ledgers are by the
                # first node. Nobody has failed since, and it comes to this only once: there is nothing to wait for.
                settled_s = 0.0 if placement.epoch == FIRST_EPOCH else SETTLED_S
                at_s = since[replica.place] = self._back_since.get(replica.place, now_s)
                if now_s - at_s >= settled_s:
                    yield Move(replica, (first,))
        self._back_since = since

    async def _move_some(self, moves: Sequence[Move], *, leaves: bool) -> int:
        for each in moves:
            self._rest(each)
        left, moved, since_s = list(moves), 0, self._clock.monotonic_s()
        try:
            while left and (waited_s := self._clock.monotonic_s() - since_s) < REST_S_MAX:
                for gone in [move for move in left if not move.replica.role.is_leader]:
                    left.remove(gone)
                    self._go_on(gone)
                ready = [(move, target) for move in left if (target := self._target(move)) is not None]
                is_late = waited_s >= PATIENCE_S
                settled = [one for one in ready if is_late or self._in_sync.is_settled(one[0].replica)]
                if settled and (is_late or len(settled) == len(left)):
                    moved += await self._hand_over(settled, leaves=leaves)
                    for move, _ in settled:
                        left.remove(move)
                        self._go_on(move)
                else:
                    await asyncio.sleep(LOOK_S)
        finally:
            for move in left:
                self._go_on(move)
        return moved

    def _rest(self, move: Move) -> None:
        for copy in self._in_sync.copies_of(move.replica):
            copy.rest()

    def _go_on(self, move: Move) -> None:
        for copy in self._in_sync.copies_of(move.replica):
            copy.go_on()

    async def _hand_over(self, ready: Sequence[tuple[Move, int]], *, leaves: bool) -> int:
        image = self._image()
        steps = [
            hand_over(partition_of(image, move.replica), image.nodes, target, leaves=leaves) for move, target in ready
        ]
        wanted = [step for step in steps if step is not None]
        if not wanted:
            return 0
        outcome = await self._txn(joined(wanted))
        if isinstance(outcome, Committed):
            return len(wanted)
        if not isinstance(outcome, Conflict) or len(wanted) == 1:
            return 0  # nobody knows: the metadata tells
        # One of them was decided from what has changed. The others wait no longer than one transaction takes.
        outcomes = await asyncio.gather(*(self._txn(step) for step in wanted))
        return sum(isinstance(each, Committed) for each in outcomes)

    def _target(self, move: Move) -> int | None:
        return next((target for target in move.targets if self._in_sync.is_at_end(move.replica, target)), None)

    async def _txn(self, step: Step) -> Committed | Conflict | GoQueueError:
        answer: asyncio.Future[Committed | Conflict | GoQueueError] = asyncio.get_running_loop().create_future()

        def done(outcome: Committed | Conflict | GoQueueError) -> None:
            if not answer.done():
                answer.set_result(outcome)

        self._store.txn(step, done)
        return await answer


def _groups(moves: Sequence[Move], size: int) -> list[Sequence[Move]]:
    return [moves[first : first + size] for first in range(0, len(moves), size)]


def _tell(moved: int) -> None:
    if moved:
        events.info("leaderships handed over", partitions=moved)
