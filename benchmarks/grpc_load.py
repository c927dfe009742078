"""Publishes over gRPC by grpc's own client, and calls that do nothing beside them."""

import asyncio
from collections.abc import Awaitable, Callable

from benchmarks.bench_grpc import BATCH, BATCHED, CALLERS, TOPIC, UNARY, measured, streamed, unary
from benchmarks.peers.loads import CPU, FLOW, Figures
from goqueue.cli.bench.broker import OwnBroker
from goqueue.client.grpc import GrpcClient
from goqueue.wire.grpc.topic_pb2 import CreateTopicRequest

EMPTY = "CPU of an empty call"


def publish_unary(broker: OwnBroker) -> Figures:
    async def work(client: GrpcClient) -> Figures:
        empty = await measured(broker.process, UNARY, lambda: unary(client, UNARY))
        found = await measured(broker.process, UNARY, lambda: unary(client, UNARY, is_publish=True))
        return {CPU: found.cpu_us, EMPTY: empty.cpu_us, FLOW: found.per_s}

    return asyncio.run(_with_client(broker, work))


def publish_batches(broker: OwnBroker) -> Figures:
    async def work(client: GrpcClient) -> Figures:
        found = await measured(broker.process, BATCHED, lambda: streamed(client, BATCHED, BATCH))
        return {CPU: found.cpu_us, FLOW: found.per_s}

    return asyncio.run(_with_client(broker, work))


async def _with_client(broker: OwnBroker, work: Callable[[GrpcClient], Awaitable[Figures]]) -> Figures:
    async with GrpcClient(broker.grpc) as client:
        await client.ask(CreateTopicRequest(name=TOPIC, partitions=1, options={"durability": "os"}))
        await unary(client, CALLERS * 20)
        return await work(client)
