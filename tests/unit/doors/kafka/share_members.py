"""Members of share groups that speak with a door in process, over virtual time."""

from typing import Any, TypeVar

from goqueue.broker.gate import Gate
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.model.codes import Code
from goqueue.wire.kafka.frames import decode_response, request_frame
from goqueue.wire.kafka.messages import share_groups as wire
from goqueue.wire.kafka.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from goqueue.wire.kafka.notation import Message
from tests.brokers import TestBroker
from tests.unit.doors.kafka.transports import FakeTransport, feed

M = TypeVar("M", bound=Message)
GROUP = "g"
GROUP_RESOURCE = 32
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
Acks = dict[int, list[tuple[int, int, list[int]]]]
"""By partition: first offset, last offset, kinds."""


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b".")[:16]


class House:
    """A broker behind its door, without a network; groups begin at the earliest record."""

    def __init__(self, partitions: int = 1, durability: str | None = None, **options: str | None) -> None:
        """`durability`: of the topic, if not as it is without a word."""
        self.broker = TestBroker()
        self.broker.create("orders", partitions, **({} if durability is None else {"durability": durability}))
        self.door = KafkaDoor(Gate(self.broker.broker))
        self.operator = Guest(self)
        wanted = {"share_auto_offset_reset": "earliest"} | options
        self.configure(**{name: text for name, text in wanted.items() if text is not None})

    def configure(self, **options: str) -> Code:
        changes = [IncrementalAlterableConfig(name.replace("_", "."), 0, text) for name, text in options.items()]
        request = IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(GROUP_RESOURCE, GROUP, changes)])
        (answer,) = self.operator.call(request, 1, IncrementalAlterConfigsResponse).responses
        return Code(answer.error_code)

    def publish(self, *values: bytes, partition: int = 0) -> None:
        self.broker.publish("orders", *values, partition=partition)
        self.broker.commit()

    def advance(self, ms: int) -> None:
        self.broker.clock.advance(ms)
        self.broker.commit()


class Guest:
    """One connection."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._connection = house.door._connect()
        self._transport = FakeTransport()
        self._connection.connection_made(self._transport)
        self._sent = 0
        self._read = 0

    def encode(self, request: Message, version: int) -> bytes:
        self._sent += 1
        parts: Any = request_frame(request, version, self._sent, "test")
        return b"".join(parts)

    def post(self, request: Message, version: int) -> None:
        """Nothing else happens yet."""
        feed(self._connection, self.encode(request, version))

    def send(self, request: Message, version: int) -> None:
        self.post(request, version)
        self.house.broker.commit()

    def replies(self, response: type[M], version: int) -> list[M]:
        """Those that have come since the last look."""
        found, written = [], memoryview(bytes(self._transport.written))
        while self._read < len(written):
            end = self._read + 4 + int.from_bytes(written[self._read : self._read + 4], "big")
            found.append(decode_response(response, version, written[self._read + 4 : end])[1])
            self._read = end
        return found

    def next_reply(self, response: type[M]) -> M:
        """The first that has not been looked at."""
        written = memoryview(bytes(self._transport.written))
        end = self._read + 4 + int.from_bytes(written[self._read : self._read + 4], "big")
        found = decode_response(response, 1, written[self._read + 4 : end])[1]
        self._read = end
        return found

    def call(self, request: Message, version: int, response: type[M]) -> M:
        self.send(request, version)
        (reply,) = self.replies(response, version)
        return reply

    def lose_connection(self) -> None:
        self._connection.connection_lost(None)
        self.house.broker.commit()


class Member(Guest):
    """Holds a session open, as clients do."""

    def __init__(self, house: House, name: str = "m", version: int = 1, partitions: int = 1) -> None:
        super().__init__(house)
        self.name = name
        self.version = version
        self.epoch = 0
        self.to_add = list(range(partitions))

    def request(self, acks: Acks | None = None, **fields: Any) -> wire.ShareFetchRequest:
        acks = acks or {}
        parts = [
            wire.SharePartition(number, [wire.AcknowledgementBatch(*each) for each in acks.get(number, ())])
            for number in sorted({*self.to_add, *acks})
        ]
        request = wire.ShareFetchRequest(
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=self.epoch,
            max_records=500,
            topics=[wire.ShareTopic(topic_id("orders"), parts)] if parts else [],
        )
        for field, value in fields.items():
            setattr(request, field, value)
        self.to_add = []
        self.epoch += 1
        return request

    def fetch(self, acks: Acks | None = None, **fields: Any) -> wire.ShareFetchResponse:
        return self.call(self.request(acks, **fields), self.version, wire.ShareFetchResponse)

    def get(self, acks: Acks | None = None, **fields: Any) -> dict[tuple[int, int], int]:
        """Partition, offset: how often it was delivered."""
        return acquired(self.fetch(acks, **fields))

    def park(self, max_wait_ms: int = 500, **fields: Any) -> None:
        self.send(self.request(max_wait_ms=max_wait_ms, **fields), self.version)

    def parked(self) -> list[wire.ShareFetchResponse]:
        return self.replies(wire.ShareFetchResponse, self.version)

    def acknowledge(self, acks: Acks, **fields: Any) -> wire.ShareAcknowledgeResponse:
        request = self.request(acks)
        sent = wire.ShareAcknowledgeRequest(GROUP, self.name, request.share_session_epoch, topics=request.topics)
        for field, value in fields.items():
            setattr(sent, field, value)
        return self.call(sent, self.version, wire.ShareAcknowledgeResponse)

    def ack(self, first: int, last: int, *kinds: int, **fields: Any) -> Code:
        """In partition 0, by itself."""
        response = self.acknowledge({0: [(first, last, list(kinds or (ACCEPT,)))]}, **fields)
        assert response.error_code == 0
        return Code(response.responses[0].partitions[0].error_code)


def parts(response: wire.ShareFetchResponse) -> dict[int, wire.ShareFetchedPartition]:
    return {part.partition_index: part for topic in response.responses for part in topic.partitions}


def acquired(response: wire.ShareFetchResponse) -> dict[tuple[int, int], int]:
    assert response.error_code == 0, response
    return {
        (part.partition_index, offset): run.delivery_count
        for topic in response.responses
        for part in topic.partitions
        for run in part.acquired_records
        for offset in range(run.first_offset, run.last_offset + 1)
    }


def offsets(*numbers: int, count: int = 1) -> dict[tuple[int, int], int]:
    """Of partition 0, each delivered `count` times."""
    return {(0, number): count for number in numbers}
