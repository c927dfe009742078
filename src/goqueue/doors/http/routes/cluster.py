"""How the cluster is, from the metadata of the node that is asked."""

from functools import partial
from itertools import islice
from typing import Any

from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, CONFLICT, NOT_FOUND, UNAVAILABLE, HttpError
from goqueue.doors.http.operation import Handlers, WithStatus
from goqueue.doors.http.permissions import ALTERS_CLUSTER, DESCRIBES_CLUSTER, DESCRIBES_TOPIC
from goqueue.model.health import Status
from goqueue.model.moments import format_moment
from goqueue.model.placements import HostPort, NodeInfo, Placement
from goqueue.model.refusal import Refused
from goqueue.wire.rest.cluster import (
    ClusterHealth,
    ClusterNode,
    ClusterNodes,
    ClusterState,
    CopyFound,
    ElectedUnclean,
    ElectUnclean,
    Event,
    Events,
    EventsQuery,
    LostRecords,
    Place,
    PlaceInfo,
    PlacePath,
    Places,
    PlacesQuery,
    RecoverCluster,
    RecoveredCluster,
    RecoveredPartition,
)
from goqueue.wire.rest.operations import cluster as operations

cluster = Handlers()


@cluster.handles(operations.CLUSTER_STATE, DESCRIBES_CLUSTER)
async def cluster_state(call: Call) -> ClusterState:
    watch = call.broker.cluster
    counts = watch.counts()
    return ClusterState(
        cluster_id=call.broker.identity.cluster_id,
        node_id=call.broker.identity.node_id,
        controller_id=watch.controller,
        revision=watch.image.revision,
        status=_health(call).status,
        nodes=counts.nodes,
        nodes_alive=counts.nodes_alive,
        topics=len(watch.image.topics),
        partitions=counts.partitions,
        offline_partitions=counts.offline,
        under_min_isr_partitions=counts.under_min_isr,
        under_replicated_partitions=counts.under_replicated,
        not_preferred_leaders=counts.not_preferred,
    )


@cluster.handles(operations.CLUSTER_HEALTH, DESCRIBES_CLUSTER)
async def cluster_health(call: Call) -> ClusterHealth | WithStatus:
    health = _health(call)
    return WithStatus(UNAVAILABLE, health) if health.status == Status.FAIL else health


def _health(call: Call) -> ClusterHealth:
    counts = call.broker.cluster.counts()
    if halted := call.broker.cluster.halted():
        return ClusterHealth(status=Status.FAIL, reasons=[f"all is halted, see goqueue cluster recover: {halted}"])
    worst = [
        (counts.offline, "partitions have no leader"),
        (counts.under_min_isr, "partitions have too few replicas in sync to be written to with acks=all"),
    ]
    less = [
        (counts.under_replicated - counts.offline - counts.under_min_isr, "partitions miss replicas in sync"),
        (counts.nodes - counts.nodes_alive, "nodes that should hold replicas are not there"),
    ]
    reasons = [f"{count} {words}" for count, words in (*worst, *less) if count > 0]
    failed = any(count for count, _ in worst)
    return ClusterHealth(status=Status.FAIL if failed else Status.WARN if reasons else Status.PASS, reasons=reasons)


@cluster.handles(operations.CLUSTER_NODES, DESCRIBES_CLUSTER)
async def cluster_nodes(call: Call) -> ClusterNodes:
    watch = call.broker.cluster
    found = []
    for node_id, (leaders, replicas) in watch.held().items():
        alive = watch.image.nodes.get(node_id)
        info = alive or NodeInfo(node_id, 0)
        standbys = watch.standbys() if node_id == watch.node_id else None
        found.append(
            ClusterNode(
                node_id=node_id,
                is_alive=alive is not None,
                is_controller=alive is not None and watch.controller == node_id,
                leaders=leaders,
                replicas=replicas,
                rack=info.rack,
                version=info.version or (call.version if node_id == call.broker.identity.node_id else ""),
                kafka=_address(info.kafka),
                http=_address(info.http),
                grpc=_address(info.grpc),
                peer=_address(info.peer),
                started_at=format_moment(info.started_ms) if info.started_ms else None,
                incarnation=info.incarnation,
                standbys_behind=None if standbys is None else standbys.behind,
                standby_lag_facts=None if standbys is None else standbys.lag_max,
            )
        )
    return ClusterNodes(nodes=found)


