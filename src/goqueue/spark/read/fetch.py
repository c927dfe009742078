"""What an executor does: fetch one range of offsets, one request ahead of whoever decodes it.

A broker that restarts, or a leader that moves, is waited for. A range is read exactly: from its start up to its end,
and what is not there any more is said, or left out where that is wanted.
"""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple, cast

from goqueue.client.cluster import FETCH, NO_LEADER
from goqueue.client.errors import BrokerRefused, ClientError, UnknownTopic, code_of, refusal
from goqueue.client.offsets import EARLIEST, offsets_at
from goqueue.client.reading import visible_batches
from goqueue.model.codes import Code
from goqueue.records.batch import Batch
from goqueue.spark.connect import Brokers
from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options
from goqueue.spark.read.splits import Range
from goqueue.wire.kafka.messages.fetch import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from goqueue.wire.kafka.notation import INT32_MAX

BYTES_MAX = 8 * 1024 * 1024
BYTES_MIN = 64 * 1024
RECORD_BYTES_ASSUMED = 512
"""Before the first answer: what is beyond the end of a range is fetched for nothing."""
WAIT_MS = 500


class FetchOptions(NamedTuple):
    is_committed: bool = True
    fails_on_loss: bool = True
    bytes_max: int = BYTES_MAX
    wait_ms: int = WAIT_MS

    @classmethod
    def of(cls, options: Options) -> "FetchOptions":
        sizes = (options.get(f"kafka.{name}") for name in ("max.partition.fetch.bytes", "fetch.max.bytes"))
        return cls(
            options.get("kafka.isolation.level") == "read_committed",
            options.get("failOnDataLoss"),
            min(*sizes, INT32_MAX),
            options.get("kafka.fetch.max.wait.ms"),
        )


class RangeFetcher:
    """Iterate over it once: all batches with records of the range, in the order of their offsets."""

    def __init__(self, brokers: Brokers, wanted: Range, options: FetchOptions) -> None:
        self._brokers = brokers
        self._cluster = brokers.cluster
        self._range = wanted
        self._options = options
        self.first_offset = wanted.start
        """Later where the start of the range is gone; a batch may hold records before it."""
        self._record_bytes: float = RECORD_BYTES_ASSUMED

    def __iter__(self) -> Iterator[Batch]:
        position, end = self._range.start, self._range.end
        under_way: asyncio.Task[FetchedPartition] | None = None
        try:
            while position < end:
                under_way = under_way or self._brokers.begin(self._ask(position))
                answer = self._brokers.finish(under_way)
                under_way = None
                if answer.error_code == Code.OFFSET_OUT_OF_RANGE:
                    position = self.first_offset = self._after_the_loss(position)
                    continue
                visible, position = self._read(answer, position)
                if position < end:
                    under_way = self._brokers.begin(self._ask(position))
                yield from visible
        finally:
            if under_way is not None:
                self._brokers.give_up(under_way)

    def _read(self, answer: FetchedPartition, position: int) -> tuple[list[Batch], int]:
        """What there is to decode, and what to ask for next."""
        records = cast(memoryview, answer.records) or memoryview(b"")
        aborted = answer.aborted_transactions if self._options.is_committed else None
        visible, first = [], position
        for batch, is_visible in visible_batches(records, aborted):
            if batch.next_offset <= position:
                continue
            if batch.base_offset >= self._range.end:
                position = self._range.end
                break
            position = batch.next_offset
            if is_visible:
                visible.append(batch)
        if position > first and len(records):
            self._record_bytes = max(1.0, len(records) / (position - first))
        return visible, position

    async def _ask(self, position: int) -> FetchedPartition:
        """Until there is something at this position, or the broker says that there will be nothing."""
        cluster = self._cluster
        give_up_s = cluster.clock.time_s() + self._brokers.servers.patience_s

        async def attempt() -> FetchedPartition:
            try:
                return await self._ask_once(position)
            except UnknownTopic:
                if not self._options.fails_on_loss:
                    raise
                raise SparkError(f"topic {self._range.topic} was deleted while it was read") from None
            except ClientError as error:
                if error.retriable:
                    await cluster.refresh([self._range.topic])
                raise

        while True:
            answer = await cluster.retry(attempt, give_up_s)
            if answer.records or answer.error_code != Code.NONE:
                return answer
            if cluster.clock.time_s() > give_up_s:
                raise SparkError(
                    f"{self._place} ends at offset {answer.high_watermark}, and offsets up to {self._range.end} were"
                    " there when the read was planned: was the topic made anew, or its broker's disk lost?"
                )

    async def _ask_once(self, position: int) -> FetchedPartition:
        topic, partition = self._range.topic, self._range.partition
        await self._cluster.topic(topic)
        node_id = self._cluster.leader(topic, partition)
        if node_id == NO_LEADER:
            raise BrokerRefused(Code.LEADER_NOT_AVAILABLE, f"{self._place} has no leader now")
        bytes_max = self._bytes_wanted(position)
        wanted = FetchPartition(partition, fetch_offset=position, partition_max_bytes=bytes_max)
        request = FetchRequest(
            max_wait_ms=self._options.wait_ms,
            min_bytes=1,
            max_bytes=bytes_max,
            isolation_level=int(self._options.is_committed),
            topics=[FetchTopic(topic, partitions=[wanted])],
        )
        connection = await self._cluster.connection(node_id, FETCH)
        answer = await connection.ask(request, FetchResponse, self._options.wait_ms / 1000)
        if answer.error_code != Code.NONE:
            raise refusal(answer.error_code)
        found = answer.responses[0].partitions[0]
        code = code_of(found.error_code)
        if code not in (Code.NONE, Code.OFFSET_OUT_OF_RANGE):
            raise refusal(code, f"{self._place}: {code.name.lower().replace('_', ' ')}")
        return found

    def _bytes_wanted(self, position: int) -> int:
        wanted = max(BYTES_MIN, int((self._range.end - position) * self._record_bytes * 1.1))
        return min(self._options.bytes_max, wanted)

    def _after_the_loss(self, position: int) -> int:
        """Where to go on."""
        place = (self._range.topic, self._range.partition)
        ask = offsets_at(self._cluster, {place: EARLIEST}, is_committed=self._options.is_committed)
        start = self._brokers.run(ask)[place]
        if self._options.fails_on_loss or start <= position:
            raise SparkError(
                f"{self._place}: offsets from {position} on are gone: retention has removed them, or the topic was made"
                " anew. With failOnDataLoss=false the read goes on without them"
            )
        return min(start, self._range.end)

    @property
    def _place(self) -> str:
        return f"partition {self._range.partition} of topic {self._range.topic}"
