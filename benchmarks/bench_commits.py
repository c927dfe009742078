"""What an OffsetCommit costs the broker, in process: 25 consumers commit at a time, over the Kafka protocol, on a disk
in memory. Beside it a Heartbeat of the classic protocol, which goes the same way and stores nothing.
"""

import asyncio
from collections.abc import Sequence
from time import process_time
from typing import Any

from benchmarks.harness import Row, row
from goqueue.broker.gate import Gate
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.machines.controller_commands import CreateTopic
from goqueue.model.codes import Code
from goqueue.storage.committer import Committer
from goqueue.testing import MemoryDisk, VirtualClock
from goqueue.testing.memory_node import MemoryNode
from goqueue.wire.kafka.frames import decode_response, request_frame
from goqueue.wire.kafka.messages import classic_groups, offsets
from goqueue.wire.kafka.notation import Message

AT_A_TIME = 25
ROUNDS, TRIES = 40, 9
COMMIT_VERSION, HEARTBEAT_VERSION = 8, 3
PARTITIONS = (1, 4, 16)


class Client(asyncio.Transport):
    """A connection without a socket."""

    def __init__(self, door: KafkaDoor) -> None:
        super().__init__()
        self.written = b""
        self._connection = door._connect()  # noqa: SLF001  what a listener would do
        self._connection.connection_made(self)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 5555) if name == "peername" else default

    def write(self, data: Any) -> None:
        self.written = bytes(data)

    def is_closing(self) -> bool:
        return False

    def send(self, frame: bytes) -> None:
        memoryview(self._connection.get_buffer(-1))[: len(frame)] = frame
        self._connection.buffer_updated(len(frame))


class House:
    """A broker, and as many clients as speak at a time."""

    def __init__(self) -> None:
        self._clock = VirtualClock()
        self._node = MemoryNode(MemoryDisk(), self._clock, Committer(lambda finish: finish(), self._clock.now_ms))
        self._node.assemble()
        self._work()
        replies: list[Any] = []
        wanted = CreateTopic("orders", b"0123456789abcdef", max(PARTITIONS), {})
        self._node.broker.topics.submit(wanted, replies.append)
        self._work()
        assert replies, "the topic was not made"
        door = KafkaDoor(Gate(self._node.broker))
        self._clients = [Client(door) for _ in range(AT_A_TIME)]

    def _work(self) -> None:
        while True:
            self._clock.run()
            if not self._node.committer.run_once():
                return

    def send(self, frames: Sequence[bytes]) -> None:
        for client, frame in zip(self._clients, frames, strict=True):
            client.send(frame)
        self._work()

    def answers(self) -> list[memoryview]:
        return [memoryview(client.written)[4:] for client in self._clients]


def frame_of(request: Message, version: int) -> bytes:
    parts: Any = request_frame(request, version, 1, "bench")
    return b"".join(parts)


def commits(partitions: int) -> list[bytes]:
    wanted = [offsets.OffsetCommitRequestPartition(number, 5) for number in range(partitions)]
    topics = [offsets.OffsetCommitRequestTopic("orders", partitions=wanted)]
    requests = [offsets.OffsetCommitRequest(f"g{number}", topics=topics) for number in range(AT_A_TIME)]
    return [frame_of(request, COMMIT_VERSION) for request in requests]


def heartbeats() -> list[bytes]:
    return [frame_of(classic_groups.HeartbeatRequest("nobody", 1, "m"), HEARTBEAT_VERSION)] * AT_A_TIME


def cpu_us(house: House, frames: Sequence[bytes]) -> float:
    """Of one request: the best of several tries, since others use the machine too."""
    best = float("inf")
    for _ in range(TRIES):
        started_s = process_time()
        for _ in range(ROUNDS):
            house.send(frames)
        best = min(best, process_time() - started_s)
    return best / (ROUNDS * AT_A_TIME) * 1e6


def run() -> list[Row]:
    house = House()
    baseline = cpu_us(house, heartbeats())
    rows: list[Row] = []
    for partitions in PARTITIONS:
        frames = commits(partitions)
        value = cpu_us(house, frames)
        for answer in house.answers():
            reply = decode_response(offsets.OffsetCommitResponse, COMMIT_VERSION, answer)[1]
            codes = [one.error_code for topic in reply.topics for one in topic.partitions]
            assert codes == [Code.NONE] * partitions
        rows.append(row(f"OffsetCommit, partitions={partitions}, CPU", value, "us", baseline, "baseline: Heartbeat"))
    return rows
