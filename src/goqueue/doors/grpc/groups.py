"""GroupService: looked at, configured, deleted."""

from functools import partial

from goqueue.broker.groups.listing import GroupSummary, page_of_names, summarize
from goqueue.broker.groups.view import GroupView, MemberView, view_group, with_topics
from goqueue.doors.grpc.call import Call, named, page_of
from goqueue.doors.grpc.convert import timestamp_of, topic_partitions
from goqueue.doors.grpc.errors import NOT_FOUND, GrpcError
from goqueue.machines.groups import commands
from goqueue.model.codes import Code
from goqueue.model.refusal import Refused
from goqueue.wire.grpc import common_pb2
from goqueue.wire.grpc import group_pb2 as pb


class GroupService:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def list_groups(self, request: pb.ListGroupsRequest) -> pb.ListGroupsResponse:
        broker, (after, count) = self._call.broker, page_of(request)
        names, following = page_of_names(broker, after, count)
        found: list[GroupSummary] = await self._call.ask(lambda done: summarize(broker, names, done))
        groups = [
            pb.GroupSummary(
                group_id=each.group_id,
                type=each.type,
                state=each.state,
                members=each.members,
                topics=filter(broker.may_describe, each.topics),
            )
            for each in found
        ]
        return pb.ListGroupsResponse(groups=groups, next_page_token=following or "")

    async def describe_group(self, request: pb.DescribeGroupRequest) -> pb.DescribeGroupResponse:
        broker, group_id = self._call.broker, named("group_id", request.group_id)
        found: GroupView = await self._call.ask(lambda done: view_group(broker, group_id, done))
        view = with_topics(found, broker.may_describe)
        return pb.DescribeGroupResponse(
            group_id=view.group_id,
            type=view.type,
            state=view.state,
            generation=view.generation,
            topics=view.topics,
            members=[_member(each) for each in view.members],
            options=dict(broker.queues.options(group_id)),
        )

    async def configure_group(self, request: pb.ConfigureGroupRequest) -> pb.ConfigureGroupResponse:
        broker, group_id = self._call.broker, named("group_id", request.group_id)
        changes: dict[str, str | None] = {**request.options, **dict.fromkeys(request.unset)}
        await self._call.ask(partial(broker.queues.set_options, group_id, changes))
        return pb.ConfigureGroupResponse(options=dict(broker.queues.options(group_id)))

    async def delete_group(self, request: pb.DeleteGroupRequest) -> pb.DeleteGroupResponse:
        broker, group_id = self._call.broker, named("group_id", request.group_id)
        if request.force:
            _: object = await self._call.ask(lambda done: broker.groups.evict(group_id, lambda: done(None)))
        reply: commands.CodeReply = await self._call.ask(
            lambda done: broker.groups.submit(commands.DeleteGroup(group_id), done)
        )
        if reply.code not in (Code.NONE, Code.GROUP_ID_NOT_FOUND):
            raise Refused(reply.code, f"group {group_id!r} has members")
        dropped: Code = await self._call.ask(lambda done: broker.queues.drop(group_id, None, done))
        if reply.code is Code.GROUP_ID_NOT_FOUND and dropped is Code.GROUP_ID_NOT_FOUND:
            words = f"there is no group {group_id!r}"
            raise GrpcError(words, NOT_FOUND, common_pb2.ERROR_CODE_GROUP_NOT_FOUND)
        return pb.DeleteGroupResponse()


def _member(view: MemberView) -> pb.GroupMember:
    shown = pb.GroupMember(
        member_id=view.member_id,
        consumer_id=view.client_id,
        host=view.client_host,
        generation=view.generation,
        partitions=topic_partitions(view.partitions),
    )
    if view.heard_ms is not None:
        shown.last_heartbeat.CopyFrom(timestamp_of(view.heard_ms))
    return shown
