"""Classic groups: join, sync, heartbeat, leave; describe, list, delete."""

from collections.abc import Callable, Sequence
from functools import partial

from goqueue.broker.groups.listing import group_page, pages
from goqueue.doors.kafka.describing import describe_each
from goqueue.doors.kafka.handlers.share_groups import has_deliveries, listed_without_members
from goqueue.doors.kafka.operations import operations_on_group
from goqueue.doors.kafka.request import Request, failure_code
from goqueue.machines.groups import commands
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.wire.kafka.messages import classic_groups as wire
from goqueue.wire.kafka.messages import describe_groups as wire_describe

MEMBER_ID_REQUIRED_FROM = 4
SKIP_ASSIGNMENT_FROM = 9
GROUP_NOT_FOUND_FROM = 6


def handle_join_group(request: Request) -> None:
    message: wire.JoinGroupRequest = request.message
    command = commands.JoinGroup(
        group_id=message.group_id,
        member_id=message.member_id,
        new_member_id=request.broker.groups.new_member_id(request.header.client_id or ""),
        session_timeout_ms=message.session_timeout_ms,
        rebalance_timeout_ms=message.rebalance_timeout_ms,
        protocol_type=message.protocol_type,
        protocols=tuple(commands.GroupProtocol(one.name, one.metadata) for one in message.protocols),
        instance_id=message.group_instance_id,
        client_id=request.header.client_id or "",
        client_host=request.connection.host,
        knows_member_id_required=request.version >= MEMBER_ID_REQUIRED_FROM,
        knows_skip_assignment=request.version >= SKIP_ASSIGNMENT_FROM,
    )

    def answer(reply: commands.JoinReply | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            request.answer(wire.JoinGroupResponse(error_code=failure_code(reply), member_id=message.member_id))
            return
        protocol = reply.protocol if reply.protocol is not None or request.version >= 7 else ""
        members = [wire.JoinGroupResponseMember(one.member_id, one.instance_id, one.metadata) for one in reply.members]
        request.answer(
            wire.JoinGroupResponse(
                error_code=reply.code,
                generation_id=reply.generation,
                protocol_type=reply.protocol_type,
                protocol_name=protocol,
                leader=reply.leader,
                skip_assignment=reply.skip_assignment,
                member_id=reply.member_id,
                members=members,
            )
        )

    request.broker.groups.submit(command, answer)


def handle_sync_group(request: Request) -> None:
    message: wire.SyncGroupRequest = request.message
    command = commands.SyncGroup(
        message.group_id,
        message.generation_id,
        message.member_id,
        message.group_instance_id,
        message.protocol_type,
        message.protocol_name,
        tuple((one.member_id, one.assignment) for one in message.assignments),
    )

    def answer(reply: commands.SyncReply | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            code = failure_code(reply)
            if code is Code.COORDINATOR_LOAD_IN_PROGRESS:
                code = Code.REBALANCE_IN_PROGRESS  # as in Kafka: some clients do not expect the other here, and end
            request.answer(wire.SyncGroupResponse(error_code=code))
        else:
            request.answer(
                wire.SyncGroupResponse(
                    error_code=reply.code,
                    protocol_type=reply.protocol_type,
                    protocol_name=reply.protocol,
                    assignment=reply.assignment,
                )
            )

    request.broker.groups.submit(command, answer)


def handle_heartbeat(request: Request) -> None:
    message: wire.HeartbeatRequest = request.message
    command = commands.Heartbeat(message.group_id, message.generation_id, message.member_id, message.group_instance_id)

    def answer(reply: commands.CodeReply | GoQueueError) -> None:
        code = failure_code(reply) if isinstance(reply, GoQueueError) else reply.code
        if code is Code.COORDINATOR_LOAD_IN_PROGRESS:
            code = Code.NONE  # as in Kafka: it lives, and its session begins anew once the group is loaded
        request.answer(wire.HeartbeatResponse(error_code=code))

    request.broker.groups.submit(command, answer)


def handle_leave_group(request: Request) -> None:
    message: wire.LeaveGroupRequest = request.message
    leaving = message.members if request.version >= 3 else [wire.LeavingMember(message.member_id)]
    members = tuple(commands.LeavingMember(one.member_id, one.group_instance_id) for one in leaving)

    def answer(reply: commands.LeaveReply | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            request.answer(wire.LeaveGroupResponse(error_code=failure_code(reply)))
        elif request.version >= 3:
            left = [
                wire.LeftMember(one.member_id, one.group_instance_id, each) for one, each in zip(leaving, reply.codes)
            ]
            request.answer(wire.LeaveGroupResponse(error_code=reply.code, members=left))
        else:
            request.answer(wire.LeaveGroupResponse(error_code=reply.codes[0] if reply.codes else reply.code))

    request.broker.groups.submit(commands.LeaveGroup(message.group_id, members), answer)


def handle_describe_groups(request: Request) -> None:
    def described(reply: commands.DescribedGroup | GoQueueError, name: str) -> wire_describe.DescribedGroup:
        if isinstance(reply, GoQueueError):
            return wire_describe.DescribedGroup(error_code=failure_code(reply), group_id=name)
        group = _described(reply, request.version)
        group.authorized_operations = operations_on_group(request, name)
        return group

    response = wire_describe.DescribeGroupsResponse()
    describe_each(request, response, request.message.groups, commands.DescribeGroup, described)


def _described(reply: commands.DescribedGroup, version: int) -> wire_describe.DescribedGroup:
    is_missing = reply.code is Code.GROUP_ID_NOT_FOUND
    return wire_describe.DescribedGroup(
        error_code=reply.code if not is_missing or version >= GROUP_NOT_FOUND_FROM else Code.NONE,
        group_id=reply.group_id,
        group_state=reply.state,
        protocol_type=reply.protocol_type,
        protocol_data=reply.protocol,
        members=[
            wire_describe.DescribedGroupMember(
                one.member_id, one.instance_id, one.client_id, one.client_host, one.metadata, one.assignment
            )
            for one in reply.members
        ],
    )


def handle_list_groups(request: Request) -> None:
    states = {state.lower() for state in request.message.states_filter}
    types = {name.lower() for name in request.message.types_filter}

    def is_wanted(group: wire_describe.ListedGroup) -> bool:
        return (not states or group.group_state.lower() in states) and (not types or group.group_type.lower() in types)

    response = wire_describe.ListGroupsResponse()
    broker = request.broker

    def take(names: list[str], then: Callable[[], object]) -> None:
        def listed(reply: Sequence[commands.ListedGroup] | GoQueueError) -> None:
            if isinstance(reply, GoQueueError):
                response.error_code = failure_code(reply)
                reply = ()
            found = {
                one.group_id: wire_describe.ListedGroup(one.group_id, one.protocol_type, one.state, one.type)
                for one in reply
            }
            for name in names:
                group = found.get(name) or listed_without_members(request, name)
                if group is not None and is_wanted(group):
                    response.groups.append(group)
            then()

        broker.groups.listed(names, listed)

    request.walk(pages(partial(group_page, broker)), take, lambda: request.answer(response))


def handle_delete_groups(request: Request) -> None:
    names = list(dict.fromkeys(request.message.groups_names))
    response = wire_describe.DeleteGroupsResponse()

    def deleted(name: str, code: Code) -> None:
        response.results.append(wire_describe.DeletableGroupResult(name, code))
        if len(response.results) == len(names):
            request.answer(response)

    def collect(reply: commands.CodeReply | GoQueueError, name: str) -> None:
        code = failure_code(reply) if isinstance(reply, GoQueueError) else reply.code
        if code in (Code.NONE, Code.GROUP_ID_NOT_FOUND) and has_deliveries(request, name):
            request.broker.queues.drop(name, None, lambda reply: deleted(name, failure_code(reply) or Code.NONE))
        else:
            deleted(name, code)

    if not names:
        request.answer(response)
    request.each(
        names, lambda name: request.broker.groups.submit(commands.DeleteGroup(name), lambda reply: collect(reply, name))
    )
