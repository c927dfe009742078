"""What administrators ask of a cluster: features, quorum, resources with options, partitions page by page, rights."""

import pytest

from goqueue.doors.kafka.handlers.cluster import PARTITIONS_MAX
from goqueue.doors.kafka.operations import NOT_ASKED_FOR, OPERATIONS, bits
from goqueue.model.access import Kind
from goqueue.model.codes import Code
from goqueue.wire.kafka.messages import cluster as wire
from goqueue.wire.kafka.messages import consumer_groups, describe_groups, metadata, placement, share_groups
from goqueue.wire.kafka.messages.classic_groups import JoinGroupRequest, JoinGroupRequestProtocol
from tests.unit.doors.kafka.share_members import GROUP, Guest, House

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUPS = 2, 4, 8, 16, 32


@pytest.fixture
def house() -> House:
    house = House(partitions=3)
    house.broker.create("audit", 2)
    house.broker.create("zoo", 1)
    return house


@pytest.fixture
def admin(house: House) -> Guest:
    return Guest(house)


@pytest.mark.parametrize(("version", "shows_supported"), [(3, False), (4, True), (5, True)])
def test_clients_are_told_which_features_are_on(admin: Guest, version: int, shows_supported: bool) -> None:
    answer = admin.call(metadata.ApiVersionsRequest("java", "4.2"), version, metadata.ApiVersionsResponse)
    levels = {one.name: one.max_version_level for one in answer.finalized_features}
    assert levels == {"group.version": 1, "share.version": 1, "transaction.version": 2}
    assert answer.finalized_features_epoch >= 0
    supported = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
    assert supported == ({name: (0, level) for name, level in levels.items()} if shows_supported else {})


def update(admin: Guest, feature: str, level: int, version: int) -> tuple[list[int], str | None]:
    request = wire.UpdateFeaturesRequest(feature_updates=[wire.FeatureUpdateKey(feature, level)])
    answer = admin.call(request, version, wire.UpdateFeaturesResponse)
    if version == 2:
        return [answer.error_code], answer.error_message
    return [answer.error_code, *(one.error_code for one in answer.results)], answer.results[0].error_message


def test_a_feature_stays_at_its_level(admin: Guest) -> None:
    refused = Code.FEATURE_UPDATE_FAILED
    assert update(admin, "transaction.version", 2, 2) == ([Code.NONE], None)
    text = "transaction.version is at level 2 in this version and cannot be changed"
    assert update(admin, "transaction.version", 1, 2) == ([refused], text)
    assert update(admin, "transaction.version", 1, 1) == ([Code.NONE, refused], text)
    codes, text_of_unknown = update(admin, "kraft.version", 1, 2)
    assert (codes, text_of_unknown) == (
        [refused],
        "there is no feature 'kraft.version'; there are group.version, share.version, transaction.version",
    )


