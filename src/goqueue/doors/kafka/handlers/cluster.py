"""What administrators ask of a cluster: its quorum, its features, whatever has options, partitions page by page."""

from collections.abc import Callable, Iterator

from goqueue.broker.groups.listing import pages
from goqueue.doors.kafka.config_entries import GROUP_RESOURCE
from goqueue.doors.kafka.handlers.places import copies, place
from goqueue.doors.kafka.operations import operations_on
from goqueue.doors.kafka.request import Request
from goqueue.model.access import Kind
from goqueue.model.codes import Code
from goqueue.model.topics import Topic
from goqueue.wire.kafka.messages import cluster as wire
from goqueue.wire.kafka.messages.metadata import FinalizedFeatureKey, SupportedFeatureKey

FEATURES = {"group.version": 1, "share.version": 1, "transaction.version": 2}
"""What this version speaks of Kafka's features, and always has switched on: there is no other node to wait for."""
FEATURES_EPOCH = 0
RESULTS_UNTIL_VERSION = 1
METADATA_TOPIC = "__cluster_metadata"
"""The only quorum that Kafka knows, by the name that its tools ask for."""
TOPIC, BROKER, CLIENT_METRICS = 2, 4, 16
TYPES_FROM_VERSION = 1
PARTITIONS_MAX = 2000
"""Of one answer to DescribeTopicPartitions, as in Kafka."""


def supported_features() -> list[SupportedFeatureKey]:
    return [SupportedFeatureKey(name, 0, level) for name, level in FEATURES.items()]


def finalized_features() -> list[FinalizedFeatureKey]:
    return [FinalizedFeatureKey(name, level, level) for name, level in FEATURES.items()]


def handle_update_features(request: Request) -> None:
    message: wire.UpdateFeaturesRequest = request.message
    refused = {each.feature: why for each in message.feature_updates if (why := _why_not(each))}
    code = Code.FEATURE_UPDATE_FAILED if refused else Code.NONE
    text = "; ".join(refused.values()) or None
    response = wire.UpdateFeaturesResponse(error_message=None)
    if request.version <= RESULTS_UNTIL_VERSION:
        response.results = [
            wire.UpdatableFeatureResult(
                each.feature, code if each.feature in refused else Code.NONE, refused.get(each.feature)
            )
            for each in message.feature_updates
        ]
    else:
        response.error_code, response.error_message = code, text
    request.answer(response)


def _why_not(update: wire.FeatureUpdateKey) -> str:
    level = FEATURES.get(update.feature)
    if level is None:
        return f"there is no feature {update.feature!r}; there are {', '.join(FEATURES)}"
    if update.max_version_level != level:
        return f"{update.feature} is at level {level} in this version and cannot be changed"
    return ""


def handle_describe_quorum(request: Request) -> None:
    message: wire.DescribeQuorumRequest = request.message
    node, at = request.broker.identity.node_id, request.endpoint
    response = wire.DescribeQuorumResponse(error_message=None)
    for topic in message.topics:
        partitions = []
        for asked in topic.partitions:
            if (topic.topic_name, asked.partition_index) == (METADATA_TOPIC, 0):
                described = _quorum(request)
            else:
                described = wire.DescribedQuorumPartition(
                    asked.partition_index,
                    Code.UNKNOWN_TOPIC_OR_PARTITION,
                    f"only {METADATA_TOPIC} has a quorum",
                    leader_id=-1,
                )
            partitions.append(described)
        response.topics.append(wire.DescribedQuorumTopic(topic.topic_name, partitions))
    response.nodes = [wire.QuorumNode(node, [wire.QuorumListener(at.listener.name, at.host, at.port)])]
    request.answer(response)


def _quorum(request: Request) -> wire.DescribedQuorumPartition:
    """One node is its own quorum."""
    node, revision = request.broker.identity.node_id, request.broker.topics.image.revision
    now_ms = request.broker.clock.now_ms()
    voter = wire.QuorumReplica(node, log_end_offset=revision, last_caught_up_timestamp=now_ms)
    return wire.DescribedQuorumPartition(
        error_message=None, leader_id=node, high_watermark=revision, current_voters=[voter]
    )


def handle_list_config_resources(request: Request) -> None:
    message: wire.ListConfigResourcesRequest = request.message
    broker = request.broker
    names: dict[int, Callable[[], list[str]]] = {
        TOPIC: lambda: [topic.name for topic in broker.topics.image.topics.values()],
        BROKER: lambda: [str(broker.identity.node_id)],
        CLIENT_METRICS: list,
        GROUP_RESOURCE: list,  # below, in turns
    }
    wanted = set(message.resource_types) if request.version >= TYPES_FROM_VERSION else {CLIENT_METRICS}
    response = wire.ListConfigResourcesResponse()
    if wanted - names.keys():
        response.error_code = Code.UNSUPPORTED_VERSION
        request.answer(response)
        return
    response.config_resources = [
        wire.ListedConfigResource(name, kind) for kind in sorted(wanted or names) for name in names[kind]()
    ]

    def take(page: list[str], then: Callable[[], object]) -> None:
        chosen = (name for name in page if broker.queues.options(name))  # of a fork its origin is kept, too
        response.config_resources += [wire.ListedConfigResource(name, GROUP_RESOURCE) for name in chosen]
        then()

    groups = pages(broker.queues.page_with_options) if GROUP_RESOURCE in (wanted or names) else iter(())
    request.walk(groups, take, lambda: request.answer(response))


def handle_describe_topic_partitions(request: Request) -> None:
    message: wire.DescribeTopicPartitionsRequest = request.message
    topics = request.broker.topics.image.topics
    cursor = message.cursor
    if cursor is not None and cursor.partition_index < 0:
        request.answer(wire.DescribeTopicPartitionsResponse(topics=[_missing(cursor.topic_name, Code.INVALID_REQUEST)]))
        return
    names = sorted({topic.name for topic in message.topics} if message.topics else topics)
    response = wire.DescribeTopicPartitionsResponse()
    room = min(max(message.response_partition_limit, 1), PARTITIONS_MAX)
    for name in names if cursor is None else [name for name in names if name >= cursor.topic_name]:
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        if not room:
            response.next_cursor = wire.TopicPartitionsCursor(name, first)
            break
        topic = topics.get(name)
        if topic is None:
            if message.topics:
                response.topics.append(_missing(name, Code.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        partitions = list(_partitions(request, topic, first, first + room))
        allowed = operations_on(request, Kind.TOPIC, name)
        described = wire.DescribedTopicOfPartitions(Code.NONE, topic.name, topic.id, False, partitions, allowed)
        response.topics.append(described)
        room -= len(described.partitions)
        if first + len(described.partitions) < topic.partitions:
            response.next_cursor = wire.TopicPartitionsCursor(name, first + len(described.partitions))
            break
    request.answer(response)


def _missing(name: str, code: Code) -> wire.DescribedTopicOfPartitions:
    return wire.DescribedTopicOfPartitions(code, name)


def _partitions(request: Request, topic: Topic, first: int, last: int) -> Iterator[wire.DescribedTopicPartition]:
    for number in range(first, min(last, topic.partitions)):
        yield wire.DescribedTopicPartition(*place(request, topic, number), *copies(topic, number), [], [])
