"""Members of groups: they join, poll and show that they live, and leave. And reading as a queue without all that."""

from typing import Any

from goqueue.broker.groups.member_poll import Polled, PollRequest, poll
from goqueue.broker.queues.taking import ReceiveRequest
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, HttpError
from goqueue.doors.http.leased import BYTES_MAX, lease, lease_ms_of, received, wait_ms_of
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import READS
from goqueue.doors.http.routes.groups import REBALANCING, STABLE, group_view
from goqueue.machines.deliveries.commands import Place
from goqueue.model.group_options import SESSION_MS
from goqueue.model.ledgers import LedgerKind
from goqueue.model.members import SESSION_MS_MAX, SESSION_MS_MIN, Joining, Membership, Who
from goqueue.model.moments import parse_duration_ms
from goqueue.model.topic_partition import TopicPartition
from goqueue.wire.rest.groups import (
    GroupPath,
    HeartbeatReply,
    JoinedGroup,
    JoinGroup,
    LeftGroup,
    MemberBody,
    PolledMessages,
    PollQuery,
    ReceivedMessages,
    ReceiveMessages,
    TopicAndPartition,
)
from goqueue.wire.rest.operations import groups as operations
from goqueue.wire.rest.topics import TopicPath

POLL_DEFAULT = 100
RECEIVE_DEFAULT = 10
CONSUMER = "http"
PROTOCOL, EAGER = "cooperative", "eager"

members = Handlers(rests_on=(LedgerKind.DELIVERIES, LedgerKind.GROUPS))


def shown_partitions(partitions: tuple[TopicPartition, ...]) -> list[TopicAndPartition]:
    return [TopicAndPartition(topic=each.topic, partition=each.partition) for each in partitions]


def shown_names(partitions: tuple[TopicPartition, ...]) -> list[str]:
    return [f"{each.topic}-{each.partition}" for each in partitions]


def shown_state(membership: Membership) -> str:
    return STABLE if membership.is_stable else REBALANCING


def session_ms_of(call: Call, group_id: str, body: JoinGroup) -> int:
    """0: as the broker does."""
    if body.session_timeout is None:
        return int(call.broker.queues.options(group_id).get(SESSION_MS, 0))
    session_ms = parse_duration_ms(body.session_timeout)
    if not SESSION_MS_MIN <= session_ms <= SESSION_MS_MAX:
        words = f"session_timeout is {session_ms} ms, but must be from {SESSION_MS_MIN} to {SESSION_MS_MAX} ms"
        raise HttpError(BAD_REQUEST, "INVALID_SESSION_TIMEOUT", words)
    return session_ms


async def join(call: Call, group_id: str, body: JoinGroup, *, is_cooperative: bool) -> JoinedGroup:
    session_ms = session_ms_of(call, group_id, body)
    wanted = Joining(group_id, body.client_id, tuple(body.topics), body.member_id, session_ms, is_cooperative)
    membership: Membership = await call.ask(lambda done: call.broker.members.join(wanted, done))
    view = await group_view(call, group_id)
    return JoinedGroup(
        member_id=membership.member_id,
        generation=membership.generation,
        leader_id=view.leader_id,
        rebalance_required=not membership.is_stable,
        protocol=PROTOCOL if is_cooperative else EAGER,
        assigned_partitions=shown_names(membership.assigned),
        partitions=[each.partition for each in membership.assigned],
        assignment=shown_partitions(membership.assigned),
        members=[each.member_id for each in view.members],
        session_timeout_ms=membership.session_ms,
    )


async def leave(call: Call, group_id: str, body: MemberBody) -> LeftGroup:
    who = Who(group_id, body.member_id, body.generation or 0)
    _: object = await call.ask(lambda done: call.broker.members.leave(who, done))
    return LeftGroup(status="left", left=True)


@members.handles(operations.JOIN_GROUP, READS)
async def join_group(call: Call, path: GroupPath, body: JoinGroup) -> JoinedGroup:
    return await join(call, path.group, body, is_cooperative=False)


@members.handles(operations.HEARTBEAT, READS)
async def heartbeat(call: Call, path: GroupPath, body: MemberBody) -> HeartbeatReply:
    who = Who(path.group, body.member_id, body.generation or 0)
    membership: Membership = await call.ask(lambda done: call.broker.members.beat(who, done))
    return HeartbeatReply(
        status="ok",
        generation=membership.generation,
        state=shown_state(membership),
        rebalance_required=bool(body.generation) and body.generation != membership.generation,
        assigned_partitions=shown_names(membership.assigned),
        assignment=shown_partitions(membership.assigned),
    )


@members.handles(operations.LEAVE_GROUP, READS)
async def leave_group(call: Call, path: GroupPath, body: MemberBody) -> LeftGroup:
    return await leave(call, path.group, body)


@members.handles(operations.POLL_GROUP, READS)
async def poll_group(call: Call, path: GroupPath, query: PollQuery) -> PolledMessages:
    group_id = path.group
    limits = [each for each in (query.limit, query.max_messages) if each is not None]
    request = PollRequest(
        Who(group_id, query.member_id, query.generation),
        records_max=min(limits, default=POLL_DEFAULT),
        bytes_max=BYTES_MAX,
        wait_ms=wait_ms_of(query.timeout),
        lease_ms=lease_ms_of(query.lease),
    )
    broker = call.broker
    polled: Polled = await lease(
        call,
        group_id,
        lambda done: poll(broker.members, broker.receiver, request, done),
        lambda reply: reply.found if isinstance(reply, Polled) else (),
        Polled(query.generation, []),
    )
    messages = received(call, group_id, polled.found)
    following: dict[str, dict[str, int]] = {}
    for topic, partition in sorted({(each.topic, each.partition) for each in messages}):
        if broker.topics.led(topic, (partition,)):
            reach = broker.queues.reach(Place(group_id, topic, partition), query.member_id)
        else:  # its leader knows better; but all before what came now was given before
            reach = max(each.offset for each in messages if (each.topic, each.partition) == (topic, partition)) + 1
        following.setdefault(topic, {})[str(partition)] = reach
    return PolledMessages(
        messages=messages,
        next_offset=following,
        generation=polled.generation,
        partitions_to_revoke=shown_partitions(polled.revoking),
    )


@members.handles(operations.RECEIVE_MESSAGES, READS)
async def receive_messages(call: Call, path: TopicPath, body: ReceiveMessages) -> ReceivedMessages:
    topic = call.topic(path.topic)
    partitions = range(topic.partitions) if body.partition is None else [body.partition]
    request = ReceiveRequest(
        group_id=body.group,
        consumer=body.consumer or CONSUMER,
        places=[(topic.name, number) for number in partitions],
        records_max=body.max_messages or RECEIVE_DEFAULT,
        bytes_max=BYTES_MAX,
        wait_ms=wait_ms_of(body.wait or 0),
        lease_ms=lease_ms_of(body.lease),
        start=body.start or "earliest",
    )
    found: Any = await lease(
        call, body.group, lambda done: call.broker.receiver.receive(request, done), lambda reply: reply, []
    )
    return ReceivedMessages(messages=received(call, body.group, found))
