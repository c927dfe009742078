"""Who is there and what they serve: ApiVersions, Metadata, DescribeCluster, FindCoordinator."""

from collections.abc import Mapping

from goqueue.doors.kafka.handlers.cluster import FEATURES_EPOCH, finalized_features, supported_features
from goqueue.doors.kafka.handlers.places import (
    address_of,
    brokers,
    brokers_of_late,
    controller_id,
    copies,
    leader_of,
    place,
)
from goqueue.doors.kafka.operations import NOT_ASKED_FOR, operations_on, operations_on_cluster
from goqueue.doors.kafka.request import Request
from goqueue.machines.controller_commands import CreateTopic, Result
from goqueue.model.access import Kind
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.topics import Topic
from goqueue.records.partitioners import DEFAULT
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.messages.classic_groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from goqueue.wire.kafka.messages.metadata import (
    AdvertisedApi,
    ApiVersionsResponse,
    DescribeClusterBroker,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from goqueue.wire.kafka.notation import NO_UUID

COORDINATORS_FROM_VERSION = 4
IDS_FROM_VERSION = 12
"""Two versions earlier requests have room for ids, but answers still need a name."""
GROUP, TRANSACTION = 0, 1
GROUPS, TRANSACTIONS = "@groups", "@transactions"
CREATED_MAX = 20
"""Topics that one request makes by asking for them."""
LEVEL_ZERO_FROM_VERSION = 4
"""Older clients fail on a feature whose lowest level is 0."""


def api_versions(version: int, code: Code = Code.NONE) -> ApiVersionsResponse:
    keys = [AdvertisedApi(api.key, api.advertised.first, api.advertised.last) for api in APIS.values()]
    return ApiVersionsResponse(
        error_code=code,
        api_keys=keys,
        supported_features=supported_features() if version >= LEVEL_ZERO_FROM_VERSION else [],
        finalized_features_epoch=FEATURES_EPOCH,
        finalized_features=finalized_features(),
    )


def handle_api_versions(request: Request) -> None:
    request.answer(api_versions(request.version))


def handle_describe_cluster(request: Request) -> None:
    request.answer(
        DescribeClusterResponse(
            endpoint_type=request.message.endpoint_type,
            cluster_id=request.broker.identity.cluster_id,
            controller_id=controller_id(request),
            brokers=[DescribeClusterBroker(*each) for each in brokers(request)],
            cluster_authorized_operations=operations_on_cluster(request),
        )
    )


def handle_find_coordinator(request: Request) -> None:
    message: FindCoordinatorRequest = request.message
    kind = Kind.GROUP if message.key_type == GROUP else Kind.TRANSACTIONAL_ID
    is_of_many = request.version >= COORDINATORS_FROM_VERSION
    keys = message.coordinator_keys if is_of_many else [message.key]
    for key in keys:
        request.broker.admit(kind, key)
    found = [_coordinator(request, message.key_type, key) for key in keys]
    if is_of_many:
        request.answer(FindCoordinatorResponse(coordinators=found))
    else:
        one = found[0]
        request.answer(
            FindCoordinatorResponse(error_code=one.error_code, node_id=one.node_id, host=one.host, port=one.port)
        )


def _coordinator(request: Request, key_type: int, key: str) -> Coordinator:
    """The leader of the ledger that keeps it; a node that is its own cluster has all of them."""
    node, at, broker = request.broker.identity, request.endpoint, request.broker
    if key_type not in (GROUP, TRANSACTION):
        return Coordinator(key, node.node_id, at.host, at.port, Code.INVALID_REQUEST)
    ledger = GROUPS if key_type == GROUP else TRANSACTIONS
    image = broker.topics.image
    if ledger not in image.ledgers:
        return Coordinator(key, node.node_id, at.host, at.port, Code.NONE)
    number = broker.groups.partition_of(key) if key_type == GROUP else broker.transactions.partition_of(key)
    leader = leader_of(request, ledger, number)
    address = None if leader is None else address_of(request, leader)
    if leader is None or address is None:
        return Coordinator(key, -1, "", -1, Code.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key, leader.node_id, *address, Code.NONE)


def handle_metadata(request: Request) -> None:
    message: MetadataRequest = request.message
    image = request.broker.topics.image
    asked = message.topics
    if asked is None or (request.version == 0 and not asked):
        found: list[MetadataResponseTopic] = []
        everything = list(image.topics.values())
        request.each(everything, lambda topic: found.append(_describe(request, topic)), lambda: _answer(request, found))
        return
    missing = list(dict.fromkeys(one.name for one in asked if one.name and one.name not in image.topics))
    may_create = request.broker.creates_topics and (message.allow_auto_topic_creation or request.version < 4)
    if missing and may_create:
        _create(request, missing)
    else:
        _find(request, {})


def _create(request: Request, missing: list[str]) -> None:
    """Some of them: who asks again, as clients do, gets the next."""
    names = missing[:CREATED_MAX]
    waiting = len(names)
    failed = dict.fromkeys(missing[CREATED_MAX:], Code.LEADER_NOT_AVAILABLE)

    def created(name: str, reply: Result | GoQueueError) -> None:
        nonlocal waiting
        waiting -= 1
        code = code_of(reply) if isinstance(reply, GoQueueError) else reply.code
        if code is Code.THROTTLING_QUOTA_EXCEEDED:
            code = Code.LEADER_NOT_AVAILABLE  # what clients ask again for
        if code not in (Code.NONE, Code.TOPIC_ALREADY_EXISTS):
            failed[name] = code
        if not waiting:
            _find(request, failed)

    for name in names:
        command = CreateTopic(name, request.broker.topics.new_id(), request.broker.default_partitions)
        request.broker.topics.submit(command, lambda reply, name=name: created(name, reply))  # type: ignore[misc]


def _find(request: Request, failed: Mapping[str, Code]) -> None:
    """Each of them once, however often it was asked for; `failed` says why there is none of a name."""
    image = request.broker.topics.image
    found: list[MetadataResponseTopic] = []

    def find(one: MetadataRequestTopic) -> None:
        by_id = one.topic_id != NO_UUID and request.version >= IDS_FROM_VERSION
        topic = image.by_id(one.topic_id) if by_id else image.topics.get(one.name or "")
        if topic is not None:
            found.append(_describe(request, topic))
        elif by_id:
            found.append(MetadataResponseTopic(Code.UNKNOWN_TOPIC_ID, None, one.topic_id))
        else:
            code = failed.get(one.name or "", Code.UNKNOWN_TOPIC_OR_PARTITION)
            found.append(MetadataResponseTopic(code, one.name or ""))

    asked = list({(one.topic_id, one.name): one for one in request.message.topics}.values())
    request.each(asked, find, lambda: _answer(request, found))


def _describe(request: Request, topic: Topic) -> MetadataResponseTopic:
    partitions = [
        MetadataResponsePartition(*place(request, topic, number), *copies(topic, number))
        for number in range(topic.partitions)
    ]
    is_asked = request.message.include_topic_authorized_operations
    allowed = operations_on(request, Kind.TOPIC, topic.name) if is_asked else NOT_ASKED_FOR
    partitioner = request.broker.topics.partitioner(topic)
    told = "" if partitioner is DEFAULT else partitioner.value
    return MetadataResponseTopic(Code.NONE, topic.name, topic.id, False, partitions, allowed, told)


def _answer(request: Request, topics: list[MetadataResponseTopic]) -> None:
    request.answer(
        MetadataResponse(
            brokers=[MetadataResponseBroker(*each) for each in brokers_of_late(request)],
            cluster_id=request.broker.identity.cluster_id,
            controller_id=controller_id(request),
            topics=topics,
            cluster_authorized_operations=operations_on_cluster(request),
        )
    )
