"""Producers that speak the protocol themselves, for measuring what a node spends on a message: a client library would
choose its own batches, and would cost more than the nodes that are measured.

Every producer is idempotent, has a connection to each leader and a few requests under way on it. All requests are made
before the clock starts. One loop drives all connections and checks every answer.
"""

import random
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from struct import Struct
from typing import NamedTuple, cast

from benchmarks.share_load import Wire
from goqueue.records.encode import Head, assemble, encode_records
from goqueue.wire.kafka.frames import request_frame
from goqueue.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from goqueue.wire.kafka.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

VERSION = 10
INIT_VERSION = 4
ACKS_ALL = -1
TIMEOUT_MS = 30_000
NOTHING_S_MAX = 30.0
SEED = 17
RECEIVE_BYTES = 256 * 1024
BASE_MS = 1_760_000_000_000
_SIZE = Struct(">i")
_CODE = Struct(">h")

Places = Mapping[int, str]
"""The address of the leader of each partition."""


class Shape(NamedTuple):
    """What the producers send."""

    value_bytes: int
    batch: int
    """Messages in each."""
    is_mixed: bool = False
    """Keys, headers and sizes from a fifth of `value_bytes` to twice as much; else values of one size and nothing
    else."""
    producers: int = 16
    requests_ahead: int = 5
    """On each connection, unanswered: as many as an idempotent client may have."""

    @property
    def title(self) -> str:
        kind = f"about {self.value_bytes} B with keys and headers" if self.is_mixed else f"{self.value_bytes} B"
        return f"{kind}, {self.batch} a batch, {self.producers} producers"


class Spent(NamedTuple):
    messages: int
    seconds: float
    cpu_s: float
    """Of all nodes."""

    @property
    def rate(self) -> float:
        return self.messages / self.seconds

    @property
    def cpu_us(self) -> float:
        """Of all nodes, for one message."""
        return self.cpu_s * 1e6 / self.messages


class _Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class _Sender:
    """One connection with all that it will send, in order."""

    def __init__(self, address: str, frames: Sequence[bytes], ahead: int, code_at: int) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self._frames = deque(frames)
        self._ahead = ahead
        self._code_at = code_at
        self._unsent = b""
        self._unanswered = 0
        self._received = bytearray()

    @property
    def is_done(self) -> bool:
        return not self._frames and not self._unanswered

    @property
    def wants_to_write(self) -> bool:
        return bool(self._unsent)

    def send(self) -> None:
        room = self._ahead - self._unanswered
        if room > 0 and self._frames:
            taken = [self._frames.popleft() for _ in range(min(room, len(self._frames)))]
            self._unanswered += len(taken)
            self._unsent = b"".join((self._unsent, *taken))
        if self._unsent:
            try:
                sent = self.socket.send(self._unsent)
            except BlockingIOError:
                return
            self._unsent = self._unsent[sent:]

    def receive(self) -> None:
        data = self.socket.recv(RECEIVE_BYTES)
        assert data, "a node has closed the connection"
        received = self._received
        received += data
        at = 0
        while len(received) - at >= _SIZE.size:
            end = at + _SIZE.size + _SIZE.unpack_from(received, at)[0]
            if end > len(received):
                break
            (code,) = _CODE.unpack_from(received, at + self._code_at)
            assert code == 0, f"a batch was refused: {code}"
            self._unanswered -= 1
            at = end
        del received[:at]


def produce(topic: str, leaders: Places, shape: Shape, messages: int, cpu_s: Callable[[], float]) -> Spent:
    """Returns when all are acknowledged. `cpu_s`: what the nodes have spent so far. The first requests of each
    connection are not counted: they are learned from."""
    senders, sent = _senders(topic, leaders, shape, messages)
    first, _ = _senders(topic, leaders, shape, len(leaders) * shape.batch * shape.producers)
    try:
        _drive(first)
        began_s, cpu_began_s = time.monotonic(), cpu_s()
        _drive(senders)
        return Spent(sent, time.monotonic() - began_s, cpu_s() - cpu_began_s)
    finally:
        for sender in (*first, *senders):
            sender.socket.close()


