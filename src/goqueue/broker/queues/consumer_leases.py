"""Where one consumer was given records, so that they can be given back at once when the consumer is gone: others need
not wait for the end of its leases. What it holds there is for the machine to say.
"""

from collections.abc import Iterable

from goqueue.broker.queues.queues import Queues
from goqueue.machines.deliveries.commands import How, LeasedRun, Place, Settle, Settlement


class ConsumerLeases:
    """Invariant: whatever this consumer was given and still holds is of a partition in `_spots`."""

    def __init__(self, queues: Queues, group_id: str, consumer: str) -> None:
        self._queues = queues
        self._group_id = group_id
        self._consumer = consumer
        self._spots: dict[tuple[str, int], None] = {}

    def took_from(self, topic: str, partition: int) -> None:
        self._spots[topic, partition] = None

    def give_back(self, how: How) -> None:
        """All of it, to be delivered again at once."""
        spots, self._spots = self._spots, {}
        for topic, partition in spots:
            place = Place(self._group_id, topic, partition)
            runs = self._queues.held_runs(place, self._consumer)
            if runs:
                settlements = tuple(Settlement(*run, how, 0) for run in runs)
                self._queues.submit(Settle(place, settlements, self._consumer))

    def undo(self, topic: str, partition: int, runs: Iterable[LeasedRun], lease: int) -> None:
        """What was leased for the consumer and never reached it, unless somebody else has it by now."""
        settlements = tuple(Settlement(run.first, run.last, How.UNDO, 0, "", lease) for run in runs)
        self._queues.submit(Settle(Place(self._group_id, topic, partition), settlements))
