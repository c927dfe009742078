"""Sends whole batches in a transaction that it leaves open: somebody else ends it, with those of other writers.

For programs that encode in bulk, such as Spark's tasks. The batches are acknowledged when `leave_open` returns, so that
ending the transaction is all that is left to do.
"""

import asyncio
from contextlib import suppress

from goqueue.client.batches import Batch, PartitionQueue
from goqueue.client.cluster import Cluster
from goqueue.client.errors import Closed
from goqueue.client.options import MIB
from goqueue.client.room import Room
from goqueue.client.sender import Sender, SenderOptions
from goqueue.client.together import LeftOpen
from goqueue.client.transaction import TransactionAborted, TransactionalIdentity
from goqueue.model.errors import GoQueueError
from goqueue.records.batch import Codec

BUFFER_BYTES_MAX = 32 * MIB
DELIVERY_S_MAX = 120.0
ABORT_S_MAX = 10.0


class EncodedBatch(Batch):
    """One whose bytes are there already, but for who sends them: transactional, and in order."""

    __slots__ = ("_count",)

    def __init__(self, place: tuple[str, int], deadline_s: float, data: bytearray, count: int) -> None:
        super().__init__(place, deadline_s, 0)
        self.data = data
        self.bytes = len(data)
        self._count = count

    @property
    def count(self) -> int:
        return self._count


class OpenWriter:
    """`cluster` is started, and closed by whoever has made it."""

    def __init__(
        self, cluster: Cluster, transactional_id: str, timeout_ms: int, delivery_s_max: float = DELIVERY_S_MAX
    ) -> None:
        self._cluster = cluster
        self._delivery_s_max = delivery_s_max
        self._identity = TransactionalIdentity(cluster, transactional_id, timeout_ms)
        self._room = Room(BUFFER_BYTES_MAX)
        self._queues: dict[tuple[str, int], PartitionQueue] = {}
        self._live = 0
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        options = SenderOptions(Codec.NONE, delivery_s_max, cluster.limits.request_s_max)
        self._sender = Sender(cluster, self._identity, options, self._ended, lambda *_: None)

    async def start(self) -> None:
        """Fence whoever had this id before; what it had open is aborted."""
        await self._identity.make()
        self._identity.begin()

    async def send(self, topic: str, partition: int, data: bytearray, count: int) -> None:
        """Waits for room only. It raises what went wrong with an earlier one: the transaction is lost then."""
        self._check()
        if not self._room.take(len(data)):
            await self._room.wait(len(data))
            self._check()
        place = (topic, partition)
        queue = self._queues.get(place)
        if queue is None:
            queue = self._queues[place] = PartitionQueue(topic, partition)
        self._live += 1
        self._is_empty.clear()
        queue.waiting.append(EncodedBatch(place, self._cluster.clock.time_s() + self._delivery_s_max, data, count))
        self._sender.wake(queue)

    async def leave_open(self) -> LeftOpen | None:
        """Until all is acknowledged. None: nothing was sent, so there is nothing to end."""
        await self._is_empty.wait()
        self._check()
        if not self._queues:
            return None
        identity = self._identity
        return LeftOpen(identity.transactional_id, identity.producer_id, identity.epoch)

    async def abort(self) -> None:
        """As well as it can be done: what is left open is aborted by its timeout."""
        self._sender.give_up(TransactionAborted("the transaction was aborted"))
        with suppress(GoQueueError, TimeoutError):
            async with asyncio.timeout(ABORT_S_MAX):
                await self._is_empty.wait()
                await self._identity.end(commits=False)

    async def close(self) -> None:
        self._room.close()
        await self._sender.stop()

    def _check(self) -> None:
        why = self._identity.why_not()
        if why is not None:
            raise why if self._identity.is_open else Closed("the writer was not started")

    def _ended(self, batch: Batch, error: GoQueueError | None) -> None:
        if error is not None:
            self._identity.fail(error)
        self._live -= 1
        if not self._live:
            self._is_empty.set()
        self._room.give(batch.bytes)
