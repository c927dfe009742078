"""GoQueue as the broker of Dramatiq.

    dramatiq.set_broker(GoQueueBroker("127.0.0.1:9092"))

A queue is a topic. Delays are kept by GoQueue: there are no delay queues, and no worker holds what is not due. What an
actor rejects, or has failed too often, is a dead letter.
"""

from collections.abc import Iterable
from typing import Any

from dramatiq import errors
from dramatiq.broker import Broker, Consumer, MessageProxy
from dramatiq.message import Message
from dramatiq.middleware import Middleware

from goqueue.client import ClientError, InvalidArgument, LeaseLost, MessageTooLarge, Security, sync
from goqueue.client.faces import ProcessLock
from goqueue.client.times import Duration
from goqueue.telemetry.logs import get_logger

HOLD = "7d"
PREFIX = "dramatiq."
HELD_MAX = 10_000
"""What one consumer may hold, however many threads there are."""

ConnectionClosed: Any = errors.ConnectionClosed
QueueNotFound: Any = errors.QueueNotFound  # neither has types

log = get_logger("goqueue.dramatiq")


class GoQueueBroker(Broker):
    """`prefix` stands before the name of each queue, in the name of its topic."""

    def __init__(
        self,
        servers: str | Iterable[str] = "127.0.0.1:9092",
        *,
        middleware: list[Middleware] | None = None,
        group: str = "dramatiq",
        prefix: str = PREFIX,
        lease: Duration | None = None,
        security: Security | None = None,
    ) -> None:
        super().__init__(middleware=middleware)
        self.queues: set[str] = set()
        self._prefix = prefix
        self._producer: sync.Producer | None = None
        self._lock = ProcessLock()
        self._of_all: dict[str, Any] = {"servers": servers, "security": security}
        self._of_worker: dict[str, Any] = {**self._of_all, "group": group, "lease": lease, "hold": HOLD}

    def get_declared_queues(self) -> set[str]:
        return set(self.queues)

    def declare_queue(self, queue_name: str) -> None:
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.emit_after("declare_queue", queue_name)

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """It is stored when this returns. `broker_priority`, an option of an actor or a message, is its lane. What can
        never be sent raises its own error, and no ConnectionClosed, after which callers try again.
        """
        if message.queue_name not in self.queues:
            raise QueueNotFound(message.queue_name)
        self.emit_before("enqueue", message, delay)
        try:
            self._started().send(
                self._prefix + message.queue_name,
                message.encode(),
                headers={"actor": message.actor_name.encode()},
                delay=delay or None,
                priority=message.options.get("broker_priority"),
            )
        except (InvalidArgument, MessageTooLarge):
            raise
        except ClientError as error:
            raise ConnectionClosed(str(error)) from error
        self.emit_after("enqueue", message, delay)
        return message

    def _started(self) -> sync.Producer:
        """One for each process: a server that imports its application and then forks has another one in each child."""
        with self._lock.own:
            if self._producer is None or not self._producer.is_of_this_process:
                self._producer = sync.Producer(**self._of_all, linger_ms=0).start()
            return self._producer

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 30000) -> Consumer:
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        worker = sync.Worker(
            topics=self._prefix + queue_name,
            concurrency=min(max(1, prefetch), HELD_MAX),
            prefetch=0,
            **self._of_worker,
        )
        try:
            return GoQueueConsumer(worker.start(), timeout)
        except ClientError as error:
            raise ConnectionClosed(str(error)) from error

    def close(self) -> None:
        with self._lock.own:
            producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()


class GoQueueProxy(MessageProxy):
    def __init__(self, message: Message[Any], job: sync.Job) -> None:
        super().__init__(message)
        self.job = job


class GoQueueConsumer(Consumer):
    """Of one queue. Dramatiq settles in the thread that reads; leases are extended in another one."""

    def __init__(self, worker: sync.Worker, timeout_ms: int) -> None:
        self._worker = worker
        self._timeout_ms = timeout_ms

    def __next__(self) -> MessageProxy | None:
        try:
            while (job := self._worker.next(self._timeout_ms)) is not None:
                try:
                    return GoQueueProxy(Message.decode(job.value or b""), job)
                except errors.DecodeError as error:
                    job.reject(f"not a message of Dramatiq: {error}")
        except ClientError as error:
            raise ConnectionClosed(str(error)) from error
        return None

    def ack(self, message: MessageProxy) -> None:
        self._settle(message, sync.Job.ack)

    def nack(self, message: MessageProxy) -> None:
        """A dead letter."""
        self._settle(message, sync.Job.reject, "the actor failed, or rejected it")

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Dramatiq closes the consumer next, and what it still holds goes back then, as if it had not been delivered. A
        negative acknowledgement would count as an attempt: after some restarts a message that was never begun would be
        a dead letter.
        """

    def _settle(self, message: MessageProxy, how: Any, *arguments: Any) -> None:
        """Never ConnectionClosed, after which Dramatiq would settle the same message until that succeeds, and that is
        never: a lease ends with its connection, and so does whatever could be said about it.
        """
        assert isinstance(message, GoQueueProxy)
        try:
            how(message.job, *arguments)
        except LeaseLost:
            log.warning("a message was settled too late, and is delivered again", message=message.message_id)
        except ClientError as error:
            said = str(error)
            log.warning(
                "a message was not settled, and may be delivered again", message=message.message_id, reason=said
            )

    def close(self) -> None:
        self._worker.close()
