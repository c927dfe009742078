"""What one task of Spark does: its rows go out in a transaction that it leaves open for the driver to end."""

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from goqueue.client.errors import BrokerRefused, MessageTooLarge, UnknownTopic
from goqueue.client.open_writer import OpenWriter
from goqueue.client.options import CODECS, MIB
from goqueue.client.together import LeftOpen, family
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, InvalidName
from goqueue.model.moments import shown
from goqueue.records.partitioners import named
from goqueue.spark.connect import Brokers
from goqueue.spark.errors import SparkError
from goqueue.spark.sink.columns import Rows, rows_of
from goqueue.spark.sink.encode import Encoded, encode
from goqueue.spark.sink.route import Place, Router, Target, cut, joined
from goqueue.spark.where import Where

CHUNK_ROWS = 50_000
CHUNK_BYTES = 8 * MIB

NOT_OPEN = frozenset(
    (
        Code.PRODUCER_FENCED,
        Code.INVALID_PRODUCER_EPOCH,
        Code.INVALID_TXN_STATE,
        Code.INVALID_PRODUCER_ID_MAPPING,
    )
)

Batch = tuple[Place, Encoded]


class Plan(NamedTuple):
    """What the driver has found out and every task is told."""

    servers: Where
    topic: str | None
    partitioner: str | None
    """None: as the topic's option says."""
    codec: str
    timeout_ms: int
    batch_bytes: int
    delivery_ms: int

    def explained(self, error: BrokerRefused) -> GoQueueError:
        """What to do about it, where the broker can only say that the transaction is not open."""
        if error.code not in NOT_OPEN:
            return error
        return SparkError(
            f"{error}. If the batch took longer than kafka.transaction.timeout.ms ({self.timeout_ms} ms), raise it,"
            " up to 15 minutes, or write less at once"
        )


class Written(NamedTuple):
    rows: int
    left: LeftOpen | None
    """None: there were no rows."""


def write(plan: Plan, key: str, task: str, batches: Iterable[pa.RecordBatch]) -> Written:
    """`task` tells this task, and this attempt at it, from all others of the writer `key`."""
    rows = (rows_of(piece, plan.topic) for batch in batches for piece in _pieces(batch))
    first = next(rows, None)
    if first is None:
        return Written(0, None)
    with Brokers(plan.servers, is_known=True, creates_topics=True) as brokers:

        def target(topic: str) -> Target:
            try:
                found = brokers.run(brokers.cluster.topic(topic))
                return Target(len(found.leaders), named(plan.partitioner) if plan.partitioner else found.partitioner)
            except (UnknownTopic, InvalidName) as error:  # of a column: the driver has looked at that of the option
                raise SparkError(f"column 'topic' holds {shown(topic)}: {error}") from None

        async def opened() -> OpenWriter:
            writer = OpenWriter(brokers.cluster, family(key) + task, plan.timeout_ms, plan.delivery_ms / 1000)
            await writer.start()
            return writer

        router = Router(plan.topic, target)
        writer = brokers.run(opened())
        count = 0
        topics: set[str] = set()
        try:
            for chunk in _chunks(first, rows):
                count += chunk.length
                made = _encoded(plan, router, chunk)
                topics.update(topic for (topic, _), _ in made)
                brokers.run(_send(writer, made))
            return Written(count, brokers.run(writer.leave_open()))
        except BaseException as error:
            brokers.run(writer.abort())
            if isinstance(error, BrokerRefused):
                raise plan.explained(error) from None
            if isinstance(error, MessageTooLarge):
                names = " or ".join(map(repr, sorted(topics)))
                raise SparkError(
                    f"a batch for topic {names} is too large: {error}. Raise the topic's max.message.bytes,"
                    f" or, if it is not one row alone, lower kafka.batch.size ({plan.batch_bytes})"
                ) from None
            raise
        finally:
            brokers.run(writer.close())


def _encoded(plan: Plan, router: Router, rows: Rows) -> list[Batch]:
    routed = router.route(rows)
    places = cut(routed, plan.batch_bytes)
    made = encode(routed.rows, [count for _, count in places], time.time_ns() // 1_000_000, CODECS[plan.codec])
    return [(place, each) for (place, _), each in zip(places, made, strict=True)]


async def _send(writer: OpenWriter, batches: list[Batch]) -> None:
    for (topic, partition), encoded in batches:
        await writer.send(topic, partition, encoded.data, encoded.length)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Arrow counts the bytes of a column with 32 bits, so that large rows must not come all at once."""
    step = max(1, batch.num_rows * CHUNK_BYTES // max(batch.nbytes, 1))
    for at in range(0, batch.num_rows, step):
        yield batch.slice(at, step)


def _chunks(first: Rows, rows: Iterator[Rows]) -> Iterator[Rows]:
    """Enough rows at once that every partition gets a large batch."""
    gathered, count, size = [first], first.length, first.bytes
    for each in rows:
        if count + each.length > CHUNK_ROWS or size + each.bytes > CHUNK_BYTES:
            yield joined(gathered) if len(gathered) > 1 else gathered[0]
            gathered, count, size = [], 0, 0
        gathered.append(each)
        count += each.length
        size += each.bytes
    yield joined(gathered) if len(gathered) > 1 else gathered[0]
