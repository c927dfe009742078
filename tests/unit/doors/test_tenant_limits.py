"""Quotas of what a tenant has: sizes, delays, retention, bytes stored, groups and members, as each API tells them."""

import asyncio
from typing import Any

import pytest

from goqueue.model.codes import Code
from goqueue.records.build import build_batch
from goqueue.wire.grpc.publish_pb2 import PublishRequest
from goqueue.wire.kafka.messages.classic_groups import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from goqueue.wire.kafka.messages.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from goqueue.wire.kafka.messages.fetch import FetchResponse
from goqueue.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.brokers import data
from tests.unit.doors.http.bare import Answered
from tests.unit.doors.kafka.test_quotas import fetch, sent
from tests.unit.doors.tenant_node import KafkaTenant, TenantNode, refusal, tenant_node
from tests.unit.testing.loops import in_loop, turn


def produced(*values: bytes) -> bytes:
    topic = TopicProduceData("orders", bytes(16), [PartitionProduceData(1, data(*values))])
    return sent(ProduceRequest(None, -1, 1000, [topic]), 9, 1)


@in_loop
async def test_a_message_beyond_the_size_of_its_tenant_is_refused_and_those_beside_it_are_not() -> None:
    async with tenant_node(max_message_size_bytes=100) as node:
        words = "101 bytes; the quota max_message_size_bytes of the tenant is 100"
        assert errors(await node.publish("a" * 90, "b" * 101, "c" * 100)) == ["", words, ""]
        assert refusal(await node.grpc("Publish", PublishRequest(topic="orders", value=b"x" * 101)))[0] == (
            "RESOURCE_EXHAUSTED"
        )
        assert await node.sqs("CreateQueue", QueueName="jobs") == (200, "")
        sent = {"QueueUrl": "http://localhost/000000000000/jobs", "MessageBody": "x" * 101}
        assert await node.sqs("SendMessage", **sent) == (400, "InvalidParameterValueException")
        assert len(await node.b.read("acme~orders")) == 2


def errors(answer: Answered) -> list[str]:
    return [each.get("error") or "" for each in answer.json["results"]]


def code_of(answer: ProduceResponse) -> int:
    return int(answer.responses[0].partition_responses[0].error_code)


def test_over_kafka_small_messages_of_a_large_batch_are_taken_and_a_large_one_is_not() -> None:
    house = KafkaTenant(max_message_size_bytes=200)
    client = house.client()
    for _ in range(2):  # decoded, and by what was learned from it
        assert code_of(*client.ask(produced(b"x" * 150), ProduceResponse, 9)) == Code.NONE
        assert code_of(*client.ask(produced(*[b"x" * 150] * 5), ProduceResponse, 9)) == Code.NONE
        (refused,) = client.ask(produced(b"x", b"x" * 201), ProduceResponse, 9)
        assert code_of(refused) == Code.MESSAGE_TOO_LARGE
        (fault,) = refused.responses[0].partition_responses[0].record_errors
        assert fault.batch_index == 1
    house.limit(max_message_size_bytes=None)
    assert code_of(*client.ask(produced(b"x", b"x" * 201), ProduceResponse, 9)) == Code.NONE


@in_loop
async def test_a_message_may_not_wait_for_longer_than_its_tenant_may_say() -> None:
    async with tenant_node(max_delay_hours=2) as node:
        assert (await node.publish("a", delay="2h")).status == 200
        for wish in ({"delay": "121m"}, {"deliver_at": "2100-01-01T00:00:00Z"}):
            (told,) = errors(await node.publish("b", **wish))
            assert "max_delay_hours of the tenant is 2" in told
        (waiting,) = (await node.http("GET", "/topics/orders/delayed")).json["messages"]
        path = f"/topics/orders/delayed/{waiting['partition']}/{waiting['offset']}"
        refused = await node.http("PATCH", path, {"delay": "3h"})
        assert (refused.status, b"max_delay_hours" in refused.body) == (400, True)
        assert (await node.http("PATCH", path, {"delay": "1h"})).status == 200
        await node.b.advance("1h")
        assert [each.value for each in await node.b.read("acme~orders")] == [b"a"]


@in_loop
async def test_a_topic_keeps_records_no_longer_than_its_tenant_may() -> None:
    async with tenant_node(max_retention_hours=24) as node:
        for wish in ({"retention_hours": 25}, {"options": {"retention.ms": -1}}):
            refused = await node.http("POST", "/topics", {"name": "long", **wish})
            assert (refused.status, b"max_retention_hours of the tenant is 24" in refused.body) == (403, True)
        assert (await node.http("POST", "/topics", {"name": "short", "retention_hours": 3})).status == 201
        assert (await node.http("POST", "/topics", {"name": "plain"})).status == 201
        topics = node.b.broker.topics.image.topics
        kept = {name: topics[f"acme~{name}"].overrides.get("retention.ms") for name in ("orders", "short", "plain")}
        assert kept == {"orders": None, "short": str(3 * 3_600_000), "plain": str(24 * 3_600_000)}, (
            "what is there stays"
        )
        assert (await node.http("PATCH", "/topics/short", {"options": {"retention.ms": 90_000_000}})).status == 403
        assert (await node.http("PATCH", "/topics/short", {"options": {"retention.ms": None}})).status == 200
        assert topics_now(node)["acme~short"].overrides["retention.ms"] == str(24 * 3_600_000)
        assert (await node.of_default("POST", "/topics", {"name": "long", "retention_hours": -1})).status == 201


