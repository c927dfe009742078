"""A topic as it grows, as server-sent events: what a browser or curl can read."""

from collections.abc import AsyncGenerator

import msgspec

from goqueue.broker.queues.replay import Where
from goqueue.broker.reading.follow import Follower, Piece
from goqueue.doors.http.as_json import shown_record
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, NOT_FOUND, HttpError
from goqueue.doors.http.filters import filter_of
from goqueue.doors.http.operation import Events, Handlers
from goqueue.doors.http.permissions import READS_TOPIC
from goqueue.model.errors import GoQueueError
from goqueue.model.moments import parse_moment_ms
from goqueue.model.topics import Topic
from goqueue.wire.rest.follow import PARTITIONS_MAX, FollowQuery
from goqueue.wire.rest.messages import MessageReply
from goqueue.wire.rest.operations import messages as operations
from goqueue.wire.rest.topics import TopicPath

HEARTBEAT_MS = 15_000
RETRY = b"retry: 1000\n\n"
HEARTBEAT = b": still here\n\n"

follow = Handlers()

_encode = msgspec.json.Encoder().encode


@follow.handles(operations.FOLLOW_TOPIC, READS_TOPIC)
async def follow_topic(call: Call, path: TopicPath, query: FollowQuery) -> Events:
    topic = call.topic(path.topic)
    if query.partition is not None and query.partition >= topic.partitions:
        raise HttpError(
            NOT_FOUND, "UNKNOWN_TOPIC_OR_PARTITION", f"there is no partition {query.partition} of {topic.name!r}"
        )
    if query.partition is None and topic.partitions > PARTITIONS_MAX:
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", f"of more than {PARTITIONS_MAX} partitions choose one")
    chosen = filter_of(query, call.now_ms)
    positions = _positions(call, topic, query)
    return Events(_events(call, Follower(call.broker.topics, call.broker.clock, topic.name, positions, chosen)))


def _positions(call: Call, topic: Topic, query: FollowQuery) -> dict[int, int]:
    partitions = range(topic.partitions) if query.partition is None else [query.partition]
    given = [name for name in (query.start, query.offset, query.from_time) if name is not None]
    if len(given) > 1:
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", "say one of from, offset and from_time")
    if query.offset is not None and len(partitions) > 1:
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", "an offset needs a partition")
    where = Where(end=query.start or "latest")
    if query.offset is not None:
        where = Where(offset=query.offset)
    elif query.from_time is not None:
        where = Where(moment_ms=parse_moment_ms(query.from_time, call.now_ms))
    seen = _seen(query.last_event_id)
    found = {}
    for number in partitions:
        end = call.broker.topics.replica(topic.name, number).high_watermark
        if number in seen:
            found[number] = min(seen[number], end)
        else:
            found[number] = call.broker.replays.resolve(topic.name, number, where if not seen else Where("earliest"))
    return found


def _seen(event_id: str | None) -> dict[int, int]:
    if event_id is None:
        return {}
    pairs = (each.partition(":") for each in event_id.split(","))
    return {int(partition): int(offset) for partition, _, offset in pairs}


async def _events(call: Call, follower: Follower) -> AsyncGenerator[bytes, None]:
    call.on_stop[follower.stop] = None
    try:
        yield RETRY
        while not follower.is_stopped:
            before = dict(follower.positions)
            piece = follower.take()
            if piece is not None:
                told = _told(piece, before, follower.positions)
                if told:
                    yield told
                # Others have their turn, however fast the client takes what comes.
                _: object = await call.ask(lambda done: call.broker.clock.call_soon(lambda: done(None)))
            elif not await call.ask(lambda done: follower.wait(HEARTBEAT_MS, done)):
                yield HEARTBEAT
        yield _event("end", b'{"reason":"the node stops"}')
    except GoQueueError as error:
        yield _event("end", _encode({"reason": str(error)}))
    finally:
        call.on_stop.pop(follower.stop, None)
        follower.close()


def _told(piece: Piece, before: dict[int, int], after: dict[int, int]) -> bytes:
    parts: list[bytes] = []
    if piece.missed:
        gap = {"partition": piece.partition, "from": before[piece.partition], "to": piece.first_offset}
        parts.append(_event("skipped", _encode(gap)))
    position = dict(before)
    for record in piece.records:
        position[piece.partition] = record.offset + 1
        data = _encode(MessageReply(**shown_record(piece.partition, record)))
        parts.append(_event("message", data, position))
    if position != after:  # nothing to show at the end of it: but a client that comes back need not read it again
        parts.append(b"id: %s\n\n" % _id(after))
    return b"".join(parts)


def _event(name: str, data: bytes, position: dict[int, int] | None = None) -> bytes:
    """JSON has no line breaks, so one line holds it."""
    event_id = b"" if position is None else b"id: %s\n" % _id(position)
    return b"%sevent: %s\ndata: %s\n\n" % (event_id, name.encode(), data)


def _id(position: dict[int, int]) -> bytes:
    return ",".join(f"{partition}:{offset}" for partition, offset in position.items()).encode()
