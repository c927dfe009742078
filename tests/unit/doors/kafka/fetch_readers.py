"""Consumers with fetch sessions that speak with a door in process, over virtual time."""

import asyncio
from typing import Any

from goqueue.doors.kafka.fetch_sessions import FetchSessions
from goqueue.machines.controller_commands import CreateTopic
from goqueue.model.codes import Code
from goqueue.records.batch import split
from goqueue.records.decode import decode
from goqueue.wire.kafka.frames import request_frame
from goqueue.wire.kafka.messages.fetch import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from tests.unit.doors.kafka.share_members import Guest, House

MANY = 1 << 20
LAST_BY_NAME, FIRST_BY_ID = 12, 13


class Reader(Guest):
    """Goes on with its session, as clients do."""

    def __init__(self, house: House, version: int = LAST_BY_NAME) -> None:
        super().__init__(house)
        self.version = version
        self.session = self.epoch = 0

    def request(self, offsets: dict[int, int] | None = None, **fields: Any) -> FetchRequest:
        """`offsets`: of the partitions that are named."""
        topic = fields.pop("topic", "orders")
        known = self.house.broker.broker.topics.image.topics.get(topic)
        topic_id = fields.pop("topic_id", b"?" * 16 if known is None else known.id)
        partition_max = fields.pop("partition_max", MANY)
        parts = [
            FetchPartition(number, fetch_offset=offset, partition_max_bytes=partition_max)
            for number, offset in (offsets or {}).items()
        ]
        gone = fields.pop("forget", ())
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=MANY,
            session_id=self.session,
            session_epoch=self.epoch,
            topics=[FetchTopic(topic, topic_id, parts)] if parts else [],
            forgotten_topics_data=[ForgottenTopic(topic, topic_id, list(gone))] if gone else [],
        )
        for field, value in fields.items():
            setattr(request, field, value)
        return request

    def fetch(self, offsets: dict[int, int] | None = None, **fields: Any) -> FetchResponse:
        self.send(self.request(offsets, **fields), self.version)
        (response,) = self.waited()
        return response

    def park(self, offsets: dict[int, int] | None = None, **fields: Any) -> None:
        self.send(self.request(offsets, **{"max_wait_ms": 500} | fields), self.version)

    def waited(self) -> list[FetchResponse]:
        found = self.replies(FetchResponse, self.version)
        for response in found:
            if response.error_code == Code.NONE:
                self.session = response.session_id
                self.epoch = self.epoch + 1 if self.session else 0
        return found

    def forget_replies(self) -> None:
        """All were looked at."""
        self._transport.written.clear()
        self._read = 0

    def told(self, offsets: dict[int, int] | None = None, **fields: Any) -> dict[int, list[bytes]]:
        """The partitions of an answer, in its order, and what was in them."""
        return values(self.fetch(offsets, **fields))


def partitions(response: FetchResponse) -> dict[int, FetchedPartition]:
    assert response.error_code == Code.NONE
    return {one.partition_index: one for topic in response.responses for one in topic.partitions}


def values(response: FetchResponse) -> dict[int, list[Any]]:
    return {
        number: [record.value for batch in split(memoryview(one.records or b"")) for record in decode(batch)]  # type: ignore[arg-type]
        for number, one in partitions(response).items()
    }


def codes(response: FetchResponse) -> dict[int, int]:
    return {number: one.error_code for number, one in partitions(response).items()}


def create(house: House, topic: str, partitions: int, topic_id: bytes) -> None:
    house.broker.ask(house.broker.broker.topics.submit, CreateTopic(topic, topic_id, partitions))


def fetch_sessions(house: House) -> FetchSessions:
    return house.door.sessions.fetch


async def open_sessions(host: str, port: int, count: int) -> asyncio.StreamWriter:
    """A connection over a network that has asked for so many."""
    reader, writer = await asyncio.open_connection(host, port)
    request = FetchRequest(session_epoch=0, topics=[FetchTopic("orders", partitions=[FetchPartition()])])
    for number in range(count):
        for part in request_frame(request, 12, number, None):
            writer.write(part)  # type: ignore[arg-type]
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    return writer
