"""The same client without `async`: each object has an event loop in a thread of its own, and calls wait for it.

    with Producer("127.0.0.1:9092") as producer:
        producer.send("orders", b"three apples")

Any thread may call. Callbacks (`on_assigned`, `on_revoked`) run in the loop's thread, and must not call back.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from goqueue.client.admin import Admin as AsyncAdmin
from goqueue.client.consumer import Consumer as AsyncConsumer
from goqueue.client.errors import Closed
from goqueue.client.faces import Face, Portal, calls, posts, takes, waits
from goqueue.client.job import Job as AsyncJob
from goqueue.client.message import Message
from goqueue.client.producer import Producer as AsyncProducer
from goqueue.client.times import Duration
from goqueue.client.worker import Worker as AsyncWorker
from goqueue.wire.rest.dead_letters import DeadLetter
from goqueue.wire.rest.delays import DelayedMessage
from goqueue.wire.rest.leases import HeldLease
from goqueue.wire.rest.messages import MessageReply
from goqueue.wire.rest.traces import TraceSummary

T = TypeVar("T")


class Producer(Face[AsyncProducer]):
    __doc__ = AsyncProducer.__doc__

    @takes(AsyncProducer)
    def __init__(self, inner: AsyncProducer) -> None:
        super().__init__(inner)

    send = waits(AsyncProducer.send)
    send_many = waits(AsyncProducer.send_many)
    post = posts(AsyncProducer.post)
    flush = waits(AsyncProducer.flush)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is sent inside becomes visible at its end, all at once; an exception aborts it, and is raised on."""
        inner = self._inner.transaction()
        self._portal.run(_entered(inner.__aenter__))
        try:
            yield
        except BaseException as error:
            self._portal.run(_entered(partial(inner.__aexit__, type(error), error, error.__traceback__)))
            raise
        self._portal.run(_entered(partial(inner.__aexit__, None, None, None)))

    send_offsets = waits(AsyncProducer.send_offsets)


class Consumer(Face[AsyncConsumer]):
    __doc__ = AsyncConsumer.__doc__

    @takes(AsyncConsumer)
    def __init__(self, inner: AsyncConsumer) -> None:
        super().__init__(inner)

    poll = waits(AsyncConsumer.poll)
    commit = waits(AsyncConsumer.commit)
    committed = waits(AsyncConsumer.committed)
    seek = waits(AsyncConsumer.seek)
    seek_to_time = waits(AsyncConsumer.seek_to_time)
    pause = calls(AsyncConsumer.pause)
    resume = calls(AsyncConsumer.resume)
    position = calls(AsyncConsumer.position)
    lag = calls(AsyncConsumer.lag)
    consumed = calls(AsyncConsumer.consumed)

    @property
    def assignment(self) -> set[tuple[str, int]]:
        """Topic and partition of all that this consumer reads now."""
        return self._portal.call(lambda: self._inner.assignment)

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        """The next message, whenever it comes. `poll` costs less for each where there are many."""
        return self._portal.run(self._inner.__anext__())


class Job:
    """One message in the hands of a worker: `ack`, `nack` or `reject` it, once."""

    __slots__ = ("_inner", "_portal", "attempt", "message")

    def __init__(self, inner: AsyncJob, portal: Portal) -> None:
        self._inner = inner
        self._portal = portal
        self.message = inner.message
        self.attempt = inner.attempt

    @property
    def value(self) -> bytes | None:
        return self.message.value

    @property
    def key(self) -> bytes | None:
        return self.message.key

    @property
    def headers(self) -> dict[str, bytes | None]:
        return self.message.headers

    @property
    def is_settled(self) -> bool:
        return self._inner.is_settled

    ack = waits(AsyncJob.ack)
    nack = waits(AsyncJob.nack)
    reject = waits(AsyncJob.reject)
    extend = waits(AsyncJob.extend)


class Worker(Face[AsyncWorker]):
    __doc__ = AsyncWorker.__doc__

    @takes(AsyncWorker)
    def __init__(self, inner: AsyncWorker) -> None:
        super().__init__(inner)

    def handle(self, handler: Callable[[Job], None]) -> Callable[[Job], None]:
        """Let this function handle jobs, in threads, when the worker runs."""
        self._inner.handle(lambda job: handler(Job(job, self._portal)))
        return handler

    def run(self) -> None:
        """Until `stop`, which any thread may call; jobs that are being handled are finished."""
        self._portal.start()
        try:
            self._portal.run(self._inner.run())
        finally:
            self._portal.stop()

    def stop(self) -> None:
        """Take no more jobs. Before `run` has begun: it ends as soon as it does."""
        try:
            self._portal.call(self._inner.stop)
        except Closed:
            if self._portal.is_ours:
                self._inner.stop()

    def next(self, timeout: Duration | None = None) -> Job | None:
        """None: the worker was stopped, or nothing came within `timeout`."""
        job = self._portal.run(self._inner.next(timeout))
        return None if job is None else Job(job, self._portal)

    def __iter__(self) -> Iterator[Job]:
        while (job := self.next()) is not None:
            yield job


