"""How far groups are behind."""

from goqueue.broker.groups.listing import page_of_names
from goqueue.doors.http.call import Call
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_GROUP
from goqueue.doors.http.routes.groups import state_of
from goqueue.model.lag import GroupLag as Found
from goqueue.model.lag import PartitionLag as FoundPartition
from goqueue.model.lag import QueueLag as FoundQueue
from goqueue.model.lanes import Lane
from goqueue.model.ledgers import LedgerKind
from goqueue.wire.rest.groups import AllLags, GroupLag, GroupPath, GroupsQuery, LagOwner, PartitionLag, QueueLag
from goqueue.wire.rest.operations import groups as operations

lag = Handlers(rests_on=(LedgerKind.DELIVERIES, LedgerKind.GROUPS))


@lag.handles(operations.GROUP_LAG, DESCRIBES_GROUP)
async def group_lag(call: Call, path: GroupPath) -> GroupLag:
    found: Found = await call.ask(lambda done: call.broker.lag.of_group(path.group, done))
    return _group(found)


@lag.handles(operations.ALL_LAGS, DESCRIBES_GROUP)
async def all_lags(call: Call, query: GroupsQuery) -> AllLags:
    names, following = page_of_names(call.broker, query.cursor, query.limit)
    found: list[Found] = await call.ask(lambda done: call.broker.lag.of_some(names, done))
    groups = [_group(each) for each in found]
    return AllLags(groups=groups, total_lag=sum(each.total_lag for each in groups), next=following)


def _group(found: Found) -> GroupLag:
    return GroupLag(
        group=found.group_id,
        type=found.type,
        state=state_of(found.state),
        total_lag=found.lag,
        partitions=[_partition(each) for each in found.partitions],
    )


def _partition(found: FoundPartition) -> PartitionLag:
    shown = PartitionLag(
        topic=found.topic,
        partition=found.partition,
        committed_offset=found.committed,
        settled_offset=found.settled,
        end_offset=found.end,
        lag=found.lag,
        owner=None
        if found.owner is None
        else LagOwner(member_id=found.owner.member_id, client_id=found.owner.client_id, host=found.owner.client_host),
    )
    if found.queue is not None:
        shown.queue = _queue(found.queue)
    return shown


def _queue(found: FoundQueue) -> QueueLag:
    return QueueLag(
        ready={lane.name.lower(): found.ready[lane] for lane in Lane},
        leased={lane.name.lower(): found.leased[lane] for lane in Lane},
        waiting=found.waiting,
        dying=found.dying,
        replaying=found.replaying,
        beyond=found.beyond,
        oldest_age_ms=found.oldest_age_ms,
    )