def topics_now(node: TenantNode) -> Any:
    return node.b.broker.topics.image.topics


# -- what is stored


@in_loop
async def test_a_tenant_that_stores_as_much_as_it_may_publishes_nothing_and_goes_on_reading() -> None:
    async with tenant_node(max_storage_bytes=20_000) as node:
        assert [errors(await node.publish("x" * 6000)) for _ in range(3)] == [[""]] * 3
        (told,) = errors(await node.publish("x" * 6000))
        assert "the quota max_storage_bytes of the tenant is 20000, and 1" in told
        assert refusal(await node.grpc("Publish", PublishRequest(topic="orders", value=b"x" * 6000)))[0] == (
            "RESOURCE_EXHAUSTED"
        )
        assert await node.sqs("CreateQueue", QueueName="jobs") == (200, "")
        sent = {"QueueUrl": "http://localhost/000000000000/jobs", "MessageBody": "x" * 6000}
        assert await node.sqs("SendMessage", **sent) == (403, "OverLimit")
        taken = (await node.http("POST", "/topics/orders/receive", {"group": "workers"})).json["messages"]
        assert len(taken) == 3
        held = [{"receipt_handle": each["receipt_handle"]} for each in taken]
        assert (await node.http("POST", "/messages/reject", {**held[0], "reason": "bad"})).status == 200
        assert (await node.http("POST", "/messages/ack", held[1])).status == 200
        await node.b.advance("1s")
        assert len(await node.b.read("acme~orders.dlq")) == 1, "a dead letter has its place"
        assert (await node.usage())["stored_bytes"] > 20_000
        assert (await node.of_default("POST", "/topics/other/messages", {"messages": [{"value": "x"}]})).status == 200
        assert (await node.http("DELETE", "/topics/orders.dlq")).status == 200
        await node.b.advance("1s")
        assert errors(await node.publish("x")) == [""], "there is room again"
        await node.limit(max_storage_bytes=30_000)
        assert errors(await node.publish("x" * 6000)) == [""]


@in_loop
async def test_what_waits_for_its_time_is_stored_too() -> None:
    async with tenant_node(max_storage_bytes=20_000) as node:
        told = [errors(await node.publish("x" * 6000, delay="1h"))[0] for _ in range(4)]
        assert (told[:3], "max_storage_bytes" in told[3]) == ([""] * 3, True)
        await node.b.advance("2s")
        assert errors(await node.publish("x" * 6000)) != [""], "when it is counted anew"
        await node.b.advance("1h")
        assert len(await node.b.read("acme~orders")) == 3, "what was taken comes"


@pytest.mark.parametrize("is_learned", [False, True])
def test_over_kafka_a_producer_is_told_that_its_tenant_has_no_room(is_learned: bool) -> None:
    house = KafkaTenant(max_storage_bytes=20_000)
    client = house.client()
    if is_learned:
        assert code_of(*client.ask(produced(b"x"), ProduceResponse, 9)) == Code.NONE
    many = b"".join(produced(b"x" * 6000) for _ in range(4))
    assert [code_of(each) for each in client.ask(many, ProduceResponse, 9)] == [0, 0, 0, Code.POLICY_VIOLATION]
    (got,) = house.client().ask(fetch(1), FetchResponse, 11)
    records = got.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert bytes(records).count(b"x" * 6000) == 3
    house.limit(max_storage_bytes=40_000)
    assert code_of(*client.ask(produced(b"x" * 6000), ProduceResponse, 9)) == Code.NONE


def test_a_batch_that_is_stored_is_acknowledged_again_though_its_tenant_has_no_room_any_more() -> None:
    house = KafkaTenant(max_storage_bytes=10_000)
    client = house.client()

    def numbered(sequence: int) -> bytes:
        records = build_batch([(0, None, b"x" * 6000, [])], producer_id=7, producer_epoch=0, base_sequence=sequence)
        topic = TopicProduceData("orders", bytes(16), [PartitionProduceData(1, memoryview(records))])
        return sent(ProduceRequest(None, -1, 1000, [topic]), 9, 1)

    (first,) = client.ask(numbered(0), ProduceResponse, 9)
    (again,) = client.ask(numbered(0), ProduceResponse, 9)
    assert (code_of(first), code_of(again)) == (Code.NONE, Code.NONE)
    places = [each.responses[0].partition_responses[0].base_offset for each in (first, again)]
    assert places == [0, 0]
    assert code_of(*client.ask(numbered(1), ProduceResponse, 9)) == Code.POLICY_VIOLATION


