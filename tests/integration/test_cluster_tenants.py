"""Two tenants with the same names on three closed nodes, through a Kafka client that logs in as a user over SASL_SSL:
producers, groups, transactions and admin, with partitions and coordinators on all nodes."""

import ssl
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType  # type: ignore[attr-defined]

from tests.integration.closed_cluster import NODES, ClosedCluster
from tests.integration.process import DEADLINE_S, wait_until

PARTITIONS = 6
MESSAGES = 60
PASSWORD = "four blue pencils"
TENANTS = ("acme", "beta")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClosedCluster]:
    running = ClosedCluster(tmp_path_factory.mktemp("tenants"))
    try:
        _furnish(running.start())
        yield running
    finally:
        running.clean_up()


def _furnish(cluster: ClosedCluster) -> None:
    """Each tenant, and its `alice`, by another node; then every node knows of both."""
    keys = [each.first_key for each in cluster.nodes.values() if (each.log_file.parent / "bootstrap.key").exists()]
    with httpx.Client(verify=ssl.create_default_context(cafile=cluster.ca), timeout=DEADLINE_S) as client:

        def ask(number: int, path: str, tenant: str = "", **said: Any) -> int:
            headers = {"X-API-Key": keys[0], **({"X-GoQueue-Tenant": tenant} if tenant else {})}
            return client.post(cluster.url(number) + path, headers=headers, json=said).status_code

        def is_known(number: int, tenant: str) -> bool:
            login = (f"{tenant}~alice", PASSWORD)
            return client.get(f"{cluster.url(number)}/topics", auth=login).status_code == 200

        alice: Any = {"name": "alice", "password": PASSWORD, "roles": ["admin"]}
        for number, tenant in enumerate(TENANTS, start=1):
            assert ask(number, "/admin/tenants", id=tenant, name=tenant) == 201
            wait_until(partial(lambda *at: ask(*at, **alice) == 201, number + 1, "/admin/users", tenant), "alice")
            for each in NODES:
                wait_until(partial(is_known, each, tenant), f"{tenant} on node {each}")


def as_alice(cluster: ClosedCluster, tenant: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": cluster.kafka,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": f"{tenant}~alice",
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(cluster.ca),
        **more,
    }


@pytest.fixture(scope="module")
def topics(cluster: ClosedCluster) -> list[str]:
    """Made by each tenant, with messages that say whose they are."""
    for tenant in TENANTS:
        admin = AdminClient(as_alice(cluster, tenant))
        wanted = [NewTopic("orders", PARTITIONS, 3), NewTopic("bills", 1, 3), NewTopic(f"of-{tenant}", 1, 3)]
        for made in admin.create_topics(wanted).values():
            made.result(DEADLINE_S)
        told: list[Any] = []
        keep = partial(lambda errors, error, _message: errors.append(error), told)
        producer = Producer(as_alice(cluster, tenant, **{"enable.idempotence": True}))
        for number in range(MESSAGES):
            value = f"{tenant} {number}".encode()
            producer.produce("orders", value, partition=number % PARTITIONS, on_delivery=keep)
        producer.flush(DEADLINE_S)
        assert told == [None] * MESSAGES
    return ["orders", "bills"]


def _sent(tenant: str) -> set[bytes]:
    return {f"{tenant} {number}".encode() for number in range(MESSAGES)}


def _read(consumers: list[Consumer], wanted: int) -> set[bytes]:
    """A message may come twice: who joins takes partitions of which nothing was committed."""
    found: set[bytes] = set()

    def has_all() -> bool:
        for consumer in consumers:
            for message in consumer.consume(100, 0.1):
                assert message.error() is None, message.error()
                found.add(message.value() or b"")
        return len(found) >= wanted

    wait_until(has_all, f"{wanted} messages")
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_of_the_same_name_read_their_own_tenant(
    cluster: ClosedCluster, topics: list[str], protocol: str
) -> None:
    group = {"group.id": f"readers-{protocol}", "group.protocol": protocol, "auto.offset.reset": "earliest"}
    settings = {**group, "enable.auto.commit": False}
    members = {tenant: [Consumer(as_alice(cluster, tenant, **settings)) for _ in range(2)] for tenant in TENANTS}
    for consumers in members.values():
        for consumer in consumers:
            consumer.subscribe(topics[:1])
    for tenant, consumers in members.items():
        found = _read(consumers, MESSAGES)
        assert found == _sent(tenant), "each of its own, and none of the other tenant's"
        for consumer in consumers:
            read = [each for each in consumer.position(consumer.assignment()) if each.offset >= 0]
            if read:  # one that got its partitions last may have found nothing left
                consumer.commit(offsets=read, asynchronous=False)
            consumer.close()
    for tenant in TENANTS:
        places = [TopicPartition("orders", number) for number in range(PARTITIONS)]
        again = Consumer(as_alice(cluster, tenant, **settings))
        committed = again.committed(places, timeout=DEADLINE_S)
        again.close()
        assert sum(each.offset for each in committed) == MESSAGES


