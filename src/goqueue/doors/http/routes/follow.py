"""A topic as it grows, as server-sent events: what a browser or curl can read."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial

import msgspec

from goqueue.broker.reading.follow import Follower, Piece
from goqueue.doors.http.as_json import shown_record
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, NOT_FOUND, HttpError
from goqueue.doors.http.filters import filter_of
from goqueue.doors.http.follow_parts import WAITING_MAX, FollowedPart, FollowPart, elsewhere, merged
from goqueue.doors.http.operation import Events, Handlers
from goqueue.doors.http.permissions import READS_TOPIC
from goqueue.model.access import Kind
from goqueue.model.again import Again
from goqueue.model.errors import GoQueueError
from goqueue.model.moments import parse_moment_ms
from goqueue.model.topics import Topic
from goqueue.ports.forwarding import NotHere
from goqueue.records.replays import Where
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
    partitions = range(topic.partitions) if query.partition is None else [query.partition]
    here = call.broker.topics.led(topic.name, partitions)
    positions = _positions(call, topic, query, partitions, here)
    follower = Follower(call.broker.topics, call.broker.clock, topic.name, positions, chosen)
    distant = [number for number in partitions if number not in positions]
    if not distant:
        return Events(_events(call, follower))
    return Events(_events_of_all(call, topic.name, query, follower, distant))


def _positions(
    call: Call, topic: Topic, query: FollowQuery, partitions: Sequence[int], here: Sequence[int]
) -> dict[int, int]:
    """Of those that are led here."""
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
    for number in here:
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
            elif not await call.ask(partial(follower.wait, HEARTBEAT_MS)):
                yield HEARTBEAT
        yield _event("end", b'{"reason":"the node stops"}')
    except GoQueueError as error:
        yield _event("end", _encode({"reason": str(error)}))
    finally:
        call.on_stop.pop(follower.stop, None)
        follower.close()


async def _events_of_all(
    call: Call, topic: str, query: FollowQuery, follower: Follower, distant: list[int]
) -> AsyncGenerator[bytes, None]:
    """This node's partitions, and those that others lead."""
    assert call.forwarding is not None
    seen = _seen(query.last_event_id)
    position = {**follower.positions, **{number: seen[number] for number in distant if number in seen}}
    told: asyncio.Queue[FollowedPart] = asyncio.Queue(WAITING_MAX)
    starts = {number: seen.get(number) for number in distant}
    asking = asyncio.get_running_loop().create_task(
        elsewhere(call, call.forwarding, topic, query, starts, told), name=f"follow {topic}"
    )
    call.on_stop[follower.stop] = None
    try:
        yield RETRY
        async with aclosing(merged(_own_parts(call, follower), told)) as parts:
            async for part in parts:
                call.broker.admit(Kind.TOPIC, topic)  # others do not know when credentials end
                for name, data, after in part.events:
                    position |= after
                    yield _event(name, data, position)
                position |= part.positions
                if not part.events:
                    yield HEARTBEAT
        yield _event("end", b'{"reason":"the node stops"}')
    except GoQueueError as error:
        yield _event("end", _encode({"reason": str(error)}))
    finally:
        asking.cancel()
        await asyncio.wait((asking,))
        call.on_stop.pop(follower.stop, None)
        follower.close()


async def _own_parts(call: Call, follower: Follower) -> AsyncGenerator[FollowedPart, None]:
    while not follower.is_stopped:
        before = dict(follower.positions)
        piece = follower.take() if follower.positions else None
        if piece is not None:
            yield FollowedPart(dict(follower.positions), _parts_of(piece, before))
            await asyncio.sleep(0)
        elif not await call.ask(partial(follower.wait, HEARTBEAT_MS)):
            yield FollowedPart(dict(follower.positions), [])


def look_at_part(
    calling: Callable[[str, str], Call], part: FollowPart, on_done: Callable[[FollowedPart | GoQueueError], None]
) -> Callable[[], None] | None:
    """What is new in partitions that this node leads, for another one that is asked about all."""
    call = calling(part.principal, part.host)
    assert call.forwarding is not None
    kept, homes = call.broker.kept(part.topic), call.forwarding.homes
    if not all(homes.leads(kept, each) for each in part.partitions):
        raise NotHere("it is not led here")
    topic = call.topic(part.topic)
    positions = part.positions
    if positions is None:
        positions = _positions(call, topic, part.query, part.partitions, part.partitions)
    chosen = filter_of(part.query, call.now_ms)
    follower = Follower(call.broker.topics, call.broker.clock, topic.name, positions, chosen)

    def look(again: Again, is_last: bool) -> None:
        before = dict(follower.positions)
        try:
            piece = follower.take()
        except GoQueueError as error:
            follower.close()
            on_done(error.kept())
            return
        if piece is None and not is_last:
            follower.wait(part.wait_ms, lambda _is_news: again(True))
            return
        events = [] if piece is None else _parts_of(piece, before)
        found = FollowedPart(dict(follower.positions), events)
        follower.close()
        on_done(found)

    Again(look)(False)
    return follower.close


def _parts_of(piece: Piece, before: dict[int, int]) -> list[tuple[str, bytes, dict[int, int]]]:
    found: list[tuple[str, bytes, dict[int, int]]] = []
    if piece.missed:
        gap = {"partition": piece.partition, "from": before[piece.partition], "to": piece.first_offset}
        found.append(("skipped", _encode(gap), {piece.partition: piece.first_offset}))
    for record in piece.records:
        data = _encode(MessageReply(**shown_record(piece.partition, record)))
        found.append(("message", data, {piece.partition: record.offset + 1}))
    return found


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
