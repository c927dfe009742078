"""Share group members that speak the protocol themselves: a client library would decide how many records it asks for,
and would cost more than the broker that is measured.

Every member has a connection, a session and one request under way, which acknowledges what the answer before brought.
All of them are driven by one loop, so the broker has work whenever it has answered one.
"""

import socket
import time
from struct import Struct
from typing import NamedTuple, TypeVar, cast

from goqueue.cli.bench.broker import OwnBroker
from goqueue.wire.kafka.frames import decode_response, request_frame
from goqueue.wire.kafka.messages import metadata
from goqueue.wire.kafka.messages import share_groups as wire
from goqueue.wire.kafka.notation import Message

M = TypeVar("M", bound=Message)

HEARTBEAT_VERSION, FETCH_VERSION, ACKNOWLEDGE_VERSION, METADATA_VERSION = 1, 2, 2, 12
EXACTLY = 1
"""As a mode to acquire: `max_records` is a limit, and not only a wish."""
ACCEPT = 1
MAX_WAIT_MS = 100
BYTES_MAX = 1 << 20
ANSWER_S_MAX = 30
WARM_UP_SHARE = 0.1
"""Of all messages: those of the beginning, and as many at the end, where members wait in vain, are not measured."""

_SIZE = Struct(">i")


class Shared(NamedTuple):
    """What the middle of a load took."""

    messages: int
    requests: int
    seconds: float
    broker_cpu_s: float
    request_bytes: int
    reply_bytes: int
    """Of one request, on average."""


class Wire:
    """One bare connection."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=ANSWER_S_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0
        self.sent_bytes = self.received_bytes = 0

    def send(self, request: Message, version: int) -> None:
        self._correlation_id += 1
        frame = b"".join(cast(list[bytes], request_frame(request, version, self._correlation_id, "bench")))
        self._socket.sendall(frame)
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
            received = self._socket.recv_into(view[filled:])
            assert received, "the broker has closed the connection"
            filled += received
        return data

    def close(self) -> None:
        self._socket.close()


class Member:
    """Invariant: one fetch is under way from `open` to `close`."""

    def __init__(self, address: str, group: str, number: int, topic_id: bytes, pull: int) -> None:
        self.wire = Wire(address)
        self._group = group
        self._id = f"bench-{number}"
        self._topic_id = topic_id
        self._pull = pull
        self.epoch = 0
        self._held: list[tuple[int, int]] = []

    def open(self, topic: str) -> None:
        joined = self.wire.call(
            wire.ShareGroupHeartbeatRequest(self._group, self._id, 0, None, [topic]),
            HEARTBEAT_VERSION,
            wire.ShareGroupHeartbeatResponse,
        )
        assert joined.error_code == 0, joined
        self._fetch([wire.SharePartition(0)])

    def _fetch(self, partitions: list[wire.SharePartition]) -> None:
        request = wire.ShareFetchRequest(
            group_id=self._group,
            member_id=self._id,
            share_session_epoch=self.epoch,
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=BYTES_MAX,
            max_records=self._pull,
            batch_size=self._pull,
            share_acquire_mode=EXACTLY,
            topics=[wire.ShareTopic(self._topic_id, partitions)] if partitions else [],
        )
        self.epoch += 1
        self.wire.send(request, FETCH_VERSION)

    def take(self) -> tuple[list[tuple[int, int]], int]:
        """Ranges of offsets that were leased by the fetch under way, and how many records it has acknowledged."""
        answer = self.wire.receive(wire.ShareFetchResponse, FETCH_VERSION)
        assert answer.error_code == 0, answer
        acknowledged, self._held = _count(self._held), []
        for topic in answer.responses:
            for part in topic.partitions:
                assert part.error_code == 0, part
                assert part.acknowledge_error_code == 0, part
                self._held += [(one.first_offset, one.last_offset) for one in part.acquired_records]
                assert all(one.delivery_count == 1 for one in part.acquired_records), part
        assert _count(self._held) <= self._pull
        return self._held, acknowledged

    def go_on(self) -> None:
        """Acknowledge what was taken, and ask for more."""
        self._fetch([wire.SharePartition(0, self._acknowledgements())] if self._held else [])

    def close(self) -> int:
        """Acknowledges the rest: so many records."""
        if self._held:
            topics = [wire.ShareTopic(self._topic_id, [wire.SharePartition(0, self._acknowledgements())])]
            request = wire.ShareAcknowledgeRequest(self._group, self._id, self.epoch, topics=topics)
            answer = self.wire.call(request, ACKNOWLEDGE_VERSION, wire.ShareAcknowledgeResponse)
            assert answer.error_code == 0, answer
            assert all(part.error_code == 0 for topic in answer.responses for part in topic.partitions), answer
        self.wire.close()
        return _count(self._held)

    def _acknowledgements(self) -> list[wire.AcknowledgementBatch]:
        return [wire.AcknowledgementBatch(first, last, [ACCEPT]) for first, last in self._held]


def _count(ranges: list[tuple[int, int]]) -> int:
    return sum(last - first + 1 for first, last in ranges)


def share_load(broker: OwnBroker, group: str, topic: str, count: int, pull: int, members: int) -> Shared:
    """Lease and acknowledge all `count` messages of a partition, `pull` at a time; each of them once."""
    topic_id = _topic_id(broker.address, topic)
    everybody = [Member(broker.address, group, number, topic_id, pull) for number in range(members)]
    for member in everybody:
        member.open(topic)
    seen = bytearray(count)
    taken = acknowledged = 0
    marks: list[_Mark] = []
    while taken < count:
        for member in everybody:
            leased, more = member.take()
            for first, last in leased:
                assert not any(seen[first : last + 1]), f"a record of {first} to {last} came twice"
                seen[first : last + 1] = b"\1" * (last + 1 - first)
            taken += _count(leased)
            acknowledged += more
            member.go_on()
        if acknowledged >= count * (WARM_UP_SHARE if not marks else 1 - WARM_UP_SHARE) and len(marks) < 2:
            marks.append(_Mark.now(broker, everybody, acknowledged))
    for member in everybody:
        leased, more = member.take()
        assert not leased
        acknowledged += more + member.close()
    assert acknowledged == count, f"{acknowledged} of {count} acknowledged"
    assert all(seen)
    return _between(*marks)


class _Mark(NamedTuple):
    seconds: float
    cpu_s: float
    acknowledged: int
    requests: int
    sent_bytes: int
    received_bytes: int

    @classmethod
    def now(cls, broker: OwnBroker, members: list[Member], acknowledged: int) -> "_Mark":
        wires = [member.wire for member in members]
        return cls(
            time.perf_counter(),
            broker.process.cpu_s(),
            acknowledged,
            sum(member.epoch for member in members),
            sum(wire.sent_bytes for wire in wires),
            sum(wire.received_bytes for wire in wires),
        )


def _between(first: _Mark, last: _Mark) -> Shared:
    requests = last.requests - first.requests
    return Shared(
        last.acknowledged - first.acknowledged,
        requests,
        last.seconds - first.seconds,
        last.cpu_s - first.cpu_s,
        (last.sent_bytes - first.sent_bytes) // requests,
        (last.received_bytes - first.received_bytes) // requests,
    )


def _topic_id(address: str, topic: str) -> bytes:
    asking = Wire(address)
    request = metadata.MetadataRequest([metadata.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (found,) = asking.call(request, METADATA_VERSION, metadata.MetadataResponse).topics
    asking.close()
    return found.topic_id
