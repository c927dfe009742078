"""What producers repeat: to one partition a client sends the same bytes with every request, but for the correlation id
in front of them and the records behind them. The general decoder reads them once; from then on they are a key.

A frame that begins with the same bytes means the same, since the decoder has nothing else to go by. What follows must
be one stretch of records without tagged fields, to the last byte; everything else is left to the general decoder.
"""

from collections.abc import Callable, Iterable
from struct import Struct
from struct import error as StructError

from goqueue.broker.accounts.quotas import Allowance
from goqueue.broker.tenants.rooms import Room
from goqueue.broker.view.view import View
from goqueue.doors.kafka.connection import Connection
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.replica.replica import Appended, Replica
from goqueue.wire.kafka.errors import MalformedRequest
from goqueue.wire.kafka.frames import RequestHeader, request_frame, response_frame
from goqueue.wire.kafka.messages.produce import (
    DURABILITIES,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from goqueue.wire.kafka.varint import encode_varint, read_varint

ROUTES_MAX = 10_000
"""Of all connections together; a client chooses its own name, so it could fill any room."""
LEARNED_BYTES_MAX = 256 * 1024
"""Larger frames are not worth a copy, which is what learning takes each time it fails."""
HEADS_MAX = 8
"""Lengths of key that one connection may use in turn: as many as the names of its topics have."""

KEY_AT = 8
"""Behind API key, version and correlation id."""
VERSION_MIN = 7
"""From here on every codec is taken, and the answer tells the start of the log."""
FLEXIBLE_FROM = 9
TOPIC_IDS_FROM = 13
BEGINS_AT_ZERO_FROM = 12
"""Transactions version 2."""
NO_TAGS = bytes(3)
"""Behind the records, where nothing is tagged: a zero for the partition, the topic and the request each."""
TAGS_BYTES = len(NO_TAGS)

_unpack_length = Struct(">i").unpack_from
_OUTCOME = Struct(">hqqq")
_MARK = _OUTCOME.pack(-2, -2, -2, -2)
"""Stands for what differs between answers; what comes behind it in an answer is shorter."""

Found = tuple["Route", int, int, int]
"""Where to, the correlation id, where the records begin in the frame and where they end."""


class Route:
    """One partition as one client asks for it in one version."""

    __slots__ = (
        "_asked",
        "_durability",
        "_frame_bytes",
        "_pack",
        "_prefix",
        "_suffix",
        "_version",
        "allowance",
        "begins_at_zero",
        "index",
        "is_limited",
        "replica",
        "room",
        "timeout_ms",
        "topic",
    )

    def __init__(
        self,
        replica: Replica,
        topic: str,
        version: int,
        message: ProduceRequest,
        allowance: Allowance | None,
        room: Room | None,
    ) -> None:
        (asked,) = message.topic_data
        (data,) = asked.partition_data
        self.replica = replica
        self.topic = topic
        self.index = data.index
        self.timeout_ms = message.timeout_ms
        self.allowance = allowance
        """What its client may send in a second, if that is limited."""
        self.room = room
        """What its tenant may publish, likewise."""
        self.is_limited = allowance is not None or room is not None
        self._version = version
        self.begins_at_zero = version >= BEGINS_AT_ZERO_FROM
        self._asked = TopicProduceResponse(asked.name, asked.topic_id)
        self._durability = DURABILITIES[replica.options.durability]
        self._prefix, self._suffix = self._ends(0)
        self._frame_bytes = KEY_AT - 4 + len(self._prefix) + len(_MARK) + len(self._suffix)
        self._pack = Struct(f">ii{len(self._prefix)}s{_OUTCOME.format[1:]}{len(self._suffix)}s").pack

    def _ends(self, throttle_ms: int) -> tuple[bytes, bytes]:
        """What an answer has before and behind what differs."""
        marked = PartitionProduceResponse(self.index, -2, -2, -2, -2, gq_durability=self._durability)
        prefix, mark, suffix = self._frame(0, marked, throttle_ms)[KEY_AT:].rpartition(_MARK)
        assert mark, "these four fields stand in a row in every version"
        return prefix, suffix

    def acknowledge(
        self,
        correlation_ids: Iterable[int],
        results: Iterable[Appended | GoQueueError],
        start_offset: int,
        throttle_ms: int,
    ) -> list[bytes]:
        """The frames that the general encoder would make."""
        pack, size, prefix, suffix = self._pack, self._frame_bytes, self._prefix, self._suffix
        if throttle_ms:
            suffix = self._ends(throttle_ms)[1]
        return [
            pack(size, correlation_id, prefix, 0, result[0], result[2], start_offset, suffix)
            if type(result) is Appended
            else self.refuse(correlation_id, result, start_offset, Code.NONE, throttle_ms)
            for correlation_id, result in zip(correlation_ids, results)
        ]

    def refuse(
        self,
        correlation_id: int,
        result: Appended | GoQueueError,
        start_offset: int,
        unacknowledged: Code,
        throttle_ms: int,
    ) -> bytes:
        """Either it was turned away, or it was taken and cannot be acknowledged."""
        answer = PartitionProduceResponse(self.index, unacknowledged, -1)
        if isinstance(result, GoQueueError):
            answer.error_code, answer.error_message = code_of(result), str(result)
        else:
            answer.log_append_time_ms, answer.log_start_offset = result.append_time, start_offset
        return self._frame(correlation_id, answer, throttle_ms)

    def _frame(self, correlation_id: int, answer: PartitionProduceResponse, throttle_ms: int) -> bytes:
        topic = TopicProduceResponse(self._asked.name, self._asked.topic_id, [answer])
        (frame,) = response_frame(ProduceResponse([topic], throttle_ms), self._version, correlation_id)
        assert isinstance(frame, bytes)
        return frame


class Routes:
    """Of one access. The door forgets them whenever the topics change, so that a route never leads to what is no longer
    there."""

    def __init__(self, broker: View, allowance: Callable[[str], Allowance | None]) -> None:
        """`allowance`: of a client id. When quotas change all routes are learned anew."""
        self.publisher = broker.publisher
        self._allowance = allowance
        self._topics = broker.topics
        self._by_version: dict[int, dict[bytes, Route]] = {}
        self._count = 0

    def forget(self) -> None:
        self._by_version.clear()
        self._count = 0

    def find(self, connection: Connection, frame: memoryview) -> Found | None:
        """None: let the general decoder look at it."""
        try:
            for head in connection.heads:
                version, correlation_id, key = head.unpack_from(frame)  # the API key of Produce is 0
                routes = self._by_version.get(version)
                if routes is None:
                    return None
                route = routes.get(key)
                if route is not None:
                    break
            else:
                return None
            size = head.size
            if version < FLEXIBLE_FROM:
                (length,) = _unpack_length(frame, size)
                start, end = size + 4, size + 4 + length
                is_whole = length >= 0 and end == len(frame)
            else:
                length, start = frame[size], size + 1
                if length > 127:  # up to three bytes are read here, which is enough for 2 MB
                    length += (frame[start] << 7) - 128
                    start += 1
                    if length >= 1 << 14:
                        length += (frame[start] << 14) - (1 << 14)
                        start += 1
                        if length >= 1 << 21:
                            length, start = read_varint(frame, size)
                end = start + length - 1
                is_whole = length > 0 and frame[end:] == NO_TAGS
        except (StructError, IndexError, MalformedRequest):
            return None
        return (route, correlation_id, start, end) if is_whole else None

    def learn(self, connection: Connection, frame: memoryview, header: RequestHeader, message: ProduceRequest) -> None:
        """Only what our own encoder would write in just these bytes: then it is known where each of them belongs."""
        version = header.api_version
        if version < VERSION_MIN or message.acks not in (-1, 1) or len(frame) > LEARNED_BYTES_MAX:
            return
        if len(message.topic_data) != 1:
            return
        (topic,) = message.topic_data
        if len(topic.partition_data) != 1 or topic.partition_data[0].records is None:
            return
        canonical = request_frame(message, version, header.correlation_id, header.client_id)
        if b"".join(canonical)[4:] != frame:  # type: ignore[arg-type]  # no Stretch in what was decoded
            return
        name = topic.name
        if version >= TOPIC_IDS_FROM:
            found = self._topics.image.by_id(topic.topic_id)
            name = found.name if found else ""
        records = topic.partition_data[0].records
        size = len(frame) - len(records)
        size -= 4 if version < FLEXIBLE_FROM else len(encode_varint(len(records) + 1)) + TAGS_BYTES
        key = bytes(frame[KEY_AT:size])
        if key not in self._by_version.get(version, ()):
            try:
                replica = self._topics.replica(name, topic.partition_data[0].index)
            except GoQueueError:
                return
            if message.acks == 1 and replica.has_followers:
                return  # a run waits for all in-sync copies
            allowance, room = self._allowance(header.client_id or ""), self.publisher.rooms(name)
            route = Route(replica, name, version, message, allowance, room)
            if self._count >= ROUTES_MAX:
                self.forget()
            self._count += 1
            self._by_version.setdefault(version, {})[key] = route
        if all(head.size != size for head in connection.heads):
            heads = (Struct(f">ii{len(key)}s"), *connection.heads[: HEADS_MAX - 1])
            connection.heads = tuple(sorted(heads, key=lambda head: head.size))  # a short frame is found before it ends
