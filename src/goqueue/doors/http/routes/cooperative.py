"""Members that give up partitions when they are ready to: they are asked, finish their work, and say so."""

import asyncio
from collections.abc import Iterable
from typing import Any

from goqueue.broker.groups.listing import pages
from goqueue.broker.groups.view import Counts
from goqueue.doors.http.call import Call
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_ALL_GROUPS, DESCRIBES_GROUP, READS
from goqueue.doors.http.routes.groups import group_view, moment_or_none, state_of
from goqueue.doors.http.routes.members import PROTOCOL, join, leave, shown_partitions, shown_state
from goqueue.machines.groups import commands
from goqueue.machines.groups.consumer import facts as consumer_commands
from goqueue.model.ledgers import LedgerKind
from goqueue.model.members import Membership, Who
from goqueue.model.topic_partition import TopicPartition
from goqueue.wire.rest.groups import (
    AssignmentQuery,
    CooperativeDetails,
    CooperativeHeartbeat,
    GroupPath,
    JoinedGroup,
    JoinGroup,
    LeftGroup,
    MemberAssignment,
    MemberBody,
    RebalanceStats,
    RevokedPartitions,
    RevokePartitions,
)
from goqueue.wire.rest.operations import groups as operations

GROUPS_PER_TURN = 50

cooperative = Handlers(rests_on=(LedgerKind.DELIVERIES, LedgerKind.GROUPS))


@cooperative.handles(operations.JOIN_COOPERATIVELY, READS)
async def join_cooperatively(call: Call, path: GroupPath, body: JoinGroup) -> JoinedGroup:
    return await join(call, path.group, body, is_cooperative=True)


@cooperative.handles(operations.LEAVE_COOPERATIVELY, READS)
async def leave_cooperatively(call: Call, path: GroupPath, body: MemberBody) -> LeftGroup:
    return await leave(call, path.group, body)


@cooperative.handles(operations.HEARTBEAT_COOPERATIVELY, READS)
async def heartbeat_cooperatively(call: Call, path: GroupPath, body: MemberBody) -> CooperativeHeartbeat:
    who = Who(path.group, body.member_id, body.generation or 0)
    membership: Membership = await call.ask(lambda done: call.broker.members.beat(who, done, is_cooperative=True))
    return CooperativeHeartbeat(
        rebalance_required=bool(membership.revoking) or not membership.is_stable,
        partitions_to_revoke=shown_partitions(membership.revoking),
        partitions_assigned=shown_partitions(membership.assigned),
        generation=membership.generation,
        protocol=PROTOCOL,
        state=shown_state(membership),
        revocation_deadline=moment_or_none(membership.revocation_due_ms),
    )


@cooperative.handles(operations.REVOKE_PARTITIONS, READS)
async def revoke_partitions(call: Call, path: GroupPath, body: RevokePartitions) -> RevokedPartitions:
    who = Who(path.group, body.member_id, body.generation or 0)
    named = None
    if body.revoked_partitions is not None:
        named = {TopicPartition(each.topic, each.partition) for each in body.revoked_partitions}
    membership: Membership = await call.ask(lambda done: call.broker.members.revoke(who, named, done))
    return RevokedPartitions(
        status="acknowledged",
        pending_count=len(membership.revoking),
        rebalance_state=shown_state(membership),
        generation=membership.generation,
        partitions_assigned=shown_partitions(membership.assigned),
    )


@cooperative.handles(operations.MEMBER_ASSIGNMENT, DESCRIBES_GROUP)
async def member_assignment(call: Call, path: GroupPath, query: AssignmentQuery) -> MemberAssignment:
    who = Who(path.group, query.member_id)
    membership: Membership = await call.ask(lambda done: call.broker.members.describe(who, done))
    return MemberAssignment(
        member_id=membership.member_id,
        generation=membership.generation,
        partitions=shown_partitions(membership.assigned),
    )


@cooperative.handles(operations.DESCRIBE_COOPERATIVELY, DESCRIBES_GROUP)
async def describe_cooperatively(call: Call, path: GroupPath) -> CooperativeDetails:
    view = await group_view(call, path.group)
    return CooperativeDetails(
        id=view.group_id,
        state=state_of(view.state),
        generation=view.generation,
        protocol=PROTOCOL if view.counts is not None else view.type,
        assignment_strategy=view.assignor,
        rebalance_state=view.state,
        topics=list(view.topics),
        members=[each.member_id for each in view.members],
        member_assignments={each.member_id: shown_partitions(each.partitions) for each in view.members},
        rebalance_metrics=_stats([view.counts or Counts()]),
    )


@cooperative.handles(operations.REBALANCE_STATS, DESCRIBES_GROUP)
async def rebalance_stats(call: Call, path: GroupPath) -> RebalanceStats:
    return _stats([(await group_view(call, path.group)).counts or Counts()])


@cooperative.handles(operations.ALL_REBALANCE_STATS, DESCRIBES_ALL_GROUPS)
async def all_rebalance_stats(call: Call) -> RebalanceStats:
    groups = call.broker.groups
    counts: list[Counts] = []
    for names in pages(groups.page):
        for name in names:
            if groups.kind_of(name) == commands.CONSUMER:
                question = consumer_commands.DescribeConsumerGroup(name)
                described: Any = await call.ask(lambda done, question=question: groups.submit(question, done))  # type: ignore[misc]
                counts.append(described.counts)
        await asyncio.sleep(0)  # others want their turn
    return _stats(counts)


def _stats(all_counts: Iterable[Counts]) -> RebalanceStats:
    found = list(all_counts)
    settled = sum(each.settled for each in found)
    last = max(found, key=lambda each: each.rebalance_at_ms or 0, default=Counts())
    reasons: dict[str, int] = {}
    for each in found:
        for reason, number in each.by_reason.items():
            reasons[reason] = reasons.get(reason, 0) + number
    return RebalanceStats(
        total_rebalances=sum(each.rebalances for each in found),
        successful_rebalances=settled,
        failed_rebalances=sum(each.revocation_timeouts for each in found),
        total_partitions_revoked=sum(each.partitions_revoked for each in found),
        total_partitions_assigned=sum(each.partitions_moved for each in found),
        total_revocation_timeouts=sum(each.revocation_timeouts for each in found),
        last_rebalance_duration_ms=last.rebalance_ms_last,
        average_rebalance_duration_ms=sum(each.settled_ms for each in found) / settled if settled else None,
        last_rebalance_at=moment_or_none(last.rebalance_at_ms),
        rebalances_by_reason=reasons,
    )
