"""The gRPC door, spoken to by grpc's own client; the broker is a process of its own.

The baseline is a call that does nothing, `goqueue.v1.HealthService/Check`, on the same door in the same run: what is
above it is the broker, what is in it is gRPC. The client is Python too and shares the machine, so that rates say less
than the CPU of the server. The ratio is ours divided by the baseline.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple

from benchmarks.harness import Row, node, row
from goqueue.cli.bench.process import Process
from goqueue.client.grpc import GrpcClient
from goqueue.client.grpc.client import new_request
from goqueue.wire.grpc.health_pb2 import HealthCheckRequest
from goqueue.wire.grpc.publish_pb2 import PublishRequest
from goqueue.wire.grpc.topic_pb2 import CreateTopicRequest

CALLERS = 16
UNARY = 4000
STREAMED = 20_000
BATCH = 100
BATCHED = 100_000
VALUE = b"x" * 100
TOPIC = "bench"


class Run(NamedTuple):
    per_s: float
    cpu_us: float
    """Of the server, for each message or call."""


def run() -> list[Row]:
    with node() as broker:
        return asyncio.run(rows(broker.grpc, broker.process))


async def rows(address: str, process: Process) -> list[Row]:
    found: list[Row] = []
    async with GrpcClient(address) as client:
        await client.ask(CreateTopicRequest(name=TOPIC, partitions=1, options={"durability": "os"}))
        await unary(client, CALLERS * 20)
        check = await measured(process, UNARY, lambda: unary(client, UNARY))
        found += run_rows("health check, unary", check, None)
        publish = await measured(process, UNARY, lambda: unary(client, UNARY, is_publish=True))
        found += run_rows("publish 100 bytes, unary", publish, check)
        stream = await measured(process, STREAMED, lambda: streamed(client, STREAMED, 1))
        found += run_rows("publish 100 bytes, stream", stream, check)
        batch = await measured(process, BATCHED, lambda: streamed(client, BATCHED, BATCH))
        found += run_rows(f"publish 100 bytes, stream of batches of {BATCH}", batch, check)
        work = await measured(process, STREAMED, lambda: worked_off(client, STREAMED))
        found += run_rows(f"subscribe and acknowledge up to {BATCH} together", work, check)
    return found


def run_rows(name: str, found: Run, baseline: Run | None) -> Iterator[Row]:
    for label, unit, at in (("messages", "1/s", 0), ("server CPU for each", "us", 1)):
        yield row(f"{name}: {label}", found[at], unit, None if baseline is None else baseline[at])


async def measured(process: Process, count: int, act: Callable[[], Awaitable[None]]) -> Run:
    cpu, began = process.cpu_s(), time.perf_counter()
    await act()
    took, cpu_s = time.perf_counter() - began, process.cpu_s() - cpu
    return Run(count / took, cpu_s / count * 1e6)


async def unary(client: GrpcClient, count: int, *, is_publish: bool = False) -> None:
    async def call() -> None:
        for _ in range(count // CALLERS):
            if is_publish:
                await client.publish(TOPIC, VALUE)
            else:
                await client.ask(HealthCheckRequest())

    await asyncio.gather(*(call() for _ in range(CALLERS)))


async def streamed(client: GrpcClient, count: int, size: int) -> None:
    async def messages() -> AsyncIterator[PublishRequest | list[PublishRequest]]:
        one = new_request(TOPIC, VALUE)
        for _ in range(count // size):
            yield [one] * size if size > 1 else one

    answered = 0
    async for answer in client.publish_stream(messages()):
        assert not answer.HasField("error"), answer
        assert not any(each.HasField("error") for each in answer.batch), answer
        answered += 1
    assert answered == count // size


async def worked_off(client: GrpcClient, count: int) -> None:
    taken = 0
    async with client.subscribe("bench", [TOPIC], max_messages=BATCH) as subscription:
        async for event in subscription.events():
            messages = event.messages.messages
            if messages:
                told = await client.ack_all(messages)
                assert told.success_count == len(messages), told
                taken += len(messages)
            if taken >= count:
                return
