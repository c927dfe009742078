"""One connection of kombu: an event loop in a thread with our client in it, and what arrives for the thread outside.

kombu's thread calls, and is woken by a file descriptor when something has arrived. Acknowledgements are not waited for,
as in AMQP; `close` waits for those that are under way.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from goqueue.client import ClientError, Consumer, Job, LeaseLost, Message, Producer, Security, Worker
from goqueue.client.cluster import GROUP_KEY, Cluster
from goqueue.client.errors import code_of, refusal
from goqueue.client.faces import Portal
from goqueue.client.times import Duration
from goqueue.integrations.celery.words import Wishes
from goqueue.model.codes import Code
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.messages.share_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from goqueue.wire.kafka.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

BY_DEFAULT = -1
"""As a number of copies: as the broker says."""
THERE_OR_NOT_OURS = (
    Code.NONE,
    Code.TOPIC_ALREADY_EXISTS,
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.CLUSTER_AUTHORIZATION_FAILED,
)
UNLIMITED = 1000
"""How many messages a consumer without a limit is given at once."""
HELD_MAX = 20_000
"""The same with one, however high: as many as a worker of ours takes."""
STREAMED_MAX = 10_000
"""Messages of streams that wait for kombu's thread. With more, streams are read no further until it has taken some."""
EMPTY_MS = 1000
"""A queue that gives nothing for so long is empty."""
PURGED_AT_ONCE = 500
WAKE = b"\0"
DRAINED_BYTES = 4096

T = TypeVar("T")
log = get_logger("goqueue.celery")


class LinkOptions(NamedTuple):
    servers: tuple[str, ...]
    group: str
    lease: Duration | None
    hold: Duration
    security: Security | None
    client_id: str


class Arrival(NamedTuple):
    """A job of a queue, or a message of a stream, or what ended them."""

    owner: Any
    queue: str
    message: Message | None
    job: Job | None = None
    error: Exception | None = None


class Tap:
    """The worker of one channel. Its jobs are held, and their leases extended, until they are settled or it is
    closed; `topics` may change meanwhile.
    """

    def __init__(self, link: "Link", owner: Any, queues: dict[str, str]) -> None:
        """`queues`: by the names of their topics."""
        options = link.options
        self._link = link
        self._owner = owner
        self._queues = queues
        self._worker = Worker(
            options.servers,
            sorted(queues),
            group=options.group,
            concurrency=1,
            lease=options.lease,
            hold=options.hold,
            client_id=options.client_id,
            security=options.security,
        )
        self._pump: asyncio.Task[None] | None = None
        self.is_open = True

    async def start(self, jobs_max: int) -> None:
        await self.limit(jobs_max)
        await self._worker.start()
        self._pump = asyncio.create_task(self._run(), name="goqueue celery: jobs")

    async def _run(self) -> None:
        try:
            async for job in self._worker:
                self._link.arrive(Arrival(self._owner, self._queues.get(job.topic, ""), job.message, job))
        except ClientError as error:
            self._link.arrive(Arrival(self._owner, "", None, error=error))

    async def subscribe(self, queues: dict[str, str]) -> None:
        """None at all: take no more. Names of queues that have left stay known, for what is on its way."""
        self._queues |= queues
        if queues:
            await self._worker.subscribe(*sorted(queues))
        else:
            self.is_open = False
            self._worker.stop(gives_back=True)

    async def limit(self, jobs_max: int) -> None:
        self._worker.limit(min(jobs_max, HELD_MAX) or UNLIMITED)

    async def close(self) -> None:
        if self._pump is not None:
            self._pump.cancel()
        await self._worker.close()


class Tail:
    """What is published to a stream from now on, for one queue."""

    def __init__(self, link: "Link", topic: str, arrive: Callable[[Message], None], fail: Callable[..., None]) -> None:
        options = link.options
        self._link = link
        self._consumer = Consumer(
            options.servers, topic, start="latest", client_id=options.client_id, security=options.security
        )
        self._arrive = arrive
        self._fail = fail
        self._pump: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """What is published after this comes."""
        await self._consumer.start()
        self._pump = asyncio.create_task(self._run(), name="goqueue celery: stream")

    async def _run(self) -> None:
        try:
            async for message in self._consumer:
                await self._link.room()
                self._arrive(message)
        except ClientError as error:
            self._fail(error)

    async def close(self) -> None:
        if self._pump is not None:
            self._pump.cancel()
        await self._consumer.close()


