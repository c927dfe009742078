"""Share group members that speak the protocol themselves: a client library would decide how many records it asks for,
and would cost more than the broker that is measured.

Every member has a connection, a session and one request under way, which acknowledges what the answer before brought.
"""

import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from itertools import chain
from struct import Struct
from typing import TypeVar, cast
from uuid import uuid4

from benchmarks.receivers import Shared, receive_all
from benchmarks.senders import connect
from goqueue.cli.bench.broker import OwnBroker
from goqueue.wire.kafka.frames import decode_response, request_frame
from goqueue.wire.kafka.messages import metadata
from goqueue.wire.kafka.messages import share_groups as wire
from goqueue.wire.kafka.messages.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse
from goqueue.wire.kafka.notation import Message

M = TypeVar("M", bound=Message)

HEARTBEAT_VERSION, FETCH_VERSION, ACKNOWLEDGE_VERSION, METADATA_VERSION = 1, 2, 2, 12
COORDINATOR_VERSION = 4
NOT_YET = frozenset((14, 15, 16))
"""Codes of a coordinator that is not there, not ready, or not known to be here."""
EXACTLY = 1
"""As a mode to acquire: `max_records` is a limit, and not only a wish."""
ACCEPT = 1
MAX_WAIT_MS = 100
BYTES_MAX = 1 << 20
ANSWER_S_MAX = 30
JOIN_S = 0.05
"""Between heartbeats of a member that has got no partition yet."""

_SIZE = Struct(">i")


class Wire:
    """One bare connection."""

    def __init__(self, address: str) -> None:
        self.socket = connect(address)
        self._correlation_id = 0
        self.sent_bytes = self.received_bytes = 0

    def send(self, request: Message, version: int) -> None:
        self._correlation_id += 1
        frame = b"".join(cast(list[bytes], request_frame(request, version, self._correlation_id, "bench")))
        self.socket.sendall(frame)
        self.sent_bytes += len(frame)

    def receive(self, response: type[M], version: int) -> M:
        (size,) = _SIZE.unpack(self._read(_SIZE.size))
        frame = self._read(size)
        self.received_bytes += _SIZE.size + size
        correlation_id, message, _ = decode_response(response, version, memoryview(frame))
        assert correlation_id == self._correlation_id
        return message

    def call(self, request: Message, version: int, response: type[M]) -> M:
        self.send(request, version)
        return self.receive(response, version)

    def _read(self, size: int) -> bytearray:
        data = bytearray(size)
        view, filled = memoryview(data), 0
        while filled < size:
            received = self.socket.recv_into(view[filled:])
            assert received, "the broker has closed the connection"
            filled += received
        return data

    def close(self) -> None:
        self.socket.close()


class Member:
    """Invariant: one fetch is under way from `open` to `close`."""

    def __init__(self, address: str, group: str, topic_id: bytes, pull: int) -> None:
        self.group = group
        self.link = Wire(address)
        self._id = urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()  # as Kafka writes ids, and asks for
        self._topic_id = topic_id
        self._pull = pull
        self.requests = 0
        self._held: list[tuple[int, int]] = []

    def join(self, topic: str) -> bool:
        """Whether it has got its partition: a new group prepares it first."""
        request = wire.ShareGroupHeartbeatRequest(self.group, self._id, 0, None, [topic])
        joined = self.link.call(request, HEARTBEAT_VERSION, wire.ShareGroupHeartbeatResponse)
        if joined.error_code in NOT_YET:
            asked = FindCoordinatorRequest(coordinator_keys=[self.group])  # Kafka prepares groups when it is asked
            self.link.call(asked, COORDINATOR_VERSION, FindCoordinatorResponse)
            return False
        assert joined.error_code == 0, joined
        return joined.assignment is not None and bool(joined.assignment.topic_partitions)

    def open(self) -> None:
        self._fetch([wire.SharePartition(0)])

    def _fetch(self, partitions: list[wire.SharePartition]) -> None:
        request = wire.ShareFetchRequest(
            group_id=self.group,
            member_id=self._id,
            share_session_epoch=self.requests,
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=BYTES_MAX,
            max_records=self._pull,
            batch_size=self._pull,
            share_acquire_mode=EXACTLY,
            topics=[wire.ShareTopic(self._topic_id, partitions)] if partitions else [],
        )
        self.requests += 1
        self.link.send(request, FETCH_VERSION)

    def take(self) -> tuple[Iterable[int], int]:
        """Offsets that were leased by the fetch under way, and how many records it has acknowledged."""
        answer = self.link.receive(wire.ShareFetchResponse, FETCH_VERSION)
        assert answer.error_code == 0, answer
        acknowledged, self._held = _count(self._held), []
        for topic in answer.responses:
            for part in topic.partitions:
                assert part.error_code == 0, part
                assert part.acknowledge_error_code == 0, part
                self._held += [(one.first_offset, one.last_offset) for one in part.acquired_records]
                assert all(one.delivery_count == 1 for one in part.acquired_records), part
        assert _count(self._held) <= self._pull
        return chain.from_iterable(range(first, last + 1) for first, last in self._held), acknowledged

    def go_on(self) -> None:
        """Acknowledge what was taken, and ask for more."""
        self._fetch([wire.SharePartition(0, self._acknowledgements())] if self._held else [])

    def close(self) -> int:
        """Acknowledges the rest: so many records."""
        if self._held:
            topics = [wire.ShareTopic(self._topic_id, [wire.SharePartition(0, self._acknowledgements())])]
            request = wire.ShareAcknowledgeRequest(self.group, self._id, self.requests, topics=topics)
            answer = self.link.call(request, ACKNOWLEDGE_VERSION, wire.ShareAcknowledgeResponse)
            assert answer.error_code == 0, answer
            assert all(part.error_code == 0 for topic in answer.responses for part in topic.partitions), answer
        self.link.close()
        return _count(self._held)

    def _acknowledgements(self) -> list[wire.AcknowledgementBatch]:
        return [wire.AcknowledgementBatch(first, last, [ACCEPT]) for first, last in self._held]


def _count(ranges: list[tuple[int, int]]) -> int:
    return sum(last - first + 1 for first, last in ranges)


def share_load(broker: OwnBroker, group: str, topic: str, count: int, pull: int, members: int) -> Shared:
    """Lease and acknowledge all `count` messages of a partition, `pull` at a time; each of them once."""
    everybody = share_members(broker.address, [group] * members, topic, pull)
    return receive_all(everybody, count, broker.process.cpu_s)


def share_members(address: str, groups: Sequence[str], topic: str, pull: int) -> list[Member]:
    """A member for each of the groups, which may be one and the same."""
    topic_id = find_topic_id(address, topic)
    everybody = [Member(address, group, topic_id, pull) for group in groups]
    joining = list(everybody)
    deadline_s = time.monotonic() + ANSWER_S_MAX
    while joining := [member for member in joining if not member.join(topic)]:
        assert time.monotonic() < deadline_s, f"{len(joining)} of {len(everybody)} members got no partition"
        time.sleep(JOIN_S)
    for member in everybody:
        member.open()
    return everybody


def find_topic_id(address: str, topic: str) -> bytes:
    asking = Wire(address)
    request = metadata.MetadataRequest([metadata.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (found,) = asking.call(request, METADATA_VERSION, metadata.MetadataResponse).topics
    asking.close()
    return found.topic_id
