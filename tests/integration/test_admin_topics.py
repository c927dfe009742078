"""Topics through the admin clients: made, refused, configured, grown, emptied, deleted, made again."""

from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from goqueue.wire.kafka.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.integration.aiokafka_client import run
from tests.integration.clients import ClientFailure, Message
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import ALL_CLIENTS, CreateTopic
from tests.integration.kafka_python_client import admin as kafka_python_admin
from tests.integration.members import Crowd
from tests.integration.process import DEADLINE_S, Node
from tests.integration.topics import admin_client, end_offsets
from tests.integration.wire import Wire

DAY_MS = "86400000"
EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
NEWEST: Any = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]


@pytest.fixture
def admin(node: Node) -> AdminClient:
    return admin_client(node.address)


def code_of(call: Callable[[], Any]) -> Code:
    """NONE if it succeeds."""
    try:
        call()
    except KafkaException as error:
        return Code(error.args[0].code())
    return Code.NONE


def create(admin: AdminClient, name: str, partitions: int = 3, *, check_only: bool = False, **config: str) -> Code:
    topic = NewTopic(name, partitions, 1, config={key.replace("_", "."): value for key, value in config.items()})
    return code_of(lambda: admin.create_topics([topic], validate_only=check_only)[name].result(DEADLINE_S))


def describe(admin: AdminClient, name: str) -> tuple[str, int]:
    """The id and the number of partitions."""
    found = admin.describe_topics(TopicCollection([name]))[name].result(DEADLINE_S)
    return str(found.topic_id), len(found.partitions)


