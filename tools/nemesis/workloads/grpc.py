"""gRPC: a queue by Subscribe and Ack, and a log by Publish and Consume, each by one node until it does not answer."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

from grpc import StatusCode

from goqueue.client.errors import ClientError
from goqueue.client.grpc import GrpcClient, GrpcRefused
from goqueue.client.grpc.sync import GrpcClient as SyncClient
from goqueue.wire.grpc.common_pb2 import Message
from tools.nemesis.workloads import kafka
from tools.nemesis.workloads.common import ANSWER_S_MAX, NotDone, Run, Unanswered, make_topic
from tools.nemesis.workloads.pushed import BROKEN, PushedQueue, Source
from tools.nemesis.workloads.queues import LEASE_S

PER_S = 15
DOOR = "grpc"
SURELY_NOT = (StatusCode.INVALID_ARGUMENT, StatusCode.NOT_FOUND, StatusCode.FAILED_PRECONDITION)


def _told(error: ClientError) -> NotDone | Unanswered:
    if isinstance(error, GrpcRefused) and error.status in SURELY_NOT and not error.was_asked_again:
        return NotDone(str(error))
    return Unanswered(repr(error))


class Turning:
    """To one node; to the next one when that does not answer."""

    def __init__(self, run: Run, first: int) -> None:
        self._addresses = itertools.cycle(run.grpc[first % len(run.grpc) :] + run.grpc[: first % len(run.grpc)])
        self._client = self._next()

    def _next(self) -> SyncClient:
        return SyncClient(next(self._addresses), timeout_s=ANSWER_S_MAX).__enter__()

    def publish(self, topic: str, value: str, partition: int | None = None) -> int:
        try:
            wishes = {} if partition is None else {"partition": partition}
            return int(self._client.publish(topic, value.encode(), **wishes).offset)
        except ClientError as error:
            self._client.close()
            self._client = self._next()
            raise _told(error) from error


class Subscription:
    def __init__(self, client: GrpcClient, messages: AsyncIterator[Message]) -> None:
        self._client, self._messages = client, messages

    async def next(self) -> tuple[str, str, Message]:
        async for message in self._messages:
            return message.value.decode(), message.receipt_handle, message
        raise TimeoutError("the stream is over")

    async def settle(self, handle: Message, how: str) -> None:
        try:
            if how == "ack":
                await self._client.ack(handle)
            else:
                await self._client.nack(handle, delay="200ms")
        except ClientError as error:
            raise _told(error) from error


class GrpcQueue(PushedQueue):
    name = "grpc"
    door = DOOR
    queue = "nemesis-grpc-queue"

    def _client(self, run: Run, first: int) -> Any:
        return Turning(run, first)

    def _send(self, client: Any, message_id: str) -> None:
        client.publish(self.queue, message_id)

    def _source(self, run: Run, number: int) -> AbstractAsyncContextManager[Source]:
        return self._open(run.grpc[number % len(run.grpc)])

    @asynccontextmanager
    async def _open(self, address: str) -> AsyncIterator[Source]:
        async with GrpcClient(address, timeout_s=ANSWER_S_MAX, keepalive_ms=5_000) as client:
            wishes: dict[str, Any] = {"max_messages": 1, "lease": f"{LEASE_S}s", "session": "10s"}
            async with client.subscribe("nemesis-grpc", [self.queue], **wishes) as subscription:
                yield Subscription(client, aiter(subscription))


class GrpcLog:
    name = "grpc-log"

    def __init__(self, topic: str = "nemesis-grpc-log", partitions: int = 2) -> None:
        self._topic, self._partitions = topic, partitions

    def prepare(self, run: Run) -> None:
        make_topic(run, self._topic, self._partitions)

    def threads(self, run: Run) -> dict[str, Callable[[], None]]:
        return {
            "grpc-log-publisher": partial(self._publish, run),
            "grpc-log-reader": lambda: asyncio.run(self._follow(run)),
        }

    def _publish(self, run: Run) -> None:
        client, dice, lives = Turning(run, 1), run.dice("grpc-log-publisher"), 0
        for number in range(1_000_000):
            if run.is_ending.wait(1 / PER_S):
                return
            partition = dice.randrange(self._partitions)
            asked = {"topic": self._topic, "partition": partition, "value": f"{number}"}
            asking = run.book.begin(f"grpc-log-publisher.{lives}", "send", **asked, door=DOOR)
            try:
                offset = client.publish(self._topic, f"{number}", partition)
            except NotDone as error:
                asking.fail(error)
            except Unanswered as error:
                asking.unknown(error)
                lives += 1  # it may still come, behind what is sent now: nothing was said about their order
            else:
                asking.ok(offset=offset)

    async def _follow(self, run: Run) -> None:
        """From the start, again and again: a stream that breaks is begun anew at another node."""
        for attempt in itertools.count():
            if run.is_ending.is_set():
                return
            asked = {"topic": self._topic, "door": DOOR}
            asking = {
                n: run.book.begin("grpc-log-reader", "read", partition=n, **asked) for n in range(self._partitions)
            }
            records: dict[int, list[tuple[int, str]]] = {n: [] for n in range(self._partitions)}
            try:
                async with GrpcClient(run.grpc[attempt % len(run.grpc)], timeout_s=ANSWER_S_MAX) as client:
                    async with asyncio.timeout(ANSWER_S_MAX):
                        async for message in client.consume(self._topic, until_end=True):
                            records[message.partition].append((message.offset, message.value.decode()))
            except BROKEN as error:
                for each in asking.values():
                    each.unknown(repr(error))
            else:
                for number, each in asking.items():
                    each.ok(records=records[number])
            await asyncio.sleep(2)

    def finish(self, run: Run) -> None:
        for number, records in kafka.read_all(run, self._topic, self._partitions):
            asked = {"topic": self._topic, "partition": number, "final": True, "start": 0, "door": "kafka, at the end"}
            run.book.begin("grpc-log-end", "read", **asked).ok(records=records)
