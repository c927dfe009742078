"""Groups of KIP-848: one heartbeat says and hears everything."""

from collections.abc import Iterable

from goqueue.doors.kafka.describing import HAS_HIDDEN_TOPICS, describe_each, has_hidden
from goqueue.doors.kafka.operations import operations_on_group
from goqueue.doors.kafka.request import Request, failure_code
from goqueue.machines.groups.consumer import facts as consumer_commands
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.group_options import CONSUMER_HEARTBEAT_MS, CONSUMER_SESSION_MS
from goqueue.wire.kafka.messages import consumer_groups as wire

CLASSIC_MEMBER_TYPE, CONSUMER_MEMBER_TYPE = 0, 1
OWN_MEMBER_ID_FROM = 1
"""Versions from which a member brings its id; before, it was given one when it joined (Java clients up to 3.9)."""


def handle_heartbeat(request: Request) -> None:
    message: wire.ConsumerGroupHeartbeatRequest = request.message
    owned = None
    if message.topic_partitions is not None:
        owned = tuple(
            consumer_commands.TopicPartitions(one.topic_id, tuple(one.partitions)) for one in message.topic_partitions
        )
    names, member_id = message.subscribed_topic_names, message.member_id
    is_join = message.member_epoch == consumer_commands.JOIN_EPOCH
    if not member_id and is_join and request.version < OWN_MEMBER_ID_FROM:
        member_id = request.broker.groups.new_member_id(request.header.client_id or "")
    options = request.broker.queues.options(message.group_id)
    command = consumer_commands.ConsumerHeartbeat(
        group_id=message.group_id,
        member_id=member_id,
        member_epoch=message.member_epoch,
        instance_id=message.instance_id,
        rack_id=message.rack_id,
        rebalance_timeout_ms=message.rebalance_timeout_ms,
        subscribed_topic_names=None if names is None else tuple(names),
        subscribed_topic_regex=message.subscribed_topic_regex,
        server_assignor=message.server_assignor,
        owned=owned,
        client_id=request.header.client_id or "",
        client_host=request.connection.host,
        session_ms=int(options.get(CONSUMER_SESSION_MS, 0)),
        heartbeat_ms=int(options.get(CONSUMER_HEARTBEAT_MS, 0)),
    )

    def answer(reply: consumer_commands.ConsumerHeartbeatReply | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            request.answer(wire.ConsumerGroupHeartbeatResponse(error_code=failure_code(reply)))
            return
        assignment = None
        if reply.assignment is not None:
            assignment = wire.HeartbeatAssignment(
                [wire.HeartbeatTopicPartitions(one.topic_id, list(one.partitions)) for one in reply.assignment]
            )
        request.answer(
            wire.ConsumerGroupHeartbeatResponse(
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
    def described(
        reply: consumer_commands.ConsumerGroupDescription | GoQueueError, name: str
    ) -> wire.DescribedConsumerGroup:
        if isinstance(reply, GoQueueError):
            return wire.DescribedConsumerGroup(error_code=failure_code(reply), group_id=name)
        if reply.epoch:
            return _described(request, reply)
        return wire.DescribedConsumerGroup(
            Code.GROUP_ID_NOT_FOUND, f"there is no consumer group {name!r}", name, group_state="Dead"
        )

    describe_each(
        request,
        wire.ConsumerGroupDescribeResponse(),
        request.message.group_ids,
        consumer_commands.DescribeConsumerGroup,
        described,
    )


def _described(request: Request, group: consumer_commands.ConsumerGroupDescription) -> wire.DescribedConsumerGroup:
    if any(has_hidden(request, (*one.assigned, *one.target)) for one in group.members):
        return wire.DescribedConsumerGroup(Code.TOPIC_AUTHORIZATION_FAILED, HAS_HIDDEN_TOPICS, group.group_id)
    return wire.DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor,
        authorized_operations=operations_on_group(request, group.group_id),
        members=[
            wire.DescribedConsumerGroupMember(
                member_id=one.member_id,
                instance_id=one.instance_id,
                rack_id=one.rack_id,
                member_epoch=one.epoch,
                client_id=one.client_id,
                client_host=one.client_host,
                subscribed_topic_names=list(one.topic_names),
                subscribed_topic_regex=one.topic_regex,
                assignment=_assignment(request, one.assigned),
                target_assignment=_assignment(request, one.target),
                member_type=CLASSIC_MEMBER_TYPE if one.classic_protocols else CONSUMER_MEMBER_TYPE,
            )
            for one in group.members
        ],
    )


def _assignment(request: Request, assignment: Iterable[consumer_commands.TopicPartitions]) -> wire.DescribedAssignment:
    image = request.broker.topics.image
    described = []
    for one in assignment:
        topic = image.by_id(one.topic_id)
        described.append(wire.DescribedTopicPartitions(one.topic_id, topic.name if topic else "", list(one.partitions)))
    return wire.DescribedAssignment(described)
