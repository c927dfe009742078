"""ConsumeService: a topic as a stream, from anywhere and without end; or as a member of a group."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from goqueue.broker.reading.follow import Follower, Piece
from goqueue.doors.grpc.call import Call, named
from goqueue.doors.grpc.convert import duration_ms_of, message_of, moment_ms_of, payload_bytes, timestamp_of
from goqueue.doors.grpc.errors import GrpcError
from goqueue.doors.grpc.serving import Writing
from goqueue.doors.grpc.subscription import Subscription
from goqueue.model.topics import Topic
from goqueue.records.filters import RecordFilter
from goqueue.records.replays import Where
from goqueue.wire.grpc import consume_pb2 as pb

MESSAGES_DEFAULT, MESSAGES_MAX = 100, 10_000
BYTES_DEFAULT, BYTES_MAX = 1024 * 1024, 3 * 1024 * 1024
"""A client takes 4 MiB at once unless it says otherwise."""
WAIT_MS_DEFAULT, WAIT_MS_MIN, WAIT_MS_MAX = 15_000, 10, 600_000
PARTITIONS_MAX = 256
OVERHEAD_BYTES = 64
"""Of a message: its place, its time and its trace."""

T = TypeVar("T")


class ConsumeService:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def consume(self, request: pb.ConsumeRequest, out: Writing) -> None:
        call = self._call
        topic = call.topic(named("topic", request.topic))
        messages_max = within("max_messages", request.max_messages, MESSAGES_DEFAULT, MESSAGES_MAX)
        bytes_max = within("max_bytes", request.max_bytes, BYTES_DEFAULT, None)
        wait_ms = WAIT_MS_DEFAULT
        if request.HasField("max_wait"):
            wait_ms = duration_ms_of("max_wait", request.max_wait, WAIT_MS_MIN, WAIT_MS_MAX)
        follower = Follower(
            call.broker.topics, call.broker.clock, topic.name, _positions(call, topic, request), RecordFilter()
        )
        try:
            while True:
                piece = follower.take()
                if piece is not None:
                    for batch in _batches(call, topic, piece, messages_max, min(bytes_max, BYTES_MAX)):
                        await out.write(pb.ConsumeResponse(messages=batch))
                elif request.until_end:
                    return
                elif not await call.ask(partial(follower.wait, wait_ms)):
                    now = timestamp_of(call.now_ms)
                    await out.write(pb.ConsumeResponse(heartbeat=pb.Heartbeat(timestamp=now)))
        finally:
            follower.close()

    async def subscribe(self, request: pb.SubscribeRequest, out: Writing) -> None:
        call = self._call
        messages_max = within("max_messages", request.max_messages, MESSAGES_DEFAULT, MESSAGES_MAX)
        bytes_max = within("max_bytes", request.max_bytes, BYTES_DEFAULT, None)
        where = _where(request)
        if where.offset is not None:
            raise GrpcError("a group begins at an end of the log or at a time, not at an offset: reset its offsets")
        subscription = Subscription(call, request, messages_max, min(bytes_max, BYTES_MAX))
        await subscription.run(where, out)


def within(name: str, given: int, default: int, highest: int | None) -> int:
    """What is too many is refused, and not cut: a client would wait for what never comes."""
    if given < 0 or (highest is not None and given > highest):
        limit = "" if highest is None else f" to {highest}"
        raise GrpcError(f"{name} is {given}, but must be from 0{limit}")
    return given or default


def _where(request: pb.ConsumeRequest | pb.SubscribeRequest) -> Where:
    match request.start_position:
        case pb.CONSUME_START_POSITION_EARLIEST:
            return Where("earliest")
        case pb.CONSUME_START_POSITION_LATEST:
            return Where("latest")
        case pb.CONSUME_START_POSITION_OFFSET:
            return Where(offset=request.start_offset if isinstance(request, pb.ConsumeRequest) else 0)
        case pb.CONSUME_START_POSITION_TIMESTAMP:
            if not request.HasField("start_timestamp"):
                raise GrpcError("to start by time, say start_timestamp")
            return Where(moment_ms=moment_ms_of("start_timestamp", request.start_timestamp))
    raise GrpcError(f"there is no start_position {request.start_position}")


def _positions(call: Call, topic: Topic, request: pb.ConsumeRequest) -> dict[int, int]:
    where = _where(request)
    partitions: Sequence[int] = list(dict.fromkeys(request.partitions)) or range(topic.partitions)
    if len(partitions) > PARTITIONS_MAX:
        raise GrpcError(f"choose at most {PARTITIONS_MAX} partitions")
    return {
        number: call.broker.replays.resolve(topic.name, call.partition(topic.name, number), where)
        for number in partitions
    }


def _batches(call: Call, topic: Topic, piece: Piece, messages_max: int, bytes_max: int) -> Iterator[pb.MessageBatch]:
    end = call.broker.topics.replica(topic.name, piece.partition).high_watermark
    missed = piece.missed
    for records in portions(
        ((each, OVERHEAD_BYTES + payload_bytes(each)) for each in piece.records), messages_max, bytes_max
    ):
        found = [message_of(topic.name, topic.id, piece.partition, each) for each in records]
        yield pb.MessageBatch(messages=found, high_watermark=end, missed=missed)
        missed = 0
    if missed:
        yield pb.MessageBatch(high_watermark=end, missed=missed)


def portions(weighed: Iterable[tuple[T, int]], count_max: int, bytes_max: int) -> Iterator[list[T]]:
    """In their order, none too large, but at least one in each."""
    portion: list[T] = []
    size = 0
    for each, weight in weighed:
        if portion and (len(portion) == count_max or size + weight > bytes_max):
            yield portion
            portion, size = [], 0
        portion.append(each)
        size += weight
    if portion:
        yield portion
