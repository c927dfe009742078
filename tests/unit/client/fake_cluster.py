"""Brokers that answer as a test wants: two nodes of one cluster, with one topic of one partition."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from goqueue.model.codes import Code
from goqueue.records.batch import Batch, check_batch
from goqueue.wire.kafka.frames import decode_request, read_request_header, response_frame
from goqueue.wire.kafka.messages.common import LeaderIdAndEpoch, NodeEndpoint
from goqueue.wire.kafka.messages.metadata import (
    AdvertisedApi,
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from goqueue.wire.kafka.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from goqueue.wire.kafka.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from goqueue.wire.kafka.notation import Message

TOPIC = "orders"
PRODUCER_ID = 7


class Moved(NamedTuple):
    """Another one leads, and this node knows which."""

    leader: int
    epoch: int


Verdict = Code | Moved | int | None
"""An error, the offset where it is stored, or no answer at all."""


class FakeCluster:
    def __init__(self) -> None:
        self.ports: dict[int, int] = {}
        self.leader = 1
        self.sent: list[tuple[int, Batch]] = []
        """Node and batch, in the order in which they came."""
        self.judge: Callable[[int, Batch], Verdict] = lambda node_id, batch: 0
        self.producer_ids = 0
        self.metadata_asked = 0
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ports[1]}"

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, node_id: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = memoryview(await reader.readexactly(size))
                header = read_request_header(frame)
                request, _ = decode_request(header, frame)
                answer = self._answer(node_id, request)
                if answer is not None:
                    parts = response_frame(answer, header.api_version, header.correlation_id)
                    writer.writelines(parts)  # type: ignore[arg-type]
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _answer(self, node_id: int, request: Message) -> Message | None:
        if isinstance(request, ApiVersionsRequest):
            return ApiVersionsResponse(
                api_keys=[AdvertisedApi(key, 0, 10 if key == 0 else 9) for key in (0, 3, 10, 18, 22)]
            )
        if isinstance(request, InitProducerIdRequest):
            self.producer_ids += 1
            return InitProducerIdResponse(producer_id=PRODUCER_ID, producer_epoch=0)
        if isinstance(request, MetadataRequest):
            self.metadata_asked += 1
            partition = MetadataResponsePartition(0, 0, self.leader, 0, [1, 2], [1, 2])
            brokers = [MetadataResponseBroker(number, "127.0.0.1", port) for number, port in self.ports.items()]
            topics = [MetadataResponseTopic(name=TOPIC, partitions=[partition])] if request.topics else []
            return MetadataResponse(brokers=brokers, topics=topics)
        assert isinstance(request, ProduceRequest)
        data = request.topic_data[0].partition_data[0]
        assert data.records is not None
        batch = check_batch(data.records)
        self.sent.append((node_id, batch))
        verdict = self.judge(node_id, batch)
        if verdict is None:
            return None
        response = ProduceResponse()
        if isinstance(verdict, Moved):
            result = PartitionProduceResponse(0, Code.NOT_LEADER_OR_FOLLOWER, -1)
            result.current_leader = LeaderIdAndEpoch(*verdict)
            response.node_endpoints = [NodeEndpoint(verdict.leader, "127.0.0.1", self.ports[verdict.leader])]
        elif isinstance(verdict, Code):
            result = PartitionProduceResponse(0, verdict, -1)
        else:
            result = PartitionProduceResponse(0, 0, verdict)
        response.responses = [TopicProduceResponse(TOPIC, partition_responses=[result])]
        return response


@asynccontextmanager
async def fake_cluster() -> AsyncIterator[FakeCluster]:
    cluster = FakeCluster()
    servers = []
    for node_id in (1, 2):
        server = await asyncio.start_server(partial(cluster.serve, node_id), "127.0.0.1", 0)
        cluster.ports[node_id] = server.sockets[0].getsockname()[1]
        servers.append(server)
    try:
        yield cluster
    finally:
        for server in servers:
            server.close()
        cluster.hang_up()