def test_one_node_is_its_own_quorum(house: House, admin: Guest) -> None:
    asked = [
        wire.QuorumTopic("__cluster_metadata", [wire.QuorumPartition(0)]),
        wire.QuorumTopic("orders", [wire.QuorumPartition(0)]),
    ]
    answer = admin.call(wire.DescribeQuorumRequest(asked), 2, wire.DescribeQuorumResponse)
    known, unknown = (topic.partitions[0] for topic in answer.topics)
    node_id = house.broker.broker.identity.node_id
    revision = house.broker.broker.topics.image.revision
    assert (known.error_code, known.leader_id, known.high_watermark) == (Code.NONE, node_id, revision)
    assert [(each.replica_id, each.log_end_offset) for each in known.current_voters] == [(node_id, revision)]
    assert (unknown.error_code, unknown.leader_id) == (Code.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert [node.node_id for node in answer.nodes] == [node_id]


def resources(admin: Guest, *types: int, version: int = 1) -> set[tuple[int, str]] | Code:
    request = wire.ListConfigResourcesRequest(list(types))
    answer = admin.call(request, version, wire.ListConfigResourcesResponse)
    found = {(one.resource_type, one.resource_name) for one in answer.config_resources}
    return Code(answer.error_code) if answer.error_code else found


def test_whatever_has_options_is_listed(house: House, admin: Guest) -> None:
    topics = {(TOPIC, name) for name in ("audit", "orders", "zoo")}
    broker = {(BROKER, str(house.broker.broker.identity.node_id))}
    assert resources(admin, TOPIC) == topics
    assert resources(admin, GROUPS) == {(GROUPS, GROUP)}
    assert resources(admin) == topics | broker | {(GROUPS, GROUP)}
    assert resources(admin, CLIENT_METRICS, version=0) == set()
    assert resources(admin, LOGGER) is Code.UNSUPPORTED_VERSION


def pages(admin: Guest, limit: int, *names: str) -> list[list[tuple[str | None, int, list[int]]]]:
    """Each answer: topics with their code and partitions; on and on, until there is no cursor."""
    found: list[list[tuple[str | None, int, list[int]]]] = []
    cursor = None
    while len(found) < 20:
        request = wire.DescribeTopicPartitionsRequest([wire.DescribedTopicName(name) for name in names], limit, cursor)
        answer = admin.call(request, 0, wire.DescribeTopicPartitionsResponse)
        found.append(
            [
                (topic.name, topic.error_code, [each.partition_index for each in topic.partitions])
                for topic in answer.topics
            ]
        )
        cursor = answer.next_cursor
        if cursor is None:
            return found
    raise AssertionError("it goes round in circles")


def test_partitions_are_described_page_by_page(admin: Guest) -> None:
    assert pages(admin, PARTITIONS_MAX) == [[("audit", 0, [0, 1]), ("orders", 0, [0, 1, 2]), ("zoo", 0, [0])]]
    assert pages(admin, 2) == [
        [("audit", 0, [0, 1])],
        [("orders", 0, [0, 1])],
        [("orders", 0, [2]), ("zoo", 0, [0])],
    ]
    assert pages(admin, 3) == [[("audit", 0, [0, 1]), ("orders", 0, [0])], [("orders", 0, [1, 2]), ("zoo", 0, [0])]]
    assert pages(admin, 0, "zoo", "nope", "audit") == [
        [("audit", 0, [0])],
        [("audit", 0, [1])],
        [("nope", Code.UNKNOWN_TOPIC_OR_PARTITION, []), ("zoo", 0, [0])],
    ]


def test_a_cursor_that_makes_no_sense_is_refused(admin: Guest) -> None:
    request = wire.DescribeTopicPartitionsRequest(cursor=wire.TopicPartitionsCursor("orders", -3))
    (topic,) = admin.call(request, 0, wire.DescribeTopicPartitionsResponse).topics
    assert topic.error_code == Code.INVALID_REQUEST


def test_a_topic_that_is_gone_does_not_stop_the_next_page(house: House, admin: Guest) -> None:
    request = wire.DescribeTopicPartitionsRequest(cursor=wire.TopicPartitionsCursor("parcels", 5))
    answer = admin.call(request, 0, wire.DescribeTopicPartitionsResponse)
    assert [topic.name for topic in answer.topics] == ["zoo"]


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_client_that_asks_is_told_what_it_may_do(house: House, admin: Guest, is_asked: bool) -> None:
    def expected(kind: Kind) -> int:
        return bits(OPERATIONS[kind]) if is_asked else NOT_ASKED_FOR

    asked = metadata.MetadataRequest([metadata.MetadataRequestTopic(name="orders")])
    asked.include_topic_authorized_operations = asked.include_cluster_authorized_operations = is_asked
    answer = admin.call(asked, 10, metadata.MetadataResponse)
    assert answer.topics[0].topic_authorized_operations == expected(Kind.TOPIC)
    assert answer.cluster_authorized_operations == expected(Kind.CLUSTER)
    of_cluster = admin.call(metadata.DescribeClusterRequest(is_asked), 2, metadata.DescribeClusterResponse)
    assert of_cluster.cluster_authorized_operations == expected(Kind.CLUSTER)
    described = admin.call(
        wire.DescribeTopicPartitionsRequest([wire.DescribedTopicName("orders")]),
        0,
        wire.DescribeTopicPartitionsResponse,
    )
    assert described.topics[0].topic_authorized_operations == bits(OPERATIONS[Kind.TOPIC])  # it cannot be asked not to

    joined = JoinGroupRequest("old", 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")])
    Guest(house).send(joined, 3)
    (group,) = admin.call(
        describe_groups.DescribeGroupsRequest(["old"], is_asked), 5, describe_groups.DescribeGroupsResponse
    ).groups
    assert group.group_state != "Dead"
    assert group.authorized_operations == expected(Kind.GROUP)

    heartbeat = consumer_groups.ConsumerGroupHeartbeatRequest("new", "m", 0, rebalance_timeout_ms=5000)
    heartbeat.subscribed_topic_names, heartbeat.topic_partitions = ["orders"], []
    beaten = admin.call(heartbeat, 0, consumer_groups.ConsumerGroupHeartbeatResponse)
    assert beaten.error_code == Code.NONE
    (consumers,) = admin.call(
        consumer_groups.ConsumerGroupDescribeRequest(["new"], is_asked),
        0,
        consumer_groups.ConsumerGroupDescribeResponse,
    ).groups
    assert consumers.authorized_operations == expected(Kind.GROUP)
    (shared,) = admin.call(
        share_groups.ShareGroupDescribeRequest([GROUP], is_asked), 1, share_groups.ShareGroupDescribeResponse
    ).groups
    assert shared.authorized_operations == expected(Kind.GROUP)


def test_the_log_directory_is_told_with_its_sizes(house: House, admin: Guest) -> None:
    house.publish(b"x" * 1000)
    request = placement.DescribeLogDirsRequest([placement.DescribableLogDirTopic("orders", [0, 1, 9])])
    (directory,) = admin.call(request, 4, placement.DescribeLogDirsResponse).results
    (topic,) = directory.topics
    sizes = {each.partition_index: each.partition_size for each in topic.partitions}
    replicas = {number: house.broker.broker.topics.replica("orders", number) for number in (0, 1)}
    assert sizes == {number: replica.size_bytes for number, replica in replicas.items()}
    assert sizes[0] > 1000
    assert (directory.total_bytes, directory.usable_bytes) == (
        house.broker.disk.total_bytes(),
        house.broker.disk.free_bytes(),
    )
