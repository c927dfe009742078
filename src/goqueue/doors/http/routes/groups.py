"""Groups: looked at, configured, deleted."""

from functools import partial

from goqueue.broker.groups.listing import GroupSummary as FoundGroup
from goqueue.broker.groups.listing import page_of_names, summarize
from goqueue.broker.groups.view import GroupView, MemberView, view_group, with_topics
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import NOT_FOUND, HttpError
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import ALTERS_GROUP_CONFIGS, DELETES_GROUP, DESCRIBES_GROUP, DESCRIBES_GROUP_CONFIGS
from goqueue.machines.groups import commands
from goqueue.model.codes import Code
from goqueue.model.ledgers import LedgerKind
from goqueue.model.moments import format_moment
from goqueue.model.refusal import Refused
from goqueue.wire.rest.groups import (
    DeleteGroupQuery,
    GroupChange,
    GroupDeleted,
    GroupDetails,
    GroupMember,
    GroupOptions,
    GroupPath,
    Groups,
    GroupsQuery,
    GroupSummary,
    TopicAndPartition,
)
from goqueue.wire.rest.operations import groups as operations

EMPTY, STABLE, REBALANCING, DEAD = "Empty", "Stable", "Rebalancing", "Dead"

groups = Handlers(rests_on=(LedgerKind.DELIVERIES, LedgerKind.GROUPS))


def state_of(kafka_state: str) -> str:
    return kafka_state if kafka_state in (EMPTY, STABLE, DEAD) else REBALANCING


def moment_or_none(moment_ms: int | None) -> str | None:
    return None if moment_ms is None else format_moment(moment_ms)


async def group_view(call: Call, group_id: str) -> GroupView:
    view: GroupView = await call.ask(lambda done: view_group(call.broker, group_id, done))
    return with_topics(view, call.broker.may_describe)


@groups.handles(operations.LIST_GROUPS, DESCRIBES_GROUP)
async def list_groups(call: Call, query: GroupsQuery) -> Groups:
    names, following = page_of_names(call.broker, query.cursor, query.limit)
    found: list[FoundGroup] = await call.ask(lambda done: summarize(call.broker, names, done))
    details = [
        GroupSummary(
            id=each.group_id,
            type=each.type,
            state=state_of(each.state),
            members=each.members,
            generation=each.generation,
            topics=list(filter(call.broker.may_describe, each.topics)),
        )
        for each in found
    ]
    return Groups(groups=[each.id for each in details], details=details, next=following)


@groups.handles(operations.DESCRIBE_GROUP, DESCRIBES_GROUP)
async def describe_group(call: Call, path: GroupPath) -> GroupDetails:
    view = await group_view(call, path.group)
    return GroupDetails(
        id=view.group_id,
        group_id=view.group_id,
        type=view.type,
        protocol=view.type,
        state=state_of(view.state),
        generation=view.generation,
        assignor=view.assignor,
        leader_id=view.leader_id,
        topics=list(view.topics),
        members=[_member(each) for each in view.members],
        created_at=moment_or_none(view.created_at_ms),
    )


def _member(view: MemberView) -> GroupMember:
    return GroupMember(
        id=view.member_id,
        member_id=view.member_id,
        client_id=view.client_id,
        host=view.client_host,
        generation=view.generation,
        assigned_partitions=[each.partition for each in view.partitions],
        partitions=[TopicAndPartition(topic=each.topic, partition=each.partition) for each in view.partitions],
        last_heartbeat=moment_or_none(view.heard_ms),
        joined_at=moment_or_none(view.joined_at_ms),
    )


@groups.handles(operations.DELETE_GROUP, DELETES_GROUP)
async def delete_group(call: Call, path: GroupPath, query: DeleteGroupQuery) -> GroupDeleted:
    broker, group_id = call.broker, path.group
    if query.force:
        _: object = await call.ask(lambda done: broker.groups.evict(group_id, lambda: done(None)))
    reply: commands.CodeReply = await call.ask(lambda done: broker.groups.submit(commands.DeleteGroup(group_id), done))
    if reply.code not in (Code.NONE, Code.GROUP_ID_NOT_FOUND):
        raise Refused(reply.code, f"group {group_id!r} has members")
    dropped: Code = await call.ask(lambda done: broker.queues.drop(group_id, None, done))
    if reply.code is Code.GROUP_ID_NOT_FOUND and dropped is Code.GROUP_ID_NOT_FOUND:
        raise HttpError(NOT_FOUND, reply.code.name, f"there is no group {group_id!r}")
    return GroupDeleted(deleted=True, group=group_id)


@groups.handles(operations.GROUP_OPTIONS, DESCRIBES_GROUP_CONFIGS)
async def group_options(call: Call, path: GroupPath) -> GroupOptions:
    return GroupOptions(group=path.group, options=dict(call.broker.queues.options(path.group)))


@groups.handles(operations.CONFIGURE_GROUP, ALTERS_GROUP_CONFIGS)
async def configure_group(call: Call, path: GroupPath, body: GroupChange) -> GroupOptions:
    changes = {name: None if value is None else str(value) for name, value in body.options.items()}
    await call.ask(partial(call.broker.queues.set_options, path.group, changes))
    return await group_options(call, path)
