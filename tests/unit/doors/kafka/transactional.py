"""A producer of transactions version 2 (KIP-890) that speaks with a door in process, and what became of its records."""

from typing import Any

from goqueue.model.codes import Code
from goqueue.records.build import build_batch
from goqueue.records.control import ControlKind, decode_control
from goqueue.records.decode import decode
from goqueue.wire.kafka.frames import request_frame
from goqueue.wire.kafka.messages import produce
from goqueue.wire.kafka.messages import transactions as wire
from goqueue.wire.kafka.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tests.brokers import TestBroker
from tests.unit.doors.kafka.share_members import Guest, House, topic_id
from tests.unit.doors.kafka.transports import feed

PRODUCE, COMMIT, END, ADD = 13, 6, 5, 5
NAME = "payments"


class Producer(Guest):
    """As a client that has seen `transaction.version` 2."""

    def __init__(self, house: House, name: str = NAME) -> None:
        super().__init__(house)
        self.name = name
        self.sequences = [0, 0]
        self.id = self.epoch = -1

    def init(self) -> "Producer":
        answer = self.call(wire.InitProducerIdRequest(self.name, 60_000), 5, wire.InitProducerIdResponse)
        assert answer.error_code == Code.NONE
        self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return self

    def request(self, *values: bytes, partition: int = 0, delay_ms: int = 0) -> produce.ProduceRequest:
        headers: list[tuple[str, bytes | None]] = [("gq-delay-ms", b"%d" % delay_ms)] if delay_ms else []
        batch = build_batch(
            [(1000, None, value, headers) for value in values],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences[partition],
            transactional=True,
        )
        self.sequences[partition] += len(values)
        place = produce.PartitionProduceData(partition, memoryview(batch))
        topic = produce.TopicProduceData("", topic_id("orders"), [place])
        return produce.ProduceRequest(self.name, -1, 30_000, [topic])

    def write(self, *values: bytes, partition: int = 0, version: int = PRODUCE) -> tuple[Code, int]:
        request = self.request(*values, partition=partition)
        request.topic_data[0].name = "orders"
        return result(self.call(request, version, produce.ProduceResponse))

    def feed(self, *requests: produce.ProduceRequest) -> None:
        """All in one read, and nothing is synced yet."""
        frames: list[Any] = []
        for request in requests:
            self._sent += 1
            frames += request_frame(request, PRODUCE, self._sent, "test")
        feed(self._connection, b"".join(map(bytes, frames)))

    def end(self, *, commit: bool = True) -> Code:
        answer = self.call(wire.EndTxnRequest(self.name, self.id, self.epoch, commit), END, wire.EndTxnResponse)
        if answer.error_code == Code.NONE:
            self.id, self.epoch, self.sequences = answer.producer_id, answer.producer_epoch, [0, 0]
        return Code(answer.error_code)


def result(answer: produce.ProduceResponse) -> tuple[Code, int]:
    (topic,) = answer.responses
    (partition,) = topic.partition_responses
    return Code(partition.error_code), partition.base_offset


def outcome(broker: TestBroker, partition: int = 0) -> dict[ControlKind | None, list[bytes | None]]:
    """What was committed, what was aborted and what (None) is still open."""
    ended: dict[ControlKind | None, list[bytes | None]] = {}
    waiting: dict[int, list[bytes | None]] = {}
    for batch in broker.broker.topics.replica("orders", partition).batches_from(0):
        control = decode_control(batch) if batch.is_control else None
        if control is not None and control.kind is ControlKind.UNKNOWN:
            continue  # the place of what is delayed
        if control is not None:
            ended.setdefault(control.kind, []).extend(waiting.pop(batch.producer_id, []))
        else:
            waiting.setdefault(batch.producer_id, []).extend(record.value for record in decode(batch))
    for values in waiting.values():
        ended.setdefault(None, []).extend(values)
    return ended


def commit_offset(producer: Producer, offset: int, version: int = COMMIT) -> Code:
    topic = wire.TxnOffsetCommitRequestTopic(
        "orders", topic_id("orders"), [wire.TxnOffsetCommitRequestPartition(0, offset)]
    )
    request = wire.TxnOffsetCommitRequest(producer.name, "readers", producer.id, producer.epoch, topics=[topic])
    answer = producer.call(request, version, wire.TxnOffsetCommitResponse)
    return Code(answer.topics[0].partitions[0].error_code)


def committed_offset(guest: Guest) -> int:
    group = OffsetFetchRequestGroup("readers", topics=[OffsetFetchRequestTopics("orders", partition_indexes=[0])])
    answer = guest.call(OffsetFetchRequest(groups=[group]), 9, OffsetFetchResponse)
    return answer.groups[0].topics[0].partitions[0].committed_offset
