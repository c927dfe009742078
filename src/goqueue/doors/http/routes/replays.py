"""Reading again: a group sent elsewhere, given part of a topic once more, or copied to try something out."""

from collections.abc import Generator, Iterable
from functools import partial

from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, NOT_FOUND, HttpError
from goqueue.doors.http.filters import filter_of
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DELETES_GROUP, DESCRIBES_GROUP, RESETS
from goqueue.doors.http.routes.groups import group_view
from goqueue.machines.deliveries.commands import Place
from goqueue.model.access import Kind, Operation
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.lag import GroupLag
from goqueue.model.ledgers import LedgerKind
from goqueue.model.ranges import count
from goqueue.model.refusal import Refused
from goqueue.records.replays import Difference, Moved, Replayed, ReplayRequest, Where
from goqueue.wire.rest.operations import replays as operations
from goqueue.wire.rest.replays import (
    CompareQuery,
    Comparison,
    DifferenceReply,
    Fork,
    ForkDropped,
    ForkPath,
    ForkReply,
    Forks,
    ForksQuery,
    ForkSummary,
    MovedPartition,
    Promote,
    PromoteReply,
    Replay,
    ReplayedPartition,
    ReplayGroupPath,
    ReplayReply,
    SeekGroup,
    SeekReply,
)

QUEUE, STREAM = "queue", "stream"
SHARE = "share"
"""The type of a group that only reads queues."""

replays = Handlers(rests_on=(LedgerKind.DELIVERIES, LedgerKind.GROUPS))


@replays.handles(operations.REPLAY, RESETS)
async def replay(call: Call, path: ReplayGroupPath, body: Replay) -> ReplayReply:
    topic = call.topic(body.topic)
    now_ms = call.now_ms
    request = ReplayRequest(
        path.group,
        topic.name,
        Where.parse(body.start, now_ms),
        Where.parse(body.stop, now_ms),
        filter_of(body.filter, now_ms),
        None if body.partitions is None else sorted(set(body.partitions)),
        body.rate,
        body.dry_run,
        body.fork_as,
    )
    if body.fork_as is not None:
        _check_queue_group(call, path.group)
    done: list[Replayed] = await call.ask(lambda done: call.broker.replays.replay(request, done))
    return ReplayReply(
        group=body.fork_as or path.group,
        topic=topic.name,
        dry_run=body.dry_run,
        messages=sum(each.records for each in done),
        partitions=[
            ReplayedPartition(
                partition=each.partition,
                from_offset=each.first_offset,
                to_offset=each.next_offset,
                messages=each.records,
            )
            for each in sorted(done)
        ],
    )


def _check_queue_group(call: Call, group: str) -> None:
    if not call.broker.queues.places(group):
        raise HttpError(NOT_FOUND, "GROUP_ID_NOT_FOUND", f"there is no queue group {group!r}")


@replays.handles(operations.SEEK, RESETS)
async def seek(call: Call, path: ReplayGroupPath, body: SeekGroup) -> SeekReply:
    topic = call.topic(body.topic)
    where = Where.parse(body.to, call.now_ms)
    mode = body.mode or await _mode(call, path.group)
    partitions = None if body.partitions is None else sorted(set(body.partitions))
    moved: list[Moved]
    if mode == QUEUE:
        moved = await call.ask(
            lambda done: call.broker.replays.seek(
                path.group, topic.name, where, done, partitions=partitions, is_dry_run=body.dry_run
            )
        )
    else:
        moved = await call.ask(
            lambda done: call.broker.replays.seek_stream(
                path.group,
                topic.name,
                where,
                done,
                partitions=partitions,
                is_dry_run=body.dry_run,
                is_live=body.live,
            )
        )
    return SeekReply(
        group=path.group,
        topic=topic.name,
        mode=mode,
        dry_run=body.dry_run,
        partitions=[
            MovedPartition(partition=each.partition, before=each.before, after=each.after) for each in sorted(moved)
        ],
    )