def options(admin: AdminClient, name: str) -> dict[str, tuple[str, bool]]:
    """Value, and whether it is the default."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    found = admin.describe_configs([resource])[resource].result(DEADLINE_S)
    return {key: (entry.value, entry.is_default) for key, entry in found.items()}


def alter(admin: AdminClient, name: str, option: str, value: str | None) -> Code:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(option, value, incremental_operation=operation)
    resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
    return code_of(lambda: admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S))


def test_a_topic_is_made_with_its_options_and_three_partitions_unless_told(admin: AdminClient, group: str) -> None:
    assert create(admin, f"{group}-default", partitions=-1) is Code.NONE
    assert create(admin, f"{group}-own", 5, retention_ms=DAY_MS, durability="os") is Code.NONE
    assert describe(admin, f"{group}-default")[1] == 3
    assert describe(admin, f"{group}-own")[1] == 5
    own = options(admin, f"{group}-own")
    assert (own["retention.ms"], own["durability"]) == ((DAY_MS, False), ("os", False))
    assert options(admin, f"{group}-default")["durability"] == ("disk", True)


def test_a_dry_run_makes_nothing_and_says_what_would_be_refused(admin: AdminClient, group: str) -> None:
    assert create(admin, group, check_only=True) is Code.NONE
    assert group not in admin.list_topics(timeout=DEADLINE_S).topics
    assert create(admin, group, check_only=True, retention_ms="soon") is Code.INVALID_CONFIG
    assert create(admin, group) is Code.NONE
    assert create(admin, group, check_only=True) is Code.TOPIC_ALREADY_EXISTS


def test_what_cannot_be_is_refused_with_its_reason(admin: AdminClient, group: str) -> None:
    assert create(admin, group) is Code.NONE
    before = set(admin.list_topics(timeout=DEADLINE_S).topics)
    assert create(admin, group) is Code.TOPIC_ALREADY_EXISTS
    for name in ("../escape", "a b", ".", "..", "x" * 250, "@ours", "a/b", "ä"):
        assert create(admin, name) is Code.INVALID_TOPIC_EXCEPTION, name
    assert create(admin, f"{group}-x", 50_000) is Code.INVALID_PARTITIONS
    assert create(admin, f"{group}-x", no_such_option="1") is Code.INVALID_CONFIG
    assert create(admin, f"{group}-x", cleanup_policy="sometimes") is Code.INVALID_CONFIG
    wide = NewTopic(f"{group}-x", 1, 3)
    result = admin.create_topics([wide])[f"{group}-x"]
    assert code_of(lambda: result.result(DEADLINE_S)) is Code.INVALID_REPLICATION_FACTOR
    elsewhere = NewTopic(f"{group}-x", 2, replica_assignment=[[7], [1]])
    result = admin.create_topics([elsewhere])[f"{group}-x"]
    assert code_of(lambda: result.result(DEADLINE_S)) is Code.INVALID_REPLICA_ASSIGNMENT
    assert set(admin.list_topics(timeout=DEADLINE_S).topics) == before


def test_options_are_changed_put_back_and_unknown_ones_refused(admin: AdminClient, make_topic: CreateTopic) -> None:
    topic = make_topic()
    whole = options(admin, topic)
    assert alter(admin, topic, "retention.ms", DAY_MS) is Code.NONE
    assert options(admin, topic) == whole | {"retention.ms": (DAY_MS, False)}
    assert alter(admin, topic, "no.such.option", "1") is Code.INVALID_CONFIG
    assert alter(admin, topic, "retention.ms", "soon") is Code.INVALID_CONFIG
    assert options(admin, topic) == whole | {"retention.ms": (DAY_MS, False)}
    assert alter(admin, topic, "retention.ms", None) is Code.NONE
    assert options(admin, topic) == whole
    assert alter(admin, "no-such-topic", "retention.ms", DAY_MS) is Code.UNKNOWN_TOPIC_OR_PARTITION


def test_a_changed_message_size_holds_at_once(node: Node, admin: AdminClient, make_topic: CreateTopic) -> None:
    topic = make_topic()
    producer = Confluent.producer(node.address)
    assert alter(admin, topic, "max.message.bytes", "1000") is Code.NONE
    with pytest.raises(ClientFailure) as refused:
        producer.send(topic, [Message(0, bytes(2000))])
    assert refused.value.code == Code.MESSAGE_TOO_LARGE
    assert producer.send(topic, [Message(0, bytes(500))]) == [0]


def fetch_code(node: Node, topic_id: str) -> Code:
    """What a client is told that reads on from offset 0 of a topic that it knows by its id."""
    raw = urlsafe_b64decode(topic_id + "==")
    wanted = FetchTopic("", raw, [FetchPartition(0, fetch_offset=0, partition_max_bytes=1000)])
    with Wire(node) as wire:
        answer = wire.call(FetchRequest(max_bytes=1000, topics=[wanted]), 16, FetchResponse)
    return Code(answer.responses[0].partitions[0].error_code)


def test_a_topic_made_again_is_another_one(node: Node, admin: AdminClient, make_topic: CreateTopic) -> None:
    """No old message, no old offset; who still reads the old one is told."""
    topic = make_topic()
    Confluent.producer(node.address).send(topic, [Message(0, b"old %d" % number) for number in range(5)])
    old_id, _ = describe(admin, topic)
    reader = Confluent.member(node.address, f"{topic}-group", [topic])
    found: list[bytes | None] = []
    while len(found) < 5:
        found += [record.value for record in reader.poll()]
    reader.commit({(topic, 0): 5})
    admin.delete_topics([topic])[topic].result(DEADLINE_S)
    assert code_of(lambda: describe(admin, topic)) is Code.UNKNOWN_TOPIC_OR_PARTITION
    reader.close()
    assert create(admin, topic, 2) is Code.NONE
    new_id, partitions = describe(admin, topic)
    assert (new_id != old_id, partitions) == (True, 2)
    assert fetch_code(node, old_id) is Code.UNKNOWN_TOPIC_ID
    assert fetch_code(node, new_id) is Code.NONE
    assert end_offsets(node, topic, 2) == {0: 0, 1: 0}
    Confluent.producer(node.address).send(topic, [Message(0, b"new")])
    for kind in ALL_CLIENTS:
        assert [record.place for record in kind.read(node.address, {(topic, 0): 1})] == [(0, 0, b"new")]
    again = Confluent.member(node.address, f"{topic}-group", [topic])
    assert again.committed(topic, 0) is None
    again.close()


@pytest.mark.parametrize(
    ("client", "assignor"),
    [*((kind, "range") for kind in ALL_CLIENTS), (Confluent, "consumer")],
    ids=lambda one: getattr(one, "name", one),
)
def test_partitions_are_added_while_a_group_runs_and_it_takes_them(
    node: Node, admin: AdminClient, make_topic: CreateTopic, group: str, client: Any, assignor: str
) -> None:
    topic = make_topic(2)
    with Crowd() as crowd:
        crowd.join("reader", lambda: client.member(node.address, group, [topic], assignor, metadata_ms=500))
        crowd.wait_shared(topic, 2)
        grown = admin.create_partitions([NewPartitions(topic, 4)])[topic]
        grown.result(DEADLINE_S)
        producer = Confluent.producer(node.address)
        producer.send(topic, [Message(number, b"%d" % number) for number in range(4)])
        crowd.wait_shared(topic, 4)
        expected = {(number, 0, b"%d" % number) for number in range(4)}
        crowd.wait_for(lambda: crowd.received() >= expected, "receipt from all four")
        assert crowd.received() == expected
    fewer = admin.create_partitions([NewPartitions(topic, 3)])[topic]
    assert code_of(lambda: fewer.result(DEADLINE_S)) is Code.INVALID_PARTITIONS


def test_deleted_records_are_gone_and_the_rest_is_not(node: Node, admin: AdminClient, make_topic: CreateTopic) -> None:
    topic = make_topic(1)
    Confluent.producer(node.address).send(topic, [Message(0, b"%d" % number) for number in range(10)])
    place = TopicPartition(topic, 0, 4)
    assert admin.delete_records([place])[place].result(DEADLINE_S).low_watermark == 4
    with Crowd() as crowd:
        crowd.join("reader", lambda: Confluent.member(node.address, f"{topic}-group", [topic]))
        expected = {(0, number, b"%d" % number) for number in range(4, 10)}
        crowd.wait_for(lambda: crowd.received() >= expected, "receipt of the rest")
        assert crowd.received() == expected
    beyond = TopicPartition(topic, 0, 99)
    assert code_of(lambda: admin.delete_records([beyond])[beyond].result(DEADLINE_S)) is Code.OFFSET_OUT_OF_RANGE
    assert delete_before(node, topic, -2) == (Code.OFFSET_OUT_OF_RANGE, -1)
    assert delete_before(node, topic, -(2**63)) == (Code.OFFSET_OUT_OF_RANGE, -1)
    assert delete_before(node, topic, 3) == (Code.NONE, 4)
    assert delete_before(node, topic, -1) == (Code.NONE, 10)


def delete_before(node: Node, topic: str, offset: int) -> tuple[Code, int]:
    """What a client that checks nothing itself is told, and where the partition begins then."""
    asked = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])
    with Wire(node) as wire:
        answer = wire.call(DeleteRecordsRequest([asked], 5000), 2, DeleteRecordsResponse)
    (result,) = answer.topics[0].partitions
    return Code(result.error_code), result.low_watermark


def test_records_of_a_topic_that_is_only_compacted_are_not_deleted(
    node: Node, admin: AdminClient, make_topic: CreateTopic
) -> None:
    topic = make_topic(1)
    assert alter(admin, topic, "cleanup.policy", "compact") is Code.NONE
    assert delete_before(node, topic, 0) == (Code.POLICY_VIOLATION, -1)
    assert alter(admin, topic, "cleanup.policy", "compact,delete") is Code.NONE
    assert delete_before(node, topic, 0) == (Code.NONE, 0)


def test_offsets_are_found_by_time_and_at_both_ends(node: Node, admin: AdminClient, make_topic: CreateTopic) -> None:
    """Times need not rise: the first record at or after a time counts, and the newest is not the last."""
    topic = make_topic(1)
    times = [1000, 3000, 2000, 9000, 4000]
    Confluent.producer(node.address).send(topic, [Message(0, b"x", timestamp_ms=time) for time in times])

    def look(spec: OffsetSpec) -> tuple[int, int]:
        place = TopicPartition(topic, 0)
        found = admin.list_offsets({place: spec}, isolation_level=IsolationLevel.READ_UNCOMMITTED)[place]
        result = found.result(DEADLINE_S)
        return result.offset, result.timestamp

    assert look(EARLIEST)[0] == 0
    assert look(LATEST)[0] == 5
    assert look(NEWEST) == (3, 9000)
    by_time = {time: look(OffsetSpec.for_timestamp(time)) for time in (0, 1000, 1001, 3001, 9001)}
    assert by_time == {0: (0, 1000), 1000: (0, 1000), 1001: (1, 3000), 3001: (3, 9000), 9001: (-1, -1)}


def test_the_cluster_names_itself_alike_to_every_client(node: Node, admin: AdminClient) -> None:
    seen = admin.describe_cluster().result(DEADLINE_S)
    host, port = node.endpoint
    assert [(one.id, one.host, one.port) for one in seen.nodes] == [(seen.controller.id, host, port)]
    with kafka_python_admin(node.address) as other:
        told = other.describe_cluster()
        assert (told["cluster_id"], told["controller_id"]) == (seen.cluster_id, seen.controller.id)

    async def ask_aiokafka() -> Any:
        from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]

        client = AIOKafkaAdminClient(bootstrap_servers=node.address)
        await client.start()
        try:
            return await client.describe_cluster()
        finally:
            await client.close()

    assert run(ask_aiokafka())["cluster_id"] == seen.cluster_id


def test_a_broker_tells_where_its_http_door_is_and_what_it_was_told_at_its_start(
    admin: AdminClient, node: Node
) -> None:
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    found = admin.describe_configs([resource])[resource].result(DEADLINE_S)
    assert {entry.is_read_only for entry in found.values()} == {True}
    assert found["goqueue.http.address"].value == node.url.removeprefix("http://")
    assert found["advertised.listeners"].value == f"PLAINTEXT://{node.address}"
    assert (found["num.partitions"].value, found["num.partitions"].is_default) == ("3", True)
    assert found["auto.create.topics.enable"].value == "true"
    assert (found["log.retention.ms"].value, found["log.retention.ms"].is_default) == ("-1", False)


KAFKAS_OPTIONS = {
    "cleanup.policy": "compact,delete",
    "compression.gzip.level": "5",
    "compression.lz4.level": "9",
    "compression.type": "zstd",
    "compression.zstd.level": "3",
    "delete.retention.ms": "1000",
    "file.delete.delay.ms": "1000",
    "flush.messages": "1",
    "flush.ms": "1000",
    "follower.replication.throttled.replicas": "*",
    "index.interval.bytes": "8192",
    "leader.replication.throttled.replicas": "0:1",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": "86400000",
    "max.message.bytes": "2097164",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.4",
    "min.compaction.lag.ms": "1000",
    "min.insync.replicas": "1",
    "preallocate": "true",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "remote.storage.enable": "false",
    "retention.bytes": "1073741824",
    "retention.ms": DAY_MS,
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "5",
    "segment.ms": DAY_MS,
    "unclean.leader.election.enable": "true",
}
"""All that Kafka 4.1 has."""


def test_a_topic_is_made_with_every_option_that_kafka_has_and_shows_them(admin: AdminClient, group: str) -> None:
    topic = NewTopic(group, 1, 1, config=KAFKAS_OPTIONS)
    assert code_of(lambda: admin.create_topics([topic])[group].result(DEADLINE_S)) is Code.NONE
    shown = options(admin, group)
    assert {name: shown[name] for name in KAFKAS_OPTIONS} == {
        name: (text, False) for name, text in KAFKAS_OPTIONS.items()
    }
    assert alter(admin, group, "flush.ms", None) is Code.NONE
    assert options(admin, group)["flush.ms"] == ("9223372036854775807", True)
    assert alter(admin, group, "no.such.option", None) is Code.NONE
    assert alter(admin, group, "min.insync.replicas", "2") is Code.INVALID_CONFIG


def test_lists_are_appended_to_and_subtracted_from(admin: AdminClient, make_topic: CreateTopic) -> None:
    topic = make_topic(1)

    def change(operation: AlterConfigOpType, text: str) -> str:
        entry = ConfigEntry("cleanup.policy", text, incremental_operation=operation)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)
        return options(admin, topic)["cleanup.policy"][0]

    assert change(AlterConfigOpType.APPEND, "compact") == "compact,delete"
    assert change(AlterConfigOpType.SUBTRACT, "delete") == "compact"


def test_a_record_outside_the_time_bounds_of_its_topic_is_refused_with_kafkas_code(
    node: Node, admin: AdminClient, group: str
) -> None:
    assert create(admin, group, 1, message_timestamp_before_max_ms="3600000") is Code.NONE
    producer = Confluent.producer(node.address)
    with pytest.raises(ClientFailure) as refused:
        producer.send(group, [Message(0, b"old", timestamp_ms=1000)])
    assert refused.value.code == Code.INVALID_TIMESTAMP
    assert producer.send(group, [Message(0, b"new")]) == [0]
