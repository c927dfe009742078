"""Producers that speak the protocol themselves, for measuring what a node spends on a message: a client library would
choose its own batches, and would cost more than the nodes that are measured.

Every producer is idempotent, has a connection to each leader and a few requests under way on it. The code of every
answer is checked.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from struct import Struct
from typing import NamedTuple, cast

from benchmarks.senders import NOTHING_S_MAX, Sender, Spent, connect, send_all
from benchmarks.share_load import JOIN_S, NOT_YET, Wire
from goqueue.records.encode import Head, assemble, encode_records
from goqueue.wire.kafka.frames import request_frame
from goqueue.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from goqueue.wire.kafka.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

VERSION = 10
INIT_VERSION = 4
ACKS_ALL = -1
TIMEOUT_MS = 30_000
SEED = 17
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


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def produce(topic: str, leaders: Places, shape: Shape, messages: int, cpu_s: Callable[[], float]) -> Spent:
    """Returns when all are acknowledged."""
    warm_up = len(leaders) * shape.batch * shape.producers
    return send_all(partial(kafka_senders, topic, leaders, shape), warm_up, messages, cpu_s)


def kafka_senders(topic: str, leaders: Places, shape: Shape, messages: int) -> tuple[list[Sender], int]:
    batches = max(1, messages // (shape.batch * shape.producers * len(leaders)))
    contents = [encode_records(each, 0, BASE_MS) for each in record_lists(shape)]
    counting = partial(count_answers, code_at(topic), shape.batch)
    senders = []
    wire = Wire(next(iter(leaders.values())))
    for number in range(shape.producers):
        producer_id = _init_producer(wire)
        frames: dict[str, list[bytes]] = {}
        for turn in range(batches):
            for partition, address in leaders.items():
                content = contents[(turn + partition + number) % len(contents)]
                records = _batch(content, shape.batch, producer_id, turn * shape.batch)
                frames.setdefault(address, []).append(produce_frame(topic, partition, records, turn))
        for address, each in frames.items():
            senders.append(Sender(connect(address), each, counting, shape.requests_ahead, shape.batch))
    wire.close()
    return senders, batches * shape.batch * shape.producers * len(leaders)


def values_sender(topic: str, address: str, values: Sequence[bytes]) -> Sender:
    """One connection with a message, a batch and a request for each of the values."""
    producer_id = _init_producer(wire := Wire(address))
    wire.close()
    frames = []
    for number, value in enumerate(values):
        records = encode_records([Record(0, BASE_MS, None, value, [])], 0, BASE_MS)
        frames.append(produce_frame(topic, 0, _batch(records, 1, producer_id, number), number))
    return Sender(connect(address), frames, partial(count_answers, code_at(topic), 1), len(frames), 1)


def _init_producer(wire: Wire) -> int:
    deadline_s = time.monotonic() + NOTHING_S_MAX
    while True:
        made = wire.call(InitProducerIdRequest(None, 0), INIT_VERSION, InitProducerIdResponse)
        if made.error_code not in NOT_YET or time.monotonic() > deadline_s:
            break
        time.sleep(JOIN_S)  # a broker that has just been started
    assert made.error_code == 0, made
    return made.producer_id


def count_answers(code_at: int, batch: int, received: bytearray) -> int:
    at = answers = 0
    while len(received) - at >= _SIZE.size:
        end = at + _SIZE.size + _SIZE.unpack_from(received, at)[0]
        if end > len(received):
            break
        (code,) = _CODE.unpack_from(received, at + code_at)
        assert code == 0, f"a batch was refused: {code}"
        answers += 1
        at = end
    del received[:at]
    return answers * batch


def record_lists(shape: Shape) -> list[list[Record]]:
    """Those of some batches: making each one anew would take longer than sending it."""
    dice = random.Random(SEED)
    return [[_record(number, shape, dice) for number in range(shape.batch)] for _ in range(16 if shape.is_mixed else 1)]


def _record(number: int, shape: Shape, dice: random.Random) -> Record:
    if not shape.is_mixed:
        return Record(number, BASE_MS, None, b"x" * shape.value_bytes, [])
    size = shape.value_bytes * dice.choice((1, 2, 3, 5, 8, 10)) // 5
    headers: list[tuple[str, bytes | None]] = [
        (f"header-{index}", dice.randbytes(12)) for index in range(dice.choice((0, 0, 1, 3)))
    ]
    key = dice.choice((None, f"key-{dice.randrange(1000)}".encode()))
    return Record(number, BASE_MS + number, key, dice.randbytes(size), headers)


def _batch(records: bytearray, count: int, producer_id: int, sequence: int) -> bytearray:
    head = Head(
        count - 1, BASE_MS, BASE_MS + count, count, producer_id=producer_id, producer_epoch=0, base_sequence=sequence
    )
    return assemble(head, records)


def produce_frame(topic: str, partition: int, records: bytearray, number: int) -> bytes:
    data = [PartitionProduceData(partition, memoryview(records))]
    request = ProduceRequest(None, ACKS_ALL, TIMEOUT_MS, [TopicProduceData(topic, partition_data=data)])
    return b"".join(cast(list[bytes], request_frame(request, VERSION, number, "bench")))


def code_at(topic: str) -> int:
    """Where the error code stands in an answer for one partition: behind size, correlation id, tags, number of topics,
    name, number of partitions and index."""
    assert len(topic) < 127
    return 4 + 4 + 1 + 1 + 1 + len(topic) + 1 + 4
