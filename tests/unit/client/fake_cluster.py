"""Brokers that answer as a test wants: two nodes of one cluster, with one topic, of one partition if not of more."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from goqueue.model.codes import Code
from goqueue.records.batch import Batch, check_batch
from goqueue.wire.kafka.frames import decode_request, read_request_header, response_frame
from goqueue.wire.kafka.messages.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse
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
PRODUCE, NEWEST_PRODUCE = 0, 10
NOTHING_ABOUT_IT = -2
"""A verdict: the answer does not say what became of the batch."""


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
        self.asked_of: list[int] = []
        """Which node each of these questions came to."""
        self.partitions = 1
        self.apis = [PRODUCE, 3, 10, 18, 22]
        self.timeouts_ms: list[int] = []
        """Of all batches: how long a node may wait for copies."""
        self.told_leader: Callable[[int], int] = lambda node_id: self.leader
        """Who leads, as each node says."""
        self.told_brokers: Callable[[int], Collection[int]] = lambda node_id: self.ports
        self.told_coordinator: Callable[[int], int] = lambda node_id: node_id
        """-1: it knows of none."""
        self.batches_before_metadata = 0
        """So many come first, however early metadata was asked for."""
        self._late: list[tuple[int, asyncio.StreamWriter, list[bytes]]] = []
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
                if answer is None:
                    continue
                parts: list[bytes] = response_frame(answer, header.api_version, header.correlation_id)  # type: ignore[assignment]
                if isinstance(request, MetadataRequest):
                    self._late.append((len(self.sent) + self.batches_before_metadata, writer, parts))
                else:
                    writer.writelines(parts)
                self._tell_late()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _tell_late(self) -> None:
        due = [one for one in self._late if one[0] <= len(self.sent)]
        self._late = [one for one in self._late if one[0] > len(self.sent)]
        for _, writer, parts in due:
            if not writer.is_closing():
                writer.writelines(parts)

    def _answer(self, node_id: int, request: Message) -> Message | None:
        match request:
            case ApiVersionsRequest():
                apis = [AdvertisedApi(key, 0, NEWEST_PRODUCE if key == PRODUCE else 9) for key in self.apis]
                return ApiVersionsResponse(api_keys=apis)
            case FindCoordinatorRequest():
                return self._coordinator(self.told_coordinator(node_id))
            case InitProducerIdRequest():
                self.producer_ids += 1
                return InitProducerIdResponse(producer_id=PRODUCER_ID, producer_epoch=0)
            case MetadataRequest():
                return self._metadata(node_id, request)
        assert isinstance(request, ProduceRequest)
        return self._produced(node_id, request)

    def _coordinator(self, found: int) -> FindCoordinatorResponse:
        if found < 0:
            return FindCoordinatorResponse(error_code=Code.COORDINATOR_NOT_AVAILABLE, node_id=-1)
        return FindCoordinatorResponse(node_id=found, host="127.0.0.1", port=self.ports[found])

    def _metadata(self, node_id: int, request: MetadataRequest) -> MetadataResponse:
        self.metadata_asked += 1
        self.asked_of.append(node_id)
        leader, told = self.told_leader(node_id), self.told_brokers(node_id)
        partitions = [
            MetadataResponsePartition(0, number, leader, 0, [1, 2], [1, 2]) for number in range(self.partitions)
        ]
        brokers = [MetadataResponseBroker(number, "127.0.0.1", self.ports[number]) for number in told]
        topics = [MetadataResponseTopic(name=TOPIC, partitions=partitions)] if request.topics else []
        return MetadataResponse(brokers=brokers, topics=topics)

    def _produced(self, node_id: int, request: ProduceRequest) -> ProduceResponse | None:
        data = request.topic_data[0].partition_data[0]
        self.timeouts_ms.append(request.timeout_ms)
        assert data.records is not None
        batch = check_batch(data.records)
        self.sent.append((node_id, batch))
        verdict = self.judge(node_id, batch)
        if verdict is None:
            return None
        response = ProduceResponse()
        if verdict == NOTHING_ABOUT_IT:
            return response
        if isinstance(verdict, Moved):
            result = PartitionProduceResponse(data.index, Code.NOT_LEADER_OR_FOLLOWER, -1)
            result.current_leader = LeaderIdAndEpoch(*verdict)
            response.node_endpoints = [NodeEndpoint(verdict.leader, "127.0.0.1", self.ports[verdict.leader])]
        elif isinstance(verdict, Code):
            result = PartitionProduceResponse(data.index, verdict, -1)
        else:
            result = PartitionProduceResponse(data.index, 0, verdict)
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
