"""Which partition of a topic a message goes to, and what that partition has to get."""

from collections.abc import Callable

from goqueue.client.batches import PartitionQueue
from goqueue.client.errors import InvalidArgument
from goqueue.records.partitioners import HASHES, Partitioner


class Route:
    """One topic. Messages without a key take turns, so that all partitions get as many of them, within one."""

    def __init__(self, topic: str, partitions: int, partitioner: Partitioner) -> None:
        self.topic = topic
        self.queues = [PartitionQueue(topic, number) for number in range(partitions)]
        self._hash: Callable[[bytes], int] | None = None
        self.use(partitioner)
        self._turn = 0

    def use(self, partitioner: Partitioner) -> None:
        """From now on."""
        self._hash = HASHES.get(partitioner)

    def choose(self, key: bytes | None, partition: int | None) -> PartitionQueue:
        queues = self.queues
        if partition is not None:
            if not 0 <= partition < len(queues):
                raise InvalidArgument(f"partition {partition} of {self.topic!r} is not one of 0 to {len(queues) - 1}")
            return queues[partition]
        if key is not None and self._hash is not None:
            return queues[self._hash(key) % len(queues)]
        turn = self._turn
        self._turn = turn + 1 if turn + 1 < len(queues) else 0
        return queues[turn]

    def grow(self, partitions: int) -> None:
        for number in range(len(self.queues), partitions):
            self.queues.append(PartitionQueue(self.topic, number))
