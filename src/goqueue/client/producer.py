"""Publishing: messages are gathered into one batch per partition, and each is sent until the broker has stored it once.

async with Producer("127.0.0.1:9092") as producer:
    receipt = await producer.send("orders", b"three apples", key=b"customer-7")
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from goqueue.client.batches import Batch, PartitionQueue
from goqueue.client.clock import Backoff, Clock, Timer
from goqueue.client.cluster import Cluster
from goqueue.client.connection import Limits
from goqueue.client.errors import Closed, DeliveryFailed, InvalidArgument, MessageTooLarge
from goqueue.client.flushes import Flushes
from goqueue.client.identity import Identity
from goqueue.client.message import (
    NO_HEADERS,
    NORMAL,
    HeadersGiven,
    NewMessage,
    Receipt,
    add_wishes,
    header_pairs,
    record_bytes,
)
from goqueue.client.options import (
    BATCH_MESSAGES_MAX,
    CODECS,
    LINGER_MS_MAX,
    MIB,
    PARTITIONERS,
    Compression,
    PartitionerName,
    ProducerOptions,
    between,
    one_of,
)
from goqueue.client.room import Room
from goqueue.client.routes import Route
from goqueue.client.security import Security
from goqueue.client.sender import Sender, SenderOptions
from goqueue.client.times import Duration, Moment, duration_s
from goqueue.client.transaction import Consumed, HasConsumed, TransactionalIdentity, run_transaction
from goqueue.model.errors import GoQueueError
from goqueue.ports.dice import Dice
from goqueue.ports.network import Network
from goqueue.records.build import NewRecord
from goqueue.telemetry.logs import get_logger

if TYPE_CHECKING:
    from goqueue.client.assigned import Place

TIMESTAMP_MAX = 2**63 - 1

log = get_logger("goqueue.client")


class Producer:
    """Starts with `async with` or `start()`. For one event loop; for threads there is `goqueue.client.sync`.

    A batch goes out when it has `batch_messages_max` messages or `batch_bytes_max` bytes, or `linger_ms` after its
    first message, whichever is first. At most `buffer_bytes_max` are held; beyond that, sending waits. A message that
    is not acknowledged within `delivery_timeout` fails. `partitioner`: as the topic's option says, so that all who
    publish with a key agree on its partition, unless one is named here.
    """

    def __init__(  # noqa: PLR0913  one for each option, by name only
        self,
        servers: str | Iterable[str] = "127.0.0.1:9092",
        *,
        client_id: str = "goqueue",
        partitioner: PartitionerName | None = None,
        compression: Compression = "none",
        linger_ms: int = 5,
        batch_messages_max: int = 100,
        batch_bytes_max: int = 64 * 1024,
        buffer_bytes_max: int = 32 * MIB,
        message_bytes_max: int = MIB,
        delivery_timeout: Duration = "2m",
        request_timeout: Duration = "30s",
        transactional_id: str | None = None,
        transaction_timeout: Duration = "1m",
        backoff: Backoff | None = None,
        clock: Clock | None = None,
        dice: Dice | None = None,
        network: Network | None = None,
        security: Security | None = None,
    ) -> None:
        self._options = options = ProducerOptions(
            codec=one_of("compression", compression, CODECS),
            partitioner=None if partitioner is None else one_of("partitioner", partitioner, PARTITIONERS),
            linger_s=between("linger_ms", linger_ms, 0, LINGER_MS_MAX) / 1000,
            batch_messages_max=between("batch_messages_max", batch_messages_max, 1, BATCH_MESSAGES_MAX),
            batch_bytes_max=between("batch_bytes_max", batch_bytes_max, 1, 1024 * MIB),
            buffer_bytes_max=between("buffer_bytes_max", buffer_bytes_max, 1, 2**40),
            message_bytes_max=between("message_bytes_max", message_bytes_max, 1, 1024 * MIB),
            delivery_s_max=duration_s("delivery_timeout", delivery_timeout),
            request_s_max=duration_s("request_timeout", request_timeout),
        )
        limits = Limits(request_s_max=min(options.request_s_max, options.delivery_s_max))
        self._cluster = Cluster(
            servers,
            client_id=client_id,
            limits=limits,
            backoff=backoff,
            creates_topics=True,
            clock=clock,
            dice=dice,
            network=network,
            security=security,
        )
        self._transactions: TransactionalIdentity | None = None
        if transactional_id is not None:
            timeout_ms = int(duration_s("transaction_timeout", transaction_timeout) * 1000)
            self._transactions = TransactionalIdentity(self._cluster, transactional_id, timeout_ms)
        self._identity = self._transactions or Identity(self._cluster)
        self._room = Room(options.buffer_bytes_max)
        self._flushes = Flushes()
        self._routes: dict[str, Route] = {}
        self._lingering: dict[PartitionQueue, float] = {}
        """Queues with an open batch, and when it is old enough; the oldest first."""
        self._timer: Timer | None = None
        self._sender: Sender | None = None
        self._now_ms: Callable[[], int] = lambda: 0
        self._new_future: Callable[[], asyncio.Future[Receipt]] = asyncio.Future
        self._is_closed = False

    # -- its life

    async def start(self) -> Self:
        """Until a server has answered; `async with` does it."""
        if self._is_closed:
            raise Closed("the producer is closed")
        if self._sender is None:
            options = SenderOptions(
                self._options.codec, self._options.delivery_s_max, self._cluster.limits.request_s_max
            )
            self._sender = Sender(self._cluster, self._identity, options, self._ended, self._flushes.split)
            self._now_ms, self._new_future = self._cluster.clock.now_ms, asyncio.get_running_loop().create_future
            self._cluster.on_topics.append(self._topics_changed)
            try:
                await self._cluster.start()
                await self._identity.make()
            except BaseException:
                self._sender = None
                await self._cluster.close()
                raise
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except DeliveryFailed as failed:
            if error is None:
                raise
            log.warning("messages were not delivered", failed=failed.failed, why=str(failed))

    async def flush(self) -> None:
        """Send what has been accepted, and wait until all of it is decided. DeliveryFailed: messages that were posted
        since the last flush could not be delivered. What `send` waits for is told there, and not here.
        """
        self._seal_all()
        await self._flushes.wait()

    async def close(self) -> None:
        """`flush`, and then end. A second time is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        self._room.close()
        try:
            if self._sender is not None:
                await self.flush()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._sender is not None:
                await self._sender.stop()
            await self._cluster.close()

    # -- sending

    async def send(  # noqa: PLR0913  a message and its wishes
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: HeadersGiven = NO_HEADERS,
        priority: str | int | None = None,
        delay: Duration | None = None,
        at: Moment | None = None,
        ttl: Duration | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Receipt:
        """Publish one message; it is durable when this returns. Cancelled before it was accepted, it is not sent;
        after that it is sent all the same.
        """
        future = await self.post(
            topic,
            value,
            key=key,
            headers=headers,
            priority=priority,
            delay=delay,
            at=at,
            ttl=ttl,
            partition=partition,
            timestamp=timestamp,
        )
        awaited = (future,)
        self._flushes.awaits(awaited)
        try:
            return await future
        finally:
            self._flushes.awaits_no_more(awaited)

    async def post(  # noqa: PLR0913  a message and its wishes
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: HeadersGiven = NO_HEADERS,
        priority: str | int | None = None,
        delay: Duration | None = None,
        at: Moment | None = None,
        ttl: Duration | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> "asyncio.Future[Receipt]":
        """Accept one message: this waits only for room. The future gets its receipt; nobody need wait for it, since
        `flush` and `close` raise what failed.
        """
        route = self._routes.get(topic) or await self._find_route(topic)
        now_ms = self._now_ms()
        lane, pairs = NORMAL, NO_HEADERS
        if priority is not None or delay is not None or at is not None or ttl is not None:
            pairs, lane = add_wishes(headers, now_ms, priority, delay, at, ttl)
        elif headers:
            pairs, lane = header_pairs(headers)
        size = record_bytes(key, value, pairs)
        if timestamp is None:
            timestamp = now_ms
        else:
            between("timestamp", timestamp, 0, TIMESTAMP_MAX)
        if size > self._options.message_bytes_max:
            raise MessageTooLarge(f"{size} bytes, at most {self._options.message_bytes_max} are sent")
        queue = route.choose(key, partition)
        if not self._room.take(size):
            await self._room.wait(size)
        future = self._add(queue, (timestamp, key, value, pairs), size, lane)
        if queue.open is None:
            await asyncio.sleep(0)  # a batch is full: whoever posts in a loop lets it go out
        return future

    async def send_many(self, topic: str, messages: Iterable[bytes | NewMessage]) -> list[Receipt]:
        """Publish values, or what `send` takes by name. All are tried; then the first error, if any, is raised."""
        futures: list[asyncio.Future[Receipt]] = []
        try:
            for each in messages:
                given: NewMessage = {"value": each} if isinstance(each, bytes) else each
                futures.append(await self.post(topic, **given))
            self._flushes.awaits(futures)
            if len(futures) >= self._options.batch_messages_max:
                self._seal_all()  # so many need not linger for others to join them
            receipts: list[Receipt] = []
            problem: GoQueueError | None = None
            for future in futures:
                try:
                    receipts.append(await future)
                except GoQueueError as error:
                    problem = problem or error
        finally:
            self._flushes.awaits_no_more(futures)
        if problem is not None:
            raise problem
        return receipts

    async def _find_route(self, topic: str) -> Route:
        if self._sender is None or self._is_closed:
            raise Closed(
                "the producer is closed" if self._is_closed else "the producer was not started: use async with"
            )
        found = await self._cluster.topic(topic, self._options.delivery_s_max)
        route = self._routes.get(topic)
        if route is None:
            partitioner = self._options.partitioner or found.partitioner
            route = self._routes[topic] = Route(topic, len(found.leaders), partitioner)
        return route

    def _topics_changed(self) -> None:
        for name, route in self._routes.items():
            known = self._cluster.known(name)
            if known is not None:
                route.grow(len(known.leaders))
                route.use(self._options.partitioner or known.partitioner)

    # -- transactions

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """`async with producer.transaction():` what is sent inside becomes visible at its end, all at once; an
        exception aborts it, and is raised on. DeliveryFailed: some of it could not be delivered, so none of it will be.
        """
        return run_transaction(self._need_transactions(), self.flush, self._abandon)

    async def send_offsets(self, consumed: "HasConsumed | Mapping[Place, int]", group: str | None = None) -> None:
        """Make offsets part of the open transaction: of all that a consumer (without `auto_commit`) has handed out, or
        the ones to go on from, with the name of their group.
        """
        transactions = self._need_transactions()
        if not isinstance(consumed, Mapping):
            await transactions.send_offsets(consumed.consumed())
        elif group is None:
            raise InvalidArgument("which group the offsets are of must be said")
        else:
            await transactions.send_offsets(Consumed(consumed, group))

    def _need_transactions(self) -> TransactionalIdentity:
        if self._transactions is None:
            raise InvalidArgument("transactions need a producer with a transactional_id")
        return self._transactions

    async def _abandon(self, why: GoQueueError) -> None:
        """Fail what has not gone out, and wait for the rest."""
        self._seal_all()
        if self._sender is not None:
            self._sender.give_up(why)
        with suppress(DeliveryFailed):
            await self._flushes.wait()

    # -- batches

    def _add(self, queue: PartitionQueue, record: NewRecord, size: int, lane: int) -> "asyncio.Future[Receipt]":
        sender = self._sender
        if sender is None or self._is_closed:
            self._room.give(size)
            raise Closed("the producer is closed")
        if self._transactions is not None and (why := self._transactions.why_not()) is not None:
            self._room.give(size)
            raise why
        options = self._options
        batch = queue.open
        if batch is not None and batch.bytes + size > options.batch_bytes_max:
            self._seal(queue)
            batch = None
        if batch is None:
            batch = self._open(queue, lane)
        future = self._new_future()
        batch.add(record, size, lane, future)
        if len(batch.records) >= options.batch_messages_max or batch.bytes >= options.batch_bytes_max:
            self._seal(queue)
        return future

    def _open(self, queue: PartitionQueue, lane: int) -> Batch:
        clock, options = self._cluster.clock, self._options
        now_s = clock.time_s()
        batch = queue.open = Batch(queue.place, now_s + options.delivery_s_max, lane)
        self._flushes.add(batch)
        self._lingering[queue] = now_s + options.linger_s
        if self._timer is None:
            self._timer = clock.call_after(options.linger_s, self._linger_over)
        return batch

    def _seal(self, queue: PartitionQueue) -> None:
        assert self._sender is not None
        self._lingering.pop(queue, None)
        if queue.seal():
            self._sender.wake(queue)

    def _seal_all(self) -> None:
        for queue in list(self._lingering):
            self._seal(queue)

    def _linger_over(self) -> None:
        self._timer = None
        now_s = self._cluster.clock.time_s()
        for queue, due_s in list(self._lingering.items()):
            if due_s > now_s:
                self._timer = self._cluster.clock.call_after(due_s - now_s, self._linger_over)
                return
            self._seal(queue)

    def _ended(self, batch: Batch, error: GoQueueError | None) -> None:
        if error is not None:
            batch.fail(error)
        self._flushes.ended(batch, error)
        self._room.give(batch.bytes)