class Admin(Face[AsyncAdmin]):
    __doc__ = AsyncAdmin.__doc__

    @takes(AsyncAdmin)
    def __init__(self, inner: AsyncAdmin) -> None:
        super().__init__(inner)

    health = waits(AsyncAdmin.health)
    is_ready = waits(AsyncAdmin.is_ready)
    stats = waits(AsyncAdmin.stats)
    call = waits(AsyncAdmin.call)
    version = waits(AsyncAdmin.version)
    create_topic = waits(AsyncAdmin.create_topic)
    topics = waits(AsyncAdmin.topics)
    topic = waits(AsyncAdmin.topic)
    partitions = waits(AsyncAdmin.partitions)
    set_options = waits(AsyncAdmin.set_options)
    add_partitions = waits(AsyncAdmin.add_partitions)
    trim = waits(AsyncAdmin.trim)
    delete_topic = waits(AsyncAdmin.delete_topic)
    groups = waits(AsyncAdmin.groups)
    group = waits(AsyncAdmin.group)
    delete_group = waits(AsyncAdmin.delete_group)
    set_group_options = waits(AsyncAdmin.set_group_options)
    lag = waits(AsyncAdmin.lag)
    lags = waits(AsyncAdmin.lags)
    offsets = waits(AsyncAdmin.offsets)
    reset_offsets = waits(AsyncAdmin.reset_offsets)
    dead_letter = waits(AsyncAdmin.dead_letter)
    dead_letter_topic = waits(AsyncAdmin.dead_letter_topic)
    redrive = waits(AsyncAdmin.redrive)
    purge_dead_letters = waits(AsyncAdmin.purge_dead_letters)
    seek = waits(AsyncAdmin.seek)
    replay = waits(AsyncAdmin.replay)
    fork = waits(AsyncAdmin.fork)
    forks = waits(AsyncAdmin.forks)
    compare = waits(AsyncAdmin.compare)
    promote = waits(AsyncAdmin.promote)
    drop_fork = waits(AsyncAdmin.drop_fork)
    delayed = waits(AsyncAdmin.delayed)
    cancel = waits(AsyncAdmin.cancel)
    reschedule = waits(AsyncAdmin.reschedule)
    schedule = waits(AsyncAdmin.schedule)
    schedules = waits(AsyncAdmin.schedules)
    pause_schedule = waits(AsyncAdmin.pause_schedule)
    resume_schedule = waits(AsyncAdmin.resume_schedule)
    delete_schedule = waits(AsyncAdmin.delete_schedule)
    publish = waits(AsyncAdmin.publish)
    read = waits(AsyncAdmin.read)
    receive = waits(AsyncAdmin.receive)
    settle = waits(AsyncAdmin.settle)
    settle_each = waits(AsyncAdmin.settle_each)
    take_leases = waits(AsyncAdmin.take_leases)
    extend_leases = waits(AsyncAdmin.extend_leases)
    finish_leases = waits(AsyncAdmin.finish_leases)
    traces = waits(AsyncAdmin.traces)
    trace = waits(AsyncAdmin.trace)
    search_traces = waits(AsyncAdmin.search_traces)
    stored_steps = waits(AsyncAdmin.stored_steps)
    trace_stats = waits(AsyncAdmin.trace_stats)
    why = waits(AsyncAdmin.why)
    why_key = waits(AsyncAdmin.why_key)
    subjects = waits(AsyncAdmin.subjects)
    schema_versions = waits(AsyncAdmin.schema_versions)
    schemas = waits(AsyncAdmin.schemas)
    register_schema = waits(AsyncAdmin.register_schema)
    schema = waits(AsyncAdmin.schema)
    schema_by_id = waits(AsyncAdmin.schema_by_id)
    check_schema = waits(AsyncAdmin.check_schema)
    delete_schema = waits(AsyncAdmin.delete_schema)
    compatibility = waits(AsyncAdmin.compatibility)
    set_compatibility = waits(AsyncAdmin.set_compatibility)

    def dead_letters(self, topic: str, **chosen: str | int) -> Iterator[DeadLetter]:
        """All that nobody has dealt with yet; some of them by `reason`, `key`, `contains`, `lane`, `header`."""
        return self._each(self._inner.dead_letters(topic, **chosen))

    def all_delayed(self, topic: str) -> Iterator[DelayedMessage]:
        """By partition and offset, however many they are."""
        return self._each(self._inner.all_delayed(topic))

    def all_traces(self, topic: str, partition: int, *, group: str | None = None) -> Iterator[TraceSummary]:
        """By offset, however many are remembered of one partition, each with all that happened."""
        return self._each(self._inner.all_traces(topic, partition, group=group))

    def leases(self, group: str | None = None, topic: str | None = None) -> Iterator[HeldLease]:
        """All that consumers hold now, in runs of neighbours."""
        return self._each(self._inner.leases(group, topic))

    def follow(self, topic: str, **where: Any) -> Iterator[MessageReply]:
        """Every message as it comes, without end; from where, as the async one takes it."""
        return self._each(self._inner.follow(topic, **where))

    def _each(self, items: AsyncIterator[T]) -> Iterator[T]:
        with suppress(StopAsyncIteration):
            while True:
                yield self._portal.run(_next(items))


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _entered(enter: Callable[[], Any]) -> Any:
    return await enter()