async def _mode(call: Call, group: str) -> str:
    places: list[Place] = await call.ask(lambda done: call.broker.replays.places(group, done))
    is_queue, is_stream = bool(places), False
    try:
        found: GroupLag = await call.ask(lambda done: call.broker.lag.of_group(group, done))
        is_stream = found.type != SHARE or any(each.committed is not None for each in found.partitions)
    except Refused as refusal:
        if refusal.code is not Code.GROUP_ID_NOT_FOUND:
            raise
    if is_queue and is_stream:
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", f"{group!r} reads both ways: say mode, queue or stream")
    if not is_queue and not is_stream:
        raise HttpError(
            NOT_FOUND, "GROUP_ID_NOT_FOUND", f"there is no group {group!r}; say mode, queue or stream, to make one"
        )
    return QUEUE if is_queue else STREAM


@replays.handles(operations.FORK, RESETS)
async def fork(call: Call, path: ReplayGroupPath, body: Fork) -> ForkReply:
    await _check_topics(call, path.group)
    _: GoQueueError | None = await call.ask(lambda done: call.broker.replays.fork(path.group, body.name, done))
    return ForkReply(forked=True, group=path.group, fork=body.name)


async def _check_topics(call: Call, group: str) -> None:
    """What a group was given is told to whoever reads the other one: each topic of it has to be theirs to read."""
    places: list[Place] = await call.ask(lambda done: call.broker.replays.places(group, done))
    for topic in {place.topic: None for place in places}:
        call.broker.admit(Kind.TOPIC, topic)


@replays.handles(operations.LIST_FORKS, DESCRIBES_GROUP)
async def list_forks(call: Call, path: ReplayGroupPath, query: ForksQuery) -> Forks:
    call.broker.admit(Kind.GROUP, path.group)
    names = [each for each in call.broker.replays.forks(path.group) if each > (query.cursor or "")]
    if not names and not call.broker.queues.places(path.group):
        await group_view(call, path.group)  # or there is no such group
    shown = names[: query.limit]
    return Forks(
        group=path.group,
        forks=await call.in_turns(_forks(call, path.group, shown)),
        next=shown[-1] if len(names) > len(shown) else None,
    )


def _forks(call: Call, group: str, names: Iterable[str]) -> Generator[None, None, list[ForkSummary]]:
    found = []
    for name in names:
        told = _differences(call, group, name)
        only_group = sum(count(each.only_first) for each in told)
        found.append(
            ForkSummary(fork=name, only_group=only_group, only_fork=sum(count(each.only_second) for each in told))
        )
        yield
    return found


def _differences(call: Call, group: str, other: str) -> list[Difference]:
    """In topics that may be seen."""
    told = call.broker.replays.compare(group, other)
    return [each for each in told if call.broker.allowed(Kind.TOPIC, each.topic, (Operation.DESCRIBE,))]


@replays.handles(operations.COMPARE, DESCRIBES_GROUP)
async def compare(call: Call, path: ReplayGroupPath, query: CompareQuery) -> Comparison:
    for group in (path.group, query.other):
        _check_queue_group(call, group)
    found = _differences(call, path.group, query.other)
    return Comparison(
        group=path.group,
        compared_with=query.other,
        is_equal=not found,
        differences=[
            DifferenceReply(
                topic=each.topic,
                partition=each.partition,
                only_group=[list(one) for one in each.only_first],
                only_with=[list(one) for one in each.only_second],
            )
            for each in found
        ],
    )


@replays.handles(operations.PROMOTE, RESETS)
async def promote(call: Call, path: ReplayGroupPath, body: Promote) -> PromoteReply:
    await _check_topics(call, path.group)
    await _check_topics(call, body.fork)
    _: GoQueueError | None = await call.ask(lambda done: call.broker.replays.promote(body.fork, path.group, done))
    return PromoteReply(promoted=True, group=path.group, fork=body.fork)


@replays.handles(operations.DROP_FORK, DELETES_GROUP)
async def drop_fork(call: Call, path: ForkPath) -> ForkDropped:
    _check_queue_group(call, path.fork)
    if path.fork == path.group:
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", f"{path.group!r} is no fork of itself")
    await call.ask(partial(call.broker.queues.drop, path.fork, None))
    return ForkDropped(deleted=True, group=path.group, fork=path.fork)