# -- groups


@in_loop
async def test_a_tenant_has_so_many_groups_and_no_more() -> None:
    async with tenant_node(max_consumer_groups=2) as node:

        async def receive(group: str) -> int:
            return (await node.http("POST", "/topics/orders/receive", {"group": group})).status

        async def commit(group: str) -> Answered:
            offsets = [{"topic": "orders", "partition": 0, "offset": 0}]
            return await node.http("POST", f"/groups/{group}/offsets", {"offsets": offsets})

        assert await receive("one") == 200
        assert (await commit("two")).status == 200
        assert [await receive("three"), (await commit("four")).status] == [403, 403]
        assert b"max_consumer_groups of the tenant is 2, and it has 2 groups" in (await commit("four")).body
        assert [await receive("one"), (await commit("two")).status] == [200, 200], "those that are there go on"
        assert (await node.usage())["groups"] == 2
        other = {"group": "three", "start": "earliest"}
        assert (await node.of_default("POST", "/topics", {"name": "orders"})).status == 201
        assert (await node.of_default("POST", "/topics/orders/receive", other)).status == 200
        assert (await node.http("DELETE", "/groups/two")).status == 200
        assert await receive("three") == 200


def test_over_kafka_a_tenant_has_so_many_groups_and_each_so_many_members() -> None:
    house = KafkaTenant(max_consumer_groups=1, max_consumers_per_group=1)
    client = house.client()

    def join(group: str) -> int:
        protocol = JoinGroupRequestProtocol("range", b"")
        asked = JoinGroupRequest(group, 30_000, 30_000, "", None, "consumer", [protocol])
        (answer,) = client.ask(sent(asked, 3, 1), JoinGroupResponse, 3)
        return int(answer.error_code)

    def heartbeat(group: str, member: str) -> int:
        asked = ConsumerGroupHeartbeatRequest(group, member, 0, subscribed_topic_names=["orders"])
        asked.rebalance_timeout_ms, asked.topic_partitions = 30_000, []
        (answer,) = client.ask(sent(asked, 1, 1), ConsumerGroupHeartbeatResponse, 1)
        return int(answer.error_code)

    assert (heartbeat("workers", "one"), heartbeat("workers", "one")) == (Code.NONE, Code.NONE)
    assert heartbeat("workers", "two") == Code.GROUP_MAX_SIZE_REACHED
    assert join("others") == Code.POLICY_VIOLATION
    house.limit(max_consumer_groups=2, max_consumers_per_group=1)
    assert join("others") == Code.NONE
    assert join("others") == Code.GROUP_MAX_SIZE_REACHED
    house.limit(max_consumer_groups=2, max_consumers_per_group=2)
    assert heartbeat("workers", "two") == Code.NONE


# -- connections


@in_loop
async def test_requests_that_last_are_connections_of_their_tenant() -> None:
    async with tenant_node(max_connections=1) as node:
        waits = {"group": "workers", "wait": "10s"}
        waiting = asyncio.ensure_future(node.http("POST", "/topics/orders/receive", waits))
        for _ in range(5):
            await turn()
        refused = await node.http("GET", "/topics")
        assert (refused.status, refused.json["code"]) == (429, "THROTTLING_QUOTA_EXCEEDED")
        assert "max_connections of the tenant is 1" in refused.json["error"]
        assert await node.sqs("ListQueues") == (403, "RequestThrottled")
        told = await node.grpc("Publish", PublishRequest(topic="orders", value=b"x"))
        assert refusal(told)[0] == "RESOURCE_EXHAUSTED"
        assert (await node.usage())["connections"] == 1
        assert (await node.of_default("GET", "/topics")).status == 200
        await node.b.advance("10s")
        assert (await waiting).status == 200
        for _ in range(3):
            assert (await node.http("GET", "/topics")).status == 200
            assert (await node.http("GET", "/topics/nobody")).status == 404
            assert await node.sqs("ListQueues") == (200, "")
        published = PublishRequest(topic="orders", value=b"x")
        assert isinstance((await node.grpc("Publish", published))[0], bytes)
        assert isinstance((await node.grpc("Publish", published, lasts=True))[0], bytes)
        assert refusal(await node.grpc("Publish", published))[0] == "RESOURCE_EXHAUSTED"
        assert (await node.usage())["connections"] == 1


def test_a_kafka_connection_too_many_is_closed() -> None:
    house = KafkaTenant(max_connections=1)
    first, second = house.client(), house.client()
    assert (first.transport.is_closing(), second.transport.is_closing()) == (False, True)
    second.leave()
    assert code_of(*first.ask(produced(b"x"), ProduceResponse, 9)) == Code.NONE
    house.limit(max_connections=2)
    third, fourth = house.client(), house.client()
    assert (third.transport.is_closing(), fourth.transport.is_closing()) == (False, True)
    for each in (first, third, fourth):
        each.leave()
    assert house.broker.broker.tenants.seats.taken("acme") == 0