@cluster.handles(operations.CLUSTER_PARTITIONS, DESCRIBES_CLUSTER)
async def cluster_partitions(call: Call, query: PlacesQuery) -> Places:
    watch = call.broker.cluster
    chosen = (
        Place(topic=each.topic.name, partition=each.number, state=each.state, **_told(each.placement))
        for each in watch.placed(query.topic)
        if query.state is None or each.state == query.state
    )
    return Places(partitions=list(chosen)[query.skip : query.skip + query.limit])


@cluster.handles(operations.CLUSTER_PARTITION, DESCRIBES_TOPIC)
async def cluster_partition(call: Call, path: PlacePath) -> PlaceInfo:
    topic = call.topic(path.topic)
    watch, me = call.broker.cluster, call.broker.identity.node_id
    found = next((each for each in watch.placed(topic.name) if each.number == path.partition), None)
    if found is None:
        raise HttpError(NOT_FOUND, "UNKNOWN_TOPIC_OR_PARTITION", f"{topic.name} has no partition {path.partition}")
    placement = found.placement
    role = "leader" if placement.leader == me else "follower" if me in placement.replicas else "none"
    info = PlaceInfo(topic=topic.name, partition=found.number, state=found.state, role=role, **_told(placement))
    try:
        replica = call.broker.topics.replica(topic.name, found.number)
    except Refused:
        return info
    info.high_watermark, info.log_end_offset = replica.high_watermark, replica.end_offset
    info.log_start_offset = replica.start_offset
    return info


@cluster.handles(operations.ELECT_UNCLEAN, ALTERS_CLUSTER)
async def elect_unclean(call: Call, path: PlacePath, body: ElectUnclean) -> ElectedUnclean:
    if not body.unclean:
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", "leaders in sync are elected without being asked")
    watch = call.broker.cluster
    told = await call.ask(partial(watch.lead_unclean, path.topic, path.partition, body.reason))
    if isinstance(told, str):
        raise HttpError(CONFLICT, "ELIGIBLE_LEADERS_NOT_AVAILABLE", told)
    return ElectedUnclean(topic=path.topic, partition=path.partition, node_id=watch.node_id, lost_from=told)


@cluster.handles(operations.RECOVER_CLUSTER, ALTERS_CLUSTER)
async def recover_cluster(call: Call, body: RecoverCluster) -> RecoveredCluster:
    choices = [(one.topic, one.partition, one.node_id) for one in body.choices]
    wish = (body.dry_run, body.without, choices, body.reason)
    found = await call.ask(partial(call.broker.cluster.recover, wish))
    if isinstance(found, str):
        raise HttpError(CONFLICT, "INELIGIBLE", found)
    plan, names = found.plan, found.names
    return RecoveredCluster(
        is_done=found.is_done,
        halted=found.halted,
        missing_nodes=list(plan.missing),
        producer_ids_from=plan.producer_ids_end,
        left=[f"{names[one.key.topic_id]}/{one.key.number}" for one in plan.left],
        partitions=[
            RecoveredPartition(
                topic=names[one.partition.key.topic_id],
                partition=one.partition.key.number,
                node_id=one.node_id,
                epoch=one.epoch,
                end_offset=one.copies[one.node_id].end,
                missing_nodes=list(one.missing),
                copies=[
                    CopyFound(
                        node_id=node_id,
                        last_epoch=copy.last_epoch,
                        start_offset=copy.start,
                        end_offset=copy.end,
                        is_doubtful=copy.is_doubtful,
                    )
                    for node_id, copy in one.copies.items()
                ],
            )
            for one in plan.chosen
        ],
    )


@cluster.handles(operations.CLUSTER_EVENTS, DESCRIBES_CLUSTER)
async def cluster_events(call: Call, query: EventsQuery) -> Events:
    chosen = (each for each in call.broker.cluster.events if each.number > query.after)
    return Events(
        events=[
            Event(
                number=each.number,
                at=format_moment(each.at_ms),
                kind=each.kind,
                node_id=each.node_id,
                topic=each.topic,
                partition=each.partition,
                message=each.message,
            )
            for each in islice(chosen, query.limit)
        ]
    )


def _told(placement: Placement) -> dict[str, Any]:
    return {
        "leader": placement.leader,
        "epoch": placement.epoch,
        "isr": list(placement.isr),
        "replicas": list(placement.replicas),
        "adding": list(placement.adding),
        "removing": list(placement.removing),
        "lost": [
            LostRecords(at=format_moment(each.at_ms), leader=each.leader, offset=each.offset, reason=each.why)
            for each in placement.lost
        ],
    }


def _address(address: HostPort | None) -> str | None:
    return None if address is None else f"{address[0]}:{address[1]}"
