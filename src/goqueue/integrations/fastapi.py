"""GoQueue for as long as an application of FastAPI or Starlette runs: one producer, and workers beside the requests.

    queue = Lifespan("127.0.0.1:9092")

    @queue.worker("orders", group="packers")
    async def pack(job: Job) -> None: ...

    app = FastAPI(lifespan=queue)

    @app.post("/orders")
    async def order(text: str, producer: Producer = Depends(queue.producer)) -> None:
        await producer.send("orders", text.encode())

It needs neither package: a lifespan is a function that takes the application and gives a context.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from goqueue.client import Closed, Job, Producer, Security, Worker
from goqueue.client.worker import Handler

H = TypeVar("H", bound=Handler)

__all__ = ["Job", "Lifespan", "Producer"]


class Lifespan:
    def __init__(self, servers: str | Iterable[str] = "127.0.0.1:9092", *, security: Security | None = None) -> None:
        self._of_all: dict[str, Any] = {"servers": servers, "security": security}
        self._handlers: list[tuple[dict[str, Any], Handler]] = []
        self._producer: Producer | None = None

    def worker(self, *topics: str, group: str, **options: Any) -> Callable[[H], H]:
        """Let a function handle the jobs of these topics while the application runs. `options`: of `Worker`."""

        def take(handler: H) -> H:
            self._handlers.append(({"topics": topics, "group": group, **options}, handler))
            return handler

        return take

    def producer(self) -> Producer:
        """Of the running application; as a dependency, or called."""
        if self._producer is None:
            raise Closed("the application does not run: is this its lifespan?")
        return self._producer

    @asynccontextmanager
    async def __call__(self, application: object) -> AsyncIterator[None]:  # noqa: ARG002  the shape of a lifespan
        workers = [self._made(options, handler) for options, handler in self._handlers]
        try:
            async with Producer(**self._of_all, linger_ms=0) as self._producer, asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(each.run()) for each in workers]
                try:
                    yield
                finally:
                    for each in workers:
                        each.stop()
                    if running:
                        await asyncio.wait(running)
        finally:
            self._producer = None

    def _made(self, options: dict[str, Any], handler: Handler) -> Worker:
        worker = Worker(**self._of_all, **options)
        worker.handle(handler)
        return worker
