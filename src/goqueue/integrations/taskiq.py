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

from goqueue.client import Producer, Security, Worker
from goqueue.client.message import NewMessage
from goqueue.client.times import Duration

HOLD = "7d"


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
        self._worker: Worker | None = None
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
        for each in (self._worker, self._producer):
            if each is not None:
                await each.close()
        self._worker = self._producer = None

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
        self._worker = worker = Worker(**self._of_worker)
        async with worker:
            async for job in worker:
                yield AckableMessage(data=job.value or b"", ack=job.ack)
