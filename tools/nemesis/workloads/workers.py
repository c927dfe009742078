"""A queue by our own client: an idempotent producer and `Worker`s, who find the leaders by themselves."""

import itertools
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from goqueue.client import ClientError, DeliveryTimeout, Job, LeaseLost, Worker
from goqueue.client.sync import Producer
from tools.nemesis.workloads.common import NotDone, Run, Unanswered
from tools.nemesis.workloads.pushed import PushedQueue, Source
from tools.nemesis.workloads.queues import LEASE_S

_numbers = itertools.count()


class Jobs:
    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def next(self) -> tuple[str, str, Job]:
        job = await self._worker.next()
        assert job is not None, "nobody stops it"
        return (job.value or b"").decode(), f"job {next(_numbers)}", job

    async def settle(self, handle: Job, how: str) -> None:
        try:
            await (handle.ack() if how == "ack" else handle.nack("200ms"))
        except LeaseLost as error:
            raise NotDone(str(error)) from error
        except ClientError as error:
            raise Unanswered(repr(error)) from error


class WorkerQueue(PushedQueue):
    name = "workers"
    door = "our client"
    queue = "nemesis-jobs"
    may_forget = False
    """A worker keeps the lease of a job alive for as long as it has it."""

    def _client(self, run: Run, first: int) -> Any:
        return Producer(list(run.kafka), delivery_timeout="15s", linger_ms=0).__enter__()

    def _send(self, client: Any, message_id: str) -> None:
        try:
            client.send(self.queue, message_id.encode())
        except DeliveryTimeout as error:
            raise (Unanswered if error.may_be_stored else NotDone)(str(error)) from error
        except ClientError as error:
            raise Unanswered(repr(error)) from error

    def _source(self, run: Run, number: int) -> AbstractAsyncContextManager[Source]:
        return self._open(run)

    @asynccontextmanager
    async def _open(self, run: Run) -> AsyncIterator[Source]:
        worker = Worker(
            list(run.kafka), self.queue, group="nemesis-workers", concurrency=1, prefetch=0, lease=f"{LEASE_S}s"
        )
        async with worker:
            yield Jobs(worker)
