"""Setting a group back or forth, however it reads: by committed offsets, as a queue, or both."""

from collections.abc import Callable, Sequence
from typing import Protocol

from goqueue.broker.groups.groups import Groups
from goqueue.broker.queues.replay import Replays
from goqueue.machines.deliveries.commands import Place
from goqueue.machines.groups import commands
from goqueue.model.errors import GoQueueError
from goqueue.records.replays import Moved, Where

OnReset = Callable[[list[Moved] | GoQueueError], None]


class HasReplays(Protocol):
    """Of a broker."""

    @property
    def groups(self) -> Groups: ...

    @property
    def replays(self) -> Replays: ...


class Reset:
    """One move of one group in one topic. `partitions` None: all of them."""

    def __init__(
        self,
        broker: HasReplays,
        group_id: str,
        topic: str,
        where: Where,
        partitions: Sequence[int] | None = None,
        *,
        is_dry_run: bool = False,
        is_live: bool = False,
    ) -> None:
        self._broker = broker
        self._group_id = group_id
        self._topic = topic
        self._where = where
        self._partitions = partitions
        self._is_dry_run = is_dry_run
        self._is_live = is_live
        self._moves: dict[int, Moved] = {}

    def run(self, on_done: OnReset) -> None:
        def placed(places: list[Place] | GoQueueError) -> None:
            if isinstance(places, GoQueueError):
                on_done(places)
            elif any(place.topic == self._topic for place in places):
                self._broker.groups.listed([self._group_id], listed)
            else:
                self._move_stream(on_done, is_queue=False)

        def listed(found: list[commands.ListedGroup] | GoQueueError) -> None:
            if isinstance(found, GoQueueError):
                on_done(found)
            # A group that only ever read as a queue has no offsets, and shall not get any.
            elif any(each.type != commands.SHARE for each in found):
                self._move_stream(on_done, is_queue=True)
            else:
                self._move_queue(on_done)

        self._broker.replays.places(self._group_id, placed)

    def _move_stream(self, on_done: OnReset, *, is_queue: bool) -> None:
        def moved(found: list[Moved] | GoQueueError) -> None:
            if isinstance(found, GoQueueError):
                on_done(found)
                return
            self._moves.update((each.partition, each) for each in found)
            if is_queue:
                self._move_queue(on_done)
            else:
                on_done(sorted(self._moves.values()))

        self._broker.replays.seek_stream(
            self._group_id,
            self._topic,
            self._where,
            moved,
            partitions=self._partitions,
            is_dry_run=self._is_dry_run,
            is_live=self._is_live,
        )

    def _move_queue(self, on_done: OnReset) -> None:
        def moved(found: list[Moved] | GoQueueError) -> None:
            if isinstance(found, GoQueueError):
                on_done(found)
                return
            for each in found:
                known = self._moves.get(each.partition)
                before = each.before if known is None else max(each.before, known.before)
                self._moves[each.partition] = each._replace(before=before)
            on_done(sorted(self._moves.values()))

        self._broker.replays.seek(
            self._group_id,
            self._topic,
            self._where,
            moved,
            partitions=self._partitions,
            is_dry_run=self._is_dry_run,
        )