def test_transactions_of_the_same_id_do_not_touch_each_other(cluster: ClosedCluster, topics: list[str]) -> None:
    def writer(tenant: str) -> Producer:
        producer = Producer(as_alice(cluster, tenant, **{"transactional.id": "shop"}))
        producer.init_transactions(DEADLINE_S)
        return producer

    producers = {tenant: writer(tenant) for tenant in TENANTS}
    for tenant, producer in producers.items():  # with one name for all, the second would have fenced the first
        source = Consumer(as_alice(cluster, tenant, **{"group.id": "billing", "isolation.level": "read_committed"}))
        producer.begin_transaction()
        producer.produce(topics[1], f"bill of {tenant}".encode())
        offsets = [TopicPartition("orders", number, 5) for number in range(PARTITIONS)]
        producer.send_offsets_to_transaction(offsets, source.consumer_group_metadata(), DEADLINE_S)
        if tenant == "acme":
            producer.commit_transaction(DEADLINE_S)
        else:
            producer.abort_transaction(DEADLINE_S)
        committed = source.committed([TopicPartition("orders", 0)], timeout=DEADLINE_S)
        assert [each.offset for each in committed] == [5 if tenant == "acme" else -1001]
        source.close()
    with pytest.raises(KafkaException, match=r"fenced|FENCED|newer instance"):
        _use_after(producers["acme"], writer("acme"))
    settings = {"group.id": "bills", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    reader = Consumer(as_alice(cluster, "acme", **settings))
    reader.subscribe(topics[1:])
    assert _read([reader], 1) == {b"bill of acme"}
    reader.close()


def _use_after(older: Producer, _newer: Producer) -> None:
    older.begin_transaction()
    older.produce("bills", b"too late")
    older.commit_transaction(DEADLINE_S)


def test_an_admin_of_a_tenant_sees_and_changes_its_own_through_every_node(
    cluster: ClosedCluster, topics: list[str]
) -> None:
    ids: dict[str, set[str]] = {}
    for number, tenant in zip(NODES, (*TENANTS, TENANTS[0]), strict=True):
        admin = AdminClient(as_alice(cluster, tenant) | {"bootstrap.servers": f"{cluster.hosts[number]}:9092"})
        assert sorted(admin.list_topics(timeout=DEADLINE_S).topics) == sorted([*topics, f"of-{tenant}"])
        described = admin.describe_cluster().result(DEADLINE_S)
        assert {node.id for node in described.nodes} == set(NODES)
        ids.setdefault(tenant, set()).add(described.cluster_id)
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        ends = {TopicPartition("orders", number): latest for number in range(PARTITIONS)}
        told = admin.list_offsets(ends)
        assert sum(each.result(DEADLINE_S).offset for each in told.values()) == MESSAGES
        resource = ConfigResource(ResourceType.TOPIC, f"of-{tenant}")
        assert admin.describe_configs([resource])[resource].result(DEADLINE_S)
        other = TENANTS[tenant == TENANTS[0]]
        gone = admin.delete_topics([f"of-{other}"])[f"of-{other}"]
        with pytest.raises(KafkaException, match="UNKNOWN_TOPIC"):
            gone.result(DEADLINE_S)
    assert [len(each) for each in ids.values()] == [1, 1]
    assert ids["acme"] != ids["beta"], "so that no client mixes two tenants"
