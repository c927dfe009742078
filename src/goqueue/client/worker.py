"""Working through a queue: messages are leased, handled and settled, by as many workers as there are.

    worker = Worker("127.0.0.1:9092", "orders", group="packers", concurrency=10)

    @worker.handle
    async def pack(job: Job) -> None:
        ...

    asyncio.run(worker.run())

A handler that returns has done its job; one that raises gets it again later, until it is a dead letter.
"""

import asyncio
import inspect
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from goqueue.client.clock import Backoff, Clock
from goqueue.client.cluster import Cluster
from goqueue.client.connection import Limits
from goqueue.client.errors import ClientError, InvalidArgument, Reject, RetryLater
from goqueue.client.job import Job
from goqueue.client.jobs import JobOptions, Jobs
from goqueue.client.options import between
from goqueue.client.security import Security
from goqueue.client.times import Duration, duration_s
from goqueue.model.errors import InvalidMoment
from goqueue.model.moments import parse_duration_ms
from goqueue.model.names import check_topic_name
from goqueue.ports.dice import Dice
from goqueue.ports.network import Network
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.notation import INT32_MAX

CONCURRENCY_MAX = 10_000
REASON_CHARS_MAX = 500

Handler = Callable[[Job], Awaitable[None]] | Callable[[Job], None]
H = TypeVar("H", bound=Handler)

log = get_logger("goqueue.client")