def _drive(senders: Sequence[_Sender]) -> None:
    selector = selectors.DefaultSelector()
    busy = set(senders)
    for sender in senders:
        selector.register(sender.socket, selectors.EVENT_READ, sender)
        sender.send()
    while busy:
        events = selector.select(NOTHING_S_MAX)
        assert events, f"no answer came for {NOTHING_S_MAX} s"
        for key, ready in events:
            sender = key.data
            if ready & selectors.EVENT_READ:
                sender.receive()
            sender.send()
            if sender.is_done:
                busy.discard(sender)
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if sender.wants_to_write else 0)
            if wanted != key.events:
                selector.modify(sender.socket, wanted, sender)
    selector.close()


def _senders(topic: str, leaders: Places, shape: Shape, messages: int) -> tuple[list[_Sender], int]:
    """And how many messages they send in all."""
    batches = max(1, messages // (shape.batch * shape.producers * len(leaders)))
    contents = list(_contents(shape))
    code_at = _code_at(topic)
    senders = []
    wire = Wire(next(iter(leaders.values())))
    for number in range(shape.producers):
        made = wire.call(InitProducerIdRequest(None, 0), INIT_VERSION, InitProducerIdResponse)
        assert made.error_code == 0, made
        frames: dict[str, list[bytes]] = {}
        for turn in range(batches):
            for partition, address in leaders.items():
                content = contents[(turn + partition + number) % len(contents)]
                records = _batch(content, shape.batch, made.producer_id, turn * shape.batch)
                frames.setdefault(address, []).append(_frame(topic, partition, records, turn))
        senders += [_Sender(address, each, shape.requests_ahead, code_at) for address, each in frames.items()]
    wire.close()
    return senders, batches * shape.batch * shape.producers * len(leaders)


def _contents(shape: Shape) -> Iterator[bytearray]:
    """The records of some batches: making each one anew would take longer than sending it."""
    dice = random.Random(SEED)
    for _ in range(16 if shape.is_mixed else 1):
        yield encode_records((_record(number, shape, dice) for number in range(shape.batch)), 0, BASE_MS)


def _record(number: int, shape: Shape, dice: random.Random) -> _Record:
    if not shape.is_mixed:
        return _Record(number, BASE_MS, None, b"x" * shape.value_bytes, [])
    size = shape.value_bytes * dice.choice((1, 2, 3, 5, 8, 10)) // 5
    headers: list[tuple[str, bytes | None]] = [
        (f"header-{index}", dice.randbytes(12)) for index in range(dice.choice((0, 0, 1, 3)))
    ]
    key = dice.choice((None, f"key-{dice.randrange(1000)}".encode()))
    return _Record(number, BASE_MS + number, key, dice.randbytes(size), headers)


def _batch(records: bytearray, count: int, producer_id: int, sequence: int) -> bytearray:
    head = Head(
        count - 1, BASE_MS, BASE_MS + count, count, producer_id=producer_id, producer_epoch=0, base_sequence=sequence
    )
    return assemble(head, records)


def _frame(topic: str, partition: int, records: bytearray, number: int) -> bytes:
    data = [PartitionProduceData(partition, memoryview(records))]
    request = ProduceRequest(None, ACKS_ALL, TIMEOUT_MS, [TopicProduceData(topic, partition_data=data)])
    return b"".join(cast(list[bytes], request_frame(request, VERSION, number, "bench")))


def _code_at(topic: str) -> int:
    """Where the error code stands in an answer for one partition: behind size, correlation id, tags, number of topics,
    name, number of partitions and index."""
    assert len(topic) < 127
    return 4 + 4 + 1 + 1 + 1 + len(topic) + 1 + 4
