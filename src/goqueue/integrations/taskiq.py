"""GoQueue as the broker of Taskiq.

    broker = GoQueueBroker("127.0.0.1:9092")

    @broker.task
    async def pack(box: int) -> None: ...

A worker's task is acknowledged when Taskiq says so (`ack_type`), and its lease is extended until then. Labels of a task
say how it is delivered: `delay` (seconds), `priority` (`high`, ...), `ttl`, and `queue_name`, its topic.
"""

from collections.abc import AsyncGenerator, Iterable
from typing import Any

from taskiq import AckableMessage, AsyncBroker, BrokerMessage

from goqueue.client import ClientError, Job, Producer, Security, Worker
from goqueue.client.message import NewMessage
from goqueue.client.times import Duration
from goqueue.telemetry.logs import get_logger

HOLD = "7d"

log = get_logger("goqueue.taskiq")


class GoQueueBroker(AsyncBroker):
    """`prefetch`: how many tasks a process of workers holds at once, those that it works on included."""

    def __init__(
        self,
        servers: str | Iterable[str] = "127.0.0.1:9092",
        topic: str = "taskiq",
        *,
        group: str = "taskiq",
        prefetch: int = 100,
        lease: Duration | None = None,
        security: Security | None = None,
    ) -> None:
        super().__init__()
        self._topic = topic
        self._producer: Producer | None = None
        self._workers: list[Worker] = []
        self._of_producer: dict[str, Any] = {"servers": servers, "linger_ms": 0, "security": security}
        self._of_worker: dict[str, Any] = {
            "servers": servers,
            "topics": topic,
            "group": group,
            "concurrency": prefetch,
            "prefetch": 0,
            "lease": lease,
            "hold": HOLD,
            "security": security,
        }

    async def startup(self) -> None:
        await super().startup()
        self._producer = await Producer(**self._of_producer).start()

    async def shutdown(self) -> None:
        """What was taken and not acknowledged goes back at once."""
        await super().shutdown()
        workers, self._workers = self._workers, []
        producer, self._producer = self._producer, None
        for worker in workers:
            await worker.close()
        if producer is not None:
            await producer.close()

    async def kick(self, message: BrokerMessage) -> None:
        """It is stored when this returns."""
        if self._producer is None:
            raise RuntimeError("the broker was not started: await broker.startup()")
        given: NewMessage = {"value": message.message, "headers": {"task": message.task_name.encode()}}
        labels = message.labels
        if labels.get("delay"):
            given["delay"] = round(float(labels["delay"]) * 1000)
        if labels.get("priority") is not None:
            given["priority"] = labels["priority"]
        if labels.get("ttl"):
            given["ttl"] = labels["ttl"]
        await self._producer.send(str(labels.get("queue_name") or self._topic), **given)

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """A receiver that is told to end closes this, and then finishes the tasks that it has: their leases are held,
        and can be settled, until `shutdown`. What it knows nothing of it would acknowledge; here that is a dead letter.
        """
        worker = Worker(**self._of_worker)
        self._workers.append(worker)
        await worker.start()
        try:
            async for job in worker:
                problem = self._problem(job.value or b"")
                if problem is None:
                    yield AckableMessage(data=job.value or b"", ack=job.ack)
                else:
                    await _give_up(job, problem)
        finally:
            worker.stop(gives_back=True)

    def _problem(self, data: bytes) -> str | None:
        try:
            name = self.formatter.loads(data).task_name
        except Exception as error:  # noqa: BLE001  a formatter may be anybody's
            return f"not a task of Taskiq: {type(error).__name__}"
        return None if self.find_task(name) is not None else f"no task of this program: {name}"


async def _give_up(job: Job, problem: str) -> None:
    log.warning("a message becomes a dead letter", job=repr(job), reason=problem)
    try:
        await job.reject(problem)
    except ClientError as error:
        log.warning("a message was not settled, and is delivered again", job=repr(job), reason=str(error))
