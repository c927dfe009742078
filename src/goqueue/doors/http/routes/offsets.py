"""What groups have done: committed offsets, and setting them back."""

from goqueue.broker.groups.reset import Reset
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, HttpError
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_GROUP, READS, RESETS
from goqueue.doors.http.routes.groups import group_view, moment_or_none
from goqueue.machines.groups import commands
from goqueue.model.access import Kind, Operation
from goqueue.model.ledgers import LedgerKind
from goqueue.model.members import Who
from goqueue.model.moments import parse_moment_ms
from goqueue.model.refusal import Refused
from goqueue.model.topic_partition import TopicPartition
from goqueue.records.replays import Moved, Where
from goqueue.wire.rest.groups import (
    OFFSETS_MAX,
    CommitOffsets,
    CommittedOffsets,
    GroupOffsets,
    GroupPath,
    MovedOffset,
    OffsetsQuery,
    OffsetsReset,
    ResetOffsets,
)
from goqueue.wire.rest.operations import groups as operations

offsets = Handlers(rests_on=(LedgerKind.DELIVERIES, LedgerKind.GROUPS))


def _wanted(body: CommitOffsets) -> dict[TopicPartition, int]:
    if isinstance(body.offsets, list):
        return {TopicPartition(each.topic, each.partition): each.offset for each in body.offsets}
    return {
        TopicPartition(topic, int(number)): offset
        for topic, numbers in body.offsets.items()
        for number, offset in numbers.items()
    }


def _by_topic(found: dict[TopicPartition, int]) -> dict[str, dict[str, int]]:
    shown: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(found.items()):
        shown.setdefault(topic, {})[str(partition)] = offset
    return shown


@offsets.handles(operations.COMMIT_OFFSETS, READS)
async def commit_offsets(call: Call, path: GroupPath, body: CommitOffsets) -> CommittedOffsets:
    wanted = _wanted(body)
    if not wanted:
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", "there are no offsets to commit")
    if len(wanted) > OFFSETS_MAX:
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", f"{len(wanted)} offsets; at most {OFFSETS_MAX} at once")
    for topic in dict.fromkeys(each.topic for each in wanted):
        call.topic(topic)
    who = Who(path.group, body.member_id or "", body.generation or 0)
    _: object = await call.ask(lambda done: call.broker.members.commit(who, wanted, done))
    return CommittedOffsets(status="committed", committed=True, group=path.group, offsets=_by_topic(wanted))


@offsets.handles(operations.GROUP_OFFSETS, DESCRIBES_GROUP)
async def group_offsets(call: Call, path: GroupPath, query: OffsetsQuery) -> GroupOffsets:
    broker, group_id = call.broker, path.group
    reply: commands.FetchOffsetsReply = await call.order_by_code(
        lambda done: broker.groups.ask(commands.FetchOffsets(group_id, None), done)
    )
    found = {TopicPartition(each.topic, each.partition): each.offset for each in reply.offsets if each.offset >= 0}
    for place in broker.queues.places(group_id):
        if not broker.allowed(Kind.TOPIC, place.topic, (Operation.DESCRIBE,)):
            continue
        settled = broker.queues.settled_below(place)
        partition = TopicPartition(place.topic, place.partition)
        if settled is not None and settled > found.get(partition, -1):
            found[partition] = settled
    if query.topic is not None:
        found = {each: offset for each, offset in found.items() if each.topic == query.topic}
    try:
        generation = (await group_view(call, group_id)).generation
    except Refused:
        generation = 0
    shown = _by_topic(found)
    updated_ms = max((each.committed_at_ms for each in reply.offsets if each.topic in shown), default=None)
    return GroupOffsets(
        group_id=group_id, topics=shown, offsets=shown, generation=generation, updated_at=moment_or_none(updated_ms)
    )


@offsets.handles(operations.RESET_OFFSETS, RESETS)
async def reset_offsets(call: Call, path: GroupPath, body: ResetOffsets) -> OffsetsReset:
    call.topic(body.topic)
    partitions = None if body.partition is None else [body.partition]
    is_dry_run = bool(body.dry_run)
    move = Reset(
        call.broker,
        path.group,
        body.topic,
        _where(call, body),
        partitions,
        is_dry_run=is_dry_run,
        is_live=bool(body.live),
    )
    moves: list[Moved] = await call.ask(move.run)
    return OffsetsReset(
        group=path.group,
        topic=body.topic,
        dry_run=is_dry_run,
        results=[MovedOffset(partition=each.partition, before=each.before, after=each.after) for each in moves],
    )


def _where(call: Call, body: ResetOffsets) -> Where:
    given = [name for name in ("timestamp", "offset") if getattr(body, name) is not None]
    strategy = body.strategy or (given[0] if len(given) == 1 else "")
    if given != ([strategy] if strategy in ("timestamp", "offset") else []) or not strategy:
        words = "say earliest or latest as the strategy, or a timestamp, or an offset"
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", words)
    if body.timestamp is not None:
        return Where(moment_ms=parse_moment_ms(body.timestamp, call.now_ms))
    return Where(offset=body.offset) if body.offset is not None else Where(strategy)
