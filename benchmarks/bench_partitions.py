"""What more partitions cost, in process, on a disk in memory: consumers with fetch sessions and without, and publishes
of one message. Only the broker's side is measured; what a consumer does with an answer is not.
"""

import asyncio
import gc
from collections.abc import Callable, Iterable
from time import process_time
from typing import Any

from benchmarks.harness import Row, row
from goqueue.broker.gate import Gate
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.machines.controller_commands import CreateTopic
from goqueue.records.build import build_batch
from goqueue.storage.committer import Committer
from goqueue.testing import MemoryDisk, VirtualClock
from goqueue.testing.memory_node import MemoryNode
from goqueue.wire.kafka.frames import decode_response, request_frame
from goqueue.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from goqueue.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PARTITIONS = (1, 100, 1000)
AIM = "< 2 times that of 1 partition"
BACKLOG, BATCH = 300_000, 100
WOKEN, PUBLISHED, TRIES = 300, 2000, 3
FETCH_VERSION, PRODUCE_VERSION = 12, 9
FETCH_BYTES, PARTITION_BYTES = 4 * 1024 * 1024, 1024 * 1024
NO_SESSION_EPOCH = -1
TOPIC = "orders"


class Transport(asyncio.Transport):
    """A connection without a socket."""

    def __init__(self, door: KafkaDoor) -> None:
        super().__init__()
        self._written: list[bytes] = []
        self._connection = door._connect()  # noqa: SLF001  what a listener would do
        self._connection.connection_made(self)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 5555) if name == "peername" else default

    def write(self, data: Any) -> None:
        self._written.append(bytes(data))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self._written.extend(bytes(each) for each in list_of_data)

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def send(self, frame: bytes) -> None:
        while frame:
            room = memoryview(self._connection.get_buffer(-1))
            taken = min(len(room), len(frame))
            room[:taken] = frame[:taken]
            self._connection.buffer_updated(taken)
            frame = frame[taken:]

    def take(self) -> bytes:
        written, self._written = b"".join(self._written), []
        return written


class House:
    """A broker with one topic. `cpu_s` is what it has used."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._clock = VirtualClock()
        self._node = MemoryNode(MemoryDisk(), self._clock, Committer(lambda finish: finish(), self._clock.now_ms))
        self._node.assemble()
        self._work()
        replies: list[Any] = []
        options = {"durability": "os"}
        wanted = CreateTopic(TOPIC, b"0123456789abcdef", partitions, options)
        self._node.broker.topics.submit(wanted, replies.append)
        self._work()
        assert len(replies) == 1
        self.door = KafkaDoor(Gate(self._node.broker))
        self.cpu_s = 0.0

    def _work(self) -> None:
        while True:
            self._clock.run()
            if not self._node.committer.run_once():
                return

    def fill(self, messages: int) -> None:
        data = memoryview(build_batch([(1000, None, b"x" * 100, [])] * BATCH))
        for number in range(messages // BATCH):
            self._node.broker.publisher.publish(TOPIC, number % self.partitions, data)
        self._work()

    def begin(self) -> None:
        """From here on it counts. What was made until now is none of the collector's business, as in a node."""
        gc.collect()
        gc.freeze()
        self.cpu_s = 0.0

    def measured(self, work: Callable[[], object]) -> None:
        started = process_time()
        work()
        self._clock.run()
        self.cpu_s += process_time() - started


