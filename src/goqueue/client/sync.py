"""The same client without `async`: each object has an event loop in a thread of its own, and calls wait for it.

    with Producer("127.0.0.1:9092") as producer:
        producer.send("orders", b"three apples")

Any thread may call. Callbacks (`on_assigned`, `on_revoked`) run in the loop's thread, and must not call back.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from goqueue.client.admin import Admin as AsyncAdmin
from goqueue.client.consumer import Consumer as AsyncConsumer
from goqueue.client.errors import Closed
from goqueue.client.job import Job as AsyncJob
from goqueue.client.message import Message, Receipt
from goqueue.client.producer import Producer as AsyncProducer
from goqueue.client.worker import Worker as AsyncWorker
from goqueue.wire.rest.dead_letters import DeadLetter
from goqueue.wire.rest.messages import MessageReply

P = ParamSpec("P")
T = TypeVar("T")


class Inner(Protocol):
    async def start(self) -> Any: ...

    async def close(self) -> None: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


I = TypeVar("I", bound=Inner)  # noqa: E741  the inner one


class Portal:
    """An event loop in a thread, and a way in. It exists from `start` to `stop`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_stopped = False

    def start(self) -> None:
        with self._lock:
            if self._loop is None and not self._is_stopped:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for it; whoever is interrupted while waiting cancels it."""
        with self._lock:
            if self._loop is None:
                work.close()
                raise Closed("closed" if self._is_stopped else "not started: use with")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, method: Callable[[], T]) -> T:
        """What is not async must run in the loop's thread too."""

        async def work() -> T:
            return method()

        return self.run(work())

    def stop(self) -> None:
        """A second time is fine."""
        with self._lock:
            self._is_stopped = True
            loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            asyncio.run_coroutine_threadsafe(_end_others(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()


class Face(Generic[I]):
    """What the sync classes have in common."""

    def __init__(self, inner: I) -> None:
        self._inner = inner
        self._portal = Portal(f"goqueue {type(inner).__name__.lower()}")

    def start(self) -> Self:
        """Until a server has answered; `with` does it."""
        self._portal.start()
        try:
            self._portal.run(self._inner.start())
        except BaseException:
            self._portal.stop()
            raise
        return self

    def close(self) -> None:
        try:
            self._portal.run(self._inner.close())
        except Closed:
            return
        finally:
            self._portal.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._portal.run(self._inner.__aexit__(kind, error, trace))
        except Closed:
            return
        finally:
            self._portal.stop()


def _takes(inner: Callable[P, I]) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """An `__init__` that takes what the async class takes."""

    def decorate(init: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        @wraps(init)
        def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
            init(self, inner(*args, **kwargs))

        return call

    return decorate


def _waits(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """An async method as one that waits."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._portal.run(method(self._inner, *args, **kwargs))
        return result

    return call


def _calls(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """A plain method, called in the loop's thread."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._portal.call(partial(method, self._inner, *args, **kwargs))
        return result

    return call


def _posts(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, "asyncio.Future[Receipt]"]],
) -> Callable[Concatenate[Any, P], "concurrent.futures.Future[Receipt]"]:
    """`post`: its future is one that a thread can wait for."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> "concurrent.futures.Future[Receipt]":
        outer: concurrent.futures.Future[Receipt] = concurrent.futures.Future()

        def copy(inner: "asyncio.Future[Receipt]") -> None:
            if inner.cancelled():
                outer.cancel()
            elif (error := inner.exception()) is not None:
                outer.set_exception(error)
            else:
                outer.set_result(inner.result())

        async def work() -> None:
            (await method(self._inner, *args, **kwargs)).add_done_callback(copy)

        self._portal.run(work())
        return outer

    return call


class Producer(Face[AsyncProducer]):
    __doc__ = AsyncProducer.__doc__

    @_takes(AsyncProducer)
    def __init__(self, inner: AsyncProducer) -> None:
        super().__init__(inner)

    send = _waits(AsyncProducer.send)
    send_many = _waits(AsyncProducer.send_many)
    post = _posts(AsyncProducer.post)
    flush = _waits(AsyncProducer.flush)

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

    send_offsets = _waits(AsyncProducer.send_offsets)


class Consumer(Face[AsyncConsumer]):
    __doc__ = AsyncConsumer.__doc__

    @_takes(AsyncConsumer)
    def __init__(self, inner: AsyncConsumer) -> None:
        super().__init__(inner)

    poll = _waits(AsyncConsumer.poll)
    commit = _waits(AsyncConsumer.commit)
    committed = _waits(AsyncConsumer.committed)
    seek = _waits(AsyncConsumer.seek)
    seek_to_time = _waits(AsyncConsumer.seek_to_time)
    pause = _calls(AsyncConsumer.pause)
    resume = _calls(AsyncConsumer.resume)
    position = _calls(AsyncConsumer.position)
    lag = _calls(AsyncConsumer.lag)
    consumed = _calls(AsyncConsumer.consumed)

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

    ack = _waits(AsyncJob.ack)
    nack = _waits(AsyncJob.nack)
    reject = _waits(AsyncJob.reject)
    extend = _waits(AsyncJob.extend)


class Worker(Face[AsyncWorker]):
    __doc__ = AsyncWorker.__doc__

    @_takes(AsyncWorker)
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
        """Take no more jobs."""
        with suppress(Closed):
            self._portal.call(self._inner.stop)

    def next(self) -> Job | None:
        """None: the worker was stopped."""
        job = self._portal.run(self._inner.next())
        return None if job is None else Job(job, self._portal)

    def __iter__(self) -> Iterator[Job]:
        while (job := self.next()) is not None:
            yield job


class Admin(Face[AsyncAdmin]):
    __doc__ = AsyncAdmin.__doc__

    @_takes(AsyncAdmin)
    def __init__(self, inner: AsyncAdmin) -> None:
        super().__init__(inner)

    health = _waits(AsyncAdmin.health)
    is_ready = _waits(AsyncAdmin.is_ready)
    stats = _waits(AsyncAdmin.stats)
    version = _waits(AsyncAdmin.version)
    create_topic = _waits(AsyncAdmin.create_topic)
    topics = _waits(AsyncAdmin.topics)
    topic = _waits(AsyncAdmin.topic)
    partitions = _waits(AsyncAdmin.partitions)
    set_options = _waits(AsyncAdmin.set_options)
    add_partitions = _waits(AsyncAdmin.add_partitions)
    delete_topic = _waits(AsyncAdmin.delete_topic)
    groups = _waits(AsyncAdmin.groups)
    group = _waits(AsyncAdmin.group)
    delete_group = _waits(AsyncAdmin.delete_group)
    set_group_options = _waits(AsyncAdmin.set_group_options)
    lag = _waits(AsyncAdmin.lag)
    lags = _waits(AsyncAdmin.lags)
    offsets = _waits(AsyncAdmin.offsets)
    reset_offsets = _waits(AsyncAdmin.reset_offsets)
    dead_letter = _waits(AsyncAdmin.dead_letter)
    redrive = _waits(AsyncAdmin.redrive)
    purge_dead_letters = _waits(AsyncAdmin.purge_dead_letters)
    seek = _waits(AsyncAdmin.seek)
    replay = _waits(AsyncAdmin.replay)
    fork = _waits(AsyncAdmin.fork)
    compare = _waits(AsyncAdmin.compare)
    promote = _waits(AsyncAdmin.promote)
    drop_fork = _waits(AsyncAdmin.drop_fork)
    delayed = _waits(AsyncAdmin.delayed)
    cancel = _waits(AsyncAdmin.cancel)
    reschedule = _waits(AsyncAdmin.reschedule)
    schedule = _waits(AsyncAdmin.schedule)
    schedules = _waits(AsyncAdmin.schedules)
    delete_schedule = _waits(AsyncAdmin.delete_schedule)
    publish = _waits(AsyncAdmin.publish)
    read = _waits(AsyncAdmin.read)
    receive = _waits(AsyncAdmin.receive)
    settle = _waits(AsyncAdmin.settle)
    traces = _waits(AsyncAdmin.traces)
    trace = _waits(AsyncAdmin.trace)
    search_traces = _waits(AsyncAdmin.search_traces)
    trace_stats = _waits(AsyncAdmin.trace_stats)
    why = _waits(AsyncAdmin.why)
    why_key = _waits(AsyncAdmin.why_key)

    def dead_letters(self, topic: str, **chosen: str | int) -> Iterator[DeadLetter]:
        """All that nobody has dealt with yet; some of them by `reason`, `key`, `contains`, `lane`, `header`."""
        return self._each(self._inner.dead_letters(topic, **chosen))

    def follow(self, topic: str, **where: Any) -> Iterator[MessageReply]:
        """Every message as it comes, without end; from where, as the async one takes it."""
        return self._each(self._inner.follow(topic, **where))

    def _each(self, items: AsyncIterator[T]) -> Iterator[T]:
        with suppress(StopAsyncIteration):
            while True:
                yield self._portal.run(_next(items))


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _end_others() -> None:
    """Nobody is left waiting in another thread."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others)


async def _entered(enter: Callable[[], Any]) -> Any:
    return await enter()