class Worker:
    """At most `concurrency` jobs are handled at once, and `prefetch` more are leased and wait for their turn.

    Leases are as long as topic and group say, or `lease`, and are kept alive while a job is held, for `hold` at most.
    `retry` says after which delay a failed job comes again, by attempt (1 for the first), if not topic and group do.
    """

    def __init__(  # noqa: PLR0913  one for each option, by name only
        self,
        servers: str | Iterable[str] = "127.0.0.1:9092",
        topics: str | Iterable[str] = (),
        *,
        group: str,
        concurrency: int = 10,
        prefetch: int | None = None,
        start: Literal["earliest", "latest"] = "earliest",
        lease: Duration | None = None,
        hold: Duration = "1h",
        retry: Callable[[int], Duration] | None = None,
        stop_timeout: Duration = "30s",
        request_timeout: Duration = "30s",
        client_id: str = "goqueue",
        backoff: Backoff | None = None,
        clock: Clock | None = None,
        dice: Dice | None = None,
        network: Network | None = None,
        security: Security | None = None,
    ) -> None:
        names = [topics] if isinstance(topics, str) else list(topics)
        if not names:
            raise InvalidArgument("a worker needs a topic")
        for name in names:
            check_topic_name(name)
        if start not in ("earliest", "latest"):
            raise InvalidArgument(f"start is {start!r}, but must be earliest or latest")
        self._concurrency = between("concurrency", concurrency, 1, CONCURRENCY_MAX)
        ahead = self._concurrency if prefetch is None else between("prefetch", prefetch, 0, CONCURRENCY_MAX)
        self._retry = retry
        self._stop_s_max = duration_s("stop_timeout", stop_timeout)
        lease_ms = 0 if lease is None else round(duration_s("lease", lease) * 1000)
        self._cluster = Cluster(
            servers,
            client_id=client_id,
            backoff=backoff,
            limits=Limits(request_s_max=duration_s("request_timeout", request_timeout)),
            clock=clock,
            dice=dice,
            network=network,
            security=security,
        )
        self._jobs = Jobs(
            self._cluster,
            group,
            names,
            JobOptions(
                self._concurrency + ahead, start, between("lease", lease_ms, 0, INT32_MAX), duration_s("hold", hold)
            ),
        )
        self._handler: Handler | None = None
        self._stop = asyncio.Event()
        self._is_started = False

    def handle(self, handler: H) -> H:
        """Let this function handle jobs, when the worker runs. One that is not async runs in a thread."""
        if self._handler is not None:
            raise InvalidArgument("this worker has a handler already")
        self._handler = handler
        return handler

    # -- running a handler

    async def run(self, *, until_signal: bool = False) -> None:
        """Until `stop`; with `until_signal` also until SIGINT or SIGTERM. Jobs that are being handled are finished."""
        if self._handler is None:
            raise InvalidArgument("this worker has no handler: decorate one with @worker.handle")
        with _stop_on_signals(self.stop) if until_signal else _nothing():
            async with self:
                await self._work(self._handler)

    async def _work(self, handler: Handler) -> None:
        room = asyncio.Semaphore(self._concurrency)
        running: dict[asyncio.Task[None], None] = {}

        def ended(task: "asyncio.Task[None]") -> None:
            running.pop(task, None)
            room.release()

        try:
            while True:
                await room.acquire()
                job = await self._jobs.next()
                if job is None:
                    break
                task = asyncio.get_running_loop().create_task(self._do(handler, job), name=repr(job))
                running[task] = None
                task.add_done_callback(ended)
        finally:
            await self._finish(running)

    async def _finish(self, running: "dict[asyncio.Task[None], None]") -> None:
        """Time to finish for those who are at it; what is cut off is delivered again."""
        if running:
            await asyncio.wait(running, timeout=self._stop_s_max)
        late = list(running)
        for task in late:
            task.cancel()
        if late:
            log.warning("jobs were not finished in time, and will be delivered again", jobs=len(late))
            await asyncio.wait(late)

    async def _do(self, handler: Handler, job: Job) -> None:
        try:
            try:
                await _call(handler, job)
            except Exception as error:  # noqa: BLE001  whatever a handler raises is about its job
                if not job.is_settled:
                    await self._failed(job, error)
            else:
                if not job.is_settled:
                    await job.ack()
        except ClientError as error:
            log.warning("a job could not be settled and will be delivered again", job=repr(job), reason=str(error))

    async def _failed(self, job: Job, error: Exception) -> None:
        if isinstance(error, Reject):
            await job.reject(str(error))
            return
        delay: Duration | None = None
        if isinstance(error, RetryLater):
            delay = error.delay
        else:
            log.warning("a job failed", job=repr(job), exc_info=error)
        if delay is None and self._retry is not None:
            delay = self._retry(job.attempt)
        reason = str(error) if isinstance(error, RetryLater) else f"{type(error).__name__}: {error}"
        try:
            delay = None if delay is None else parse_duration_ms(delay)
        except InvalidMoment as mistake:
            log.error("the delay of a retry is none", job=repr(job), reason=str(mistake))
            delay = None
        await job.nack(delay, reason[:REASON_CHARS_MAX])

    # -- as a loop

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[Job]:
        return self._each()

    async def _each(self) -> AsyncIterator[Job]:
        """Jobs as they come, each to be settled by whoever takes it; ends with `stop`."""
        while (job := await self.next()) is not None:
            yield job

    async def next(self, timeout: Duration | None = None) -> Job | None:  # noqa: ASYNC109
        """None: the worker was stopped, or nothing came within `timeout`."""
        if timeout is None:
            return await self._jobs.next()
        try:
            async with asyncio.timeout(duration_s("timeout", timeout)):
                return await self._jobs.next()
        except TimeoutError:
            return None

    async def subscribe(self, *topics: str) -> None:
        """Work on these topics from now on. What is leased of others stays leased, and is settled as before."""
        for name in topics:
            check_topic_name(name)
        if not topics:
            raise InvalidArgument("a worker needs a topic")
        await self._jobs.subscribe(topics)

    def limit(self, jobs_max: int) -> None:
        """Lease so many at once from now on, instead of `concurrency` and `prefetch` together."""
        self._jobs.limit(between("jobs_max", jobs_max, 1, 2 * CONCURRENCY_MAX))

    # -- its life

    async def start(self) -> None:
        if self._is_started:
            return
        self._is_started = True
        try:
            await self._cluster.start()
            await self._jobs.start()
        except BaseException:
            await self.close()
            raise
        if self._stop.is_set():
            self._jobs.stop_fetching()

    def stop(self, *, gives_back: bool = False) -> None:
        """Take no more jobs. `run` returns when those in hand are done. What is leased and was not handed out goes back
        when the worker closes; with `gives_back` now, as a delivery that counts: for who may be long about the others.
        """
        self._stop.set()
        self._jobs.stop_fetching(gives_back=gives_back)

    async def close(self) -> None:
        """What is leased and not settled goes back at once. A second time is fine."""
        self._stop.set()
        await self._jobs.close()
        await self._cluster.close()


async def _call(handler: Handler, job: Job) -> None:
    if inspect.iscoroutinefunction(handler):
        await handler(job)
        return
    result: Any = await asyncio.to_thread(_called, handler, job)
    if inspect.isawaitable(result):  # a callable object, or a partial of an async function
        await result


def _called(handler: Handler, job: Job) -> Any:
    """A thread cannot end the program; an event loop that is told so ends, with all that waits for it left waiting."""
    try:
        return handler(job)
    except SystemExit as error:
        raise RuntimeError(f"the handler called sys.exit({error.code!r})") from error


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