class Consumer:
    """Goes on with its session if it is given one, and names all its partitions if not."""

    def __init__(self, house: House, *, with_session: bool) -> None:
        self._house = house
        self._transport = Transport(house.door)
        self._session = 0
        self._epoch = 0 if with_session else NO_SESSION_EPOCH
        self.offsets = dict.fromkeys(range(house.partitions), 0)
        self._named = list(self.offsets)

    def ask(self, wait_ms: int = 0) -> None:
        parts = [FetchPartition(each, -1, self.offsets[each], -1, -1, PARTITION_BYTES) for each in self._named]
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            session_id=self._session,
            session_epoch=self._epoch,
            topics=[FetchTopic(TOPIC, partitions=parts)] if parts else [],
        )
        frame = framed(request, FETCH_VERSION)
        self._house.measured(lambda: self._transport.send(frame))

    def take(self) -> int:
        """How many records have come."""
        _, answer, _ = decode_response(FetchResponse, FETCH_VERSION, memoryview(self._transport.take())[4:])
        assert answer.error_code == 0
        given = []
        found = 0
        for topic in answer.responses:
            for one in topic.partitions:
                assert one.error_code == 0
                records = memoryview(one.records or b"")  # type: ignore[arg-type]
                while records:
                    count = int.from_bytes(records[57:61], "big")
                    found += count
                    self.offsets[one.partition_index] += count
                    records = records[12 + int.from_bytes(records[8:12], "big") :]
                if one.records:
                    given.append(one.partition_index)
        self._session = answer.session_id
        if self._session:
            self._epoch += 1
            self._named = given
        else:
            self._epoch = min(self._epoch, 0)
            self._named = list(self.offsets)
        return found


def framed(request: Any, version: int) -> bytes:
    parts: Any = request_frame(request, version, 1, "bench")
    return b"".join(parts)


def produce_frames(partitions: int) -> list[bytes]:
    records = memoryview(build_batch([(1000, None, b"x" * 100, [])]))
    return [
        framed(
            ProduceRequest(
                None, 1, 1000, [TopicProduceData(TOPIC, partition_data=[PartitionProduceData(one, records)])]
            ),
            PRODUCE_VERSION,
        )
        for one in range(partitions)
    ]


def consume(partitions: int, *, with_session: bool) -> float:
    """Of a backlog: us a message."""
    house = House(partitions)
    house.fill(BACKLOG)
    house.begin()
    consumer = Consumer(house, with_session=with_session)
    found = 0
    while found < BACKLOG:
        consumer.ask()
        found += consumer.take()
    assert found == BACKLOG
    return house.cpu_s / found * 1e6


def follow(partitions: int, *, with_session: bool) -> float:
    """A consumer at the end of all partitions is woken by each message: us a message, publishing included."""
    house = House(partitions)
    consumer, producer, frames = (
        Consumer(house, with_session=with_session),
        Transport(house.door),
        produce_frames(partitions),
    )
    for frame in frames:  # and then it is at the end
        producer.send(frame)
    house.measured(lambda: None)
    producer.take()
    consumer.ask()
    assert consumer.take() == partitions
    consumer.ask()
    consumer.take()
    house.begin()
    for number in range(WOKEN):
        consumer.ask(wait_ms=500)
        frame = frames[number * 7 % partitions]
        house.measured(lambda frame=frame: producer.send(frame))  # type: ignore[misc]
        assert consumer.take() == 1
    return house.cpu_s / WOKEN * 1e6


def publish(partitions: int) -> float:
    """Of one message at a time, each to the next partition: us a message."""
    house = House(partitions)
    producer, frames = Transport(house.door), produce_frames(partitions)
    for number in range(PUBLISHED + partitions):
        if number == partitions:
            house.begin()  # all routes are known
        frame = frames[number % partitions]
        house.measured(lambda frame=frame: producer.send(frame))  # type: ignore[misc]
        assert producer.take()
    return house.cpu_s / PUBLISHED * 1e6


def run() -> list[Row]:
    works: dict[str, Callable[[int], float]] = {
        "consume, with a session": lambda partitions: consume(partitions, with_session=True),
        "consume, all named each time": lambda partitions: consume(partitions, with_session=False),
        "publish and follow, with a session": lambda partitions: follow(partitions, with_session=True),
        "publish and follow, all named each time": lambda partitions: follow(partitions, with_session=False),
        "publish": publish,
    }
    rows: list[Row] = []
    for name, work in works.items():
        found = {partitions: [work(partitions) for _ in range(TRIES)] for partitions in PARTITIONS}
        one = min(found[1])
        rows += [
            row(f"{name}, {partitions} partitions: CPU a message", min(times), "us", one, AIM, is_cost=True)
            for partitions, times in found.items()
        ]
    return rows


if __name__ == "__main__":
    for each in run():
        print(f"{each['name']}: {each['value']:.3f} us")