class Link:
    """For one process: a child that was forked with it leaves it alone."""

    def __init__(self, options: LinkOptions) -> None:
        self.options = options
        self._portal = Portal("goqueue celery")
        common: dict[str, Any] = {"client_id": options.client_id, "security": options.security}
        self._producer = Producer(options.servers, linger_ms=0, **common)
        self._cluster = Cluster(options.servers, **common)
        self._arrivals: deque[Arrival] = deque()
        self._waits_for_room = False
        self._has_room = asyncio.Event()
        self._to_settle: deque[tuple[Job, Callable[[Job], Coroutine[Any, Any, None]]]] = deque()
        self._is_settle_due = False
        self._settling: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_woken = False
        self._reader, self._writer = -1, -1
        self.is_open = False

    @property
    def is_ours(self) -> bool:
        return self._portal.is_ours

    # -- its life

    def open(self) -> None:
        """ClientError: no server answers, or it does not let us in."""
        self._portal.start()
        try:
            self.run(self._open())
        except BaseException:
            self._portal.stop()
            raise
        self._reader, self._writer = os.pipe()
        for fd in (self._reader, self._writer):
            os.set_blocking(fd, False)
        self.is_open = True

    async def _open(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._producer.start()
        try:
            await self._cluster.start()
        except BaseException:
            await self._producer.close()
            raise

    def close(self) -> None:
        """After its taps and tails. A second time is fine."""
        if not self.is_open or not self.is_ours:
            return
        self.is_open = False
        try:
            self.run(self._close())
        except ClientError as error:
            log.warning("not all that was sent has arrived", reason=str(error))
        finally:
            self._portal.stop()
            fds, self._reader, self._writer = (self._reader, self._writer), -1, -1
            for fd in fds:  # nobody may read any more what has its number next
                os.close(fd)

    async def _close(self) -> None:
        await self.settled()
        await self._cluster.close()
        await self._producer.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._portal.run(work)

    # -- what arrives

    def fileno(self) -> int:
        """Readable when something has arrived."""
        return self._reader

    def arrive(self, arrival: Arrival) -> None:
        """In the thread of the loop."""
        self._arrivals.append(arrival)
        if not self._is_woken and self.is_open:
            self._is_woken = True
            with suppress(BlockingIOError):
                os.write(self._writer, WAKE)

    async def room(self) -> None:
        """For one more message of a stream: nothing else bounds those that nobody takes."""
        while len(self._arrivals) >= STREAMED_MAX:
            self._has_room.clear()
            self._waits_for_room = True
            if len(self._arrivals) >= STREAMED_MAX:  # asked again: the other thread looks after it has taken one
                await self._has_room.wait()

    def _make_room(self) -> None:
        if self._waits_for_room and len(self._arrivals) <= STREAMED_MAX // 2:
            self._waits_for_room = False
            assert self._loop is not None
            with suppress(RuntimeError):  # the loop has ended, and so have its streams
                self._loop.call_soon_threadsafe(self._has_room.set)

    def next(self) -> Arrival | None:
        """None: nothing is there, and the file descriptor tells when there is."""
        self._make_room()
        try:
            return self._arrivals.popleft()
        except IndexError:
            pass
        if not self.is_open:
            return None
        with suppress(BlockingIOError):
            os.read(self._reader, DRAINED_BYTES)
        self._is_woken = False
        try:
            return self._arrivals.popleft()
        except IndexError:
            return None

    # -- messages

    def publish(self, topic: str, value: bytes, headers: Sequence[tuple[str, bytes | None]], wanted: Wishes) -> None:
        """It is stored when this returns."""
        self.run(self._producer.send(topic, value, headers=headers, **wanted))

    def post(self, topic: str, value: bytes, headers: Sequence[tuple[str, bytes | None]]) -> None:
        """On its way when this returns: for what nobody misses, such as events."""
        self.run(self._producer.post(topic, value, headers=headers))

    def settle(self, job: Job, how: Callable[[Job], Coroutine[Any, Any, None]]) -> None:
        """Those of one turn of the loop travel together. Any thread may call: of a pool of threads, each does."""
        if not self.is_ours or self._loop is None:
            return
        self._to_settle.append((job, how))
        if not self._is_settle_due:
            self._is_settle_due = True
            with suppress(RuntimeError):  # the loop has ended: what was leased is delivered again
                self._loop.call_soon_threadsafe(self._settle_all)

    def _settle_all(self) -> None:
        self._is_settle_due = False  # before looking: who comes after this look says so again
        while self._to_settle:
            job, how = self._to_settle.popleft()
            task = asyncio.create_task(self._settle(job, how))
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    async def _settle(self, job: Job, how: Callable[[Job], Coroutine[Any, Any, None]]) -> None:
        try:
            await how(job)
        except LeaseLost:
            log.warning("a message was settled too late, and is delivered again", job=repr(job))
        except ClientError as error:
            log.warning("a message was not settled, and is delivered again", job=repr(job), reason=str(error))

    async def settled(self) -> None:
        """When all that was to be settled is."""
        self._settle_all()
        if self._settling:
            await asyncio.wait(set(self._settling))

    # -- topics

    async def make_topic(self, name: str, partitions: int, options: dict[str, str]) -> None:
        """If it is not there. Who may not make it may find it made by somebody else."""
        configs = [CreatableTopicConfig(key, value) for key, value in options.items()]
        request = CreateTopicsRequest([CreatableTopic(name, partitions, BY_DEFAULT, [], configs)])
        answer = await self._cluster.ask_any(request, CreateTopicsResponse)
        for topic in answer.topics:
            if code_of(topic.error_code) not in THERE_OR_NOT_OURS:
                raise refusal(topic.error_code, topic.error_message)

    async def delete_topic(self, name: str) -> None:
        """If it is there."""
        answer = await self._cluster.ask_any(DeleteTopicsRequest(topic_names=[name]), DeleteTopicsResponse)
        for topic in answer.responses:
            if code_of(topic.error_code) not in (Code.NONE, Code.UNKNOWN_TOPIC_OR_PARTITION):
                raise refusal(topic.error_code, topic.error_message)

    async def size(self, topic: str) -> int:
        """How many messages are still to be done, as far as the group knows."""
        group = self.options.group

        def request() -> DescribeShareGroupOffsetsRequest:
            return DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group, None)])

        answer = await self._cluster.ask_coordinator(
            GROUP_KEY, group, request, DescribeShareGroupOffsetsResponse, lambda found: None
        )
        found = [each for one in answer.groups for each in one.topics if each.topic_name == topic]
        return sum(max(0, part.lag) for each in found for part in each.partitions)

    async def purge(self, topic: str) -> int:
        """Acknowledge all that is ready."""
        purged = 0
        common: dict[str, Any] = {"client_id": self.options.client_id, "security": self.options.security}
        async with Worker(
            self.options.servers, topic, group=self.options.group, concurrency=PURGED_AT_ONCE, **common
        ) as worker:
            while (job := await worker.next(EMPTY_MS)) is not None:
                await job.ack()
                purged += 1
        return purged
