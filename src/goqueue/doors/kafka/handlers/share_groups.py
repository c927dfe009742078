"""Membership of share groups; and groups that are known by their deliveries alone, as all are after a restart."""

from collections.abc import Iterable

from goqueue.doors.kafka.describing import HAS_HIDDEN_TOPICS, describe_each, has_hidden
from goqueue.doors.kafka.operations import operations_on_group
from goqueue.doors.kafka.request import Request, failure_code
from goqueue.machines.groups import commands
from goqueue.machines.groups.consumer.facts import TopicPartitions
from goqueue.machines.groups.share import facts as share_commands
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.group_options import HEARTBEAT_MS, SESSION_MS, is_of_consumers
from goqueue.wire.kafka.messages import share_groups as wire
from goqueue.wire.kafka.messages.describe_groups import ListedGroup

EMPTY = "Empty"


def handle_heartbeat(request: Request) -> None:
    message: wire.ShareGroupHeartbeatRequest = request.message
    names = message.subscribed_topic_names
    options = request.broker.queues.options(message.group_id)
    command = share_commands.ShareHeartbeat(
        group_id=message.group_id,
        member_id=message.member_id,
        member_epoch=message.member_epoch,
        rack_id=message.rack_id,
        subscribed_topic_names=None if names is None else tuple(names),
        client_id=request.header.client_id or "",
        client_host=request.connection.host,
        session_ms=int(options[SESSION_MS]) if SESSION_MS in options else None,
        heartbeat_ms=int(options[HEARTBEAT_MS]) if HEARTBEAT_MS in options else None,
    )

    def answer(reply: share_commands.ShareHeartbeatReply | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            request.answer(wire.ShareGroupHeartbeatResponse(error_code=failure_code(reply)))
            return
        assignment = None
        if reply.assignment is not None:
            assignment = wire.ShareHeartbeatAssignment(
                [wire.ShareHeartbeatTopicPartitions(one.topic_id, list(one.partitions)) for one in reply.assignment]
            )
        request.answer(
            wire.ShareGroupHeartbeatResponse(
                error_code=reply.code,
                error_message=reply.message,
                member_id=reply.member_id,
                member_epoch=reply.member_epoch,
                heartbeat_interval_ms=reply.heartbeat_interval_ms,
                assignment=assignment,
            )
        )

    request.broker.groups.submit(command, answer)


def handle_describe(request: Request) -> None:
    def described(reply: share_commands.ShareGroupDescription | GoQueueError, name: str) -> wire.DescribedShareGroup:
        if isinstance(reply, GoQueueError):
            return wire.DescribedShareGroup(error_code=failure_code(reply), group_id=name)
        if reply.epoch:
            return _described(request, reply)
        if is_kept(request, name):
            allowed = operations_on_group(request, name)
            return wire.DescribedShareGroup(group_id=name, group_state=EMPTY, authorized_operations=allowed)
        return wire.DescribedShareGroup(
            Code.GROUP_ID_NOT_FOUND, f"there is no share group {name!r}", name, group_state="Dead"
        )

    describe_each(
        request,
        wire.ShareGroupDescribeResponse(),
        request.message.group_ids,
        share_commands.DescribeShareGroup,
        described,
    )


def _described(request: Request, group: share_commands.ShareGroupDescription) -> wire.DescribedShareGroup:
    if any(has_hidden(request, one.assigned) for one in group.members):
        return wire.DescribedShareGroup(Code.TOPIC_AUTHORIZATION_FAILED, HAS_HIDDEN_TOPICS, group.group_id)
    return wire.DescribedShareGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor,
        authorized_operations=operations_on_group(request, group.group_id),
        members=[
            wire.DescribedShareGroupMember(
                member_id=one.member_id,
                rack_id=one.rack_id,
                member_epoch=one.epoch,
                client_id=one.client_id,
                client_host=one.client_host,
                subscribed_topic_names=list(one.topic_names),
                assignment=_assignment(request, one.assigned),
            )
            for one in group.members
        ],
    )


def _assignment(request: Request, assignment: Iterable[TopicPartitions]) -> wire.DescribedShareAssignment:
    image = request.broker.topics.image
    described = []
    for one in assignment:
        topic = image.by_id(one.topic_id)
        name = topic.name if topic else ""
        described.append(wire.DescribedShareTopicPartitions(one.topic_id, name, list(one.partitions)))
    return wire.DescribedShareAssignment(described)


def is_kept(request: Request, group_id: str) -> bool:
    """Members or not, there is something to know about this share group."""
    queues = request.broker.queues
    is_known = bool(queues.places(group_id)) or any(not is_of_consumers(name) for name in queues.options(group_id))
    return is_known and not request.broker.groups.is_stream(group_id)


def has_deliveries(request: Request, group_id: str) -> bool:
    """Also members of consumer groups may lease records."""
    queues = request.broker.queues
    return bool(queues.options(group_id)) or bool(queues.places(group_id))


def listed_without_members(request: Request, group_id: str) -> ListedGroup | None:
    """A group that is kept and has no members; None: there is none."""
    return ListedGroup(group_id, commands.SHARE, EMPTY, commands.SHARE) if is_kept(request, group_id) else None
