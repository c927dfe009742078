"""The quota controller_mutation_rate (KIP-599): so many partitions a second may be made or deleted, through any API."""

from typing import Any

import pytest

from goqueue.broker.accounts.logins import Logins
from goqueue.broker.gate import Gate
from goqueue.doors.grpc.homes import HOMES
from goqueue.doors.grpc.permissions import PERMISSIONS
from goqueue.doors.http.permissions import WRITES_TOPIC
from goqueue.doors.sqs.handlers.table import ACTIONS
from goqueue.machines.controller_commands import CreateTopic
from goqueue.model.access import Kind, Operation
from goqueue.model.codes import Code
from goqueue.model.credentials import NotAuthenticated, Principal
from goqueue.model.listener import IN_PROCESS
from goqueue.testing import broker
from goqueue.wire.grpc.publish_pb2 import PublishRequest
from goqueue.wire.grpc.topic_pb2 import CreateTopicRequest, DeleteTopicRequest
from goqueue.wire.home import Way
from goqueue.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from goqueue.wire.kafka.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tests.unit.doors.http.test_credentials import done_of
from tests.unit.doors.kafka.test_quotas import CLIENT, USER, Client, limited, sent
from tests.unit.doors.tenant_node import KafkaTenant, refusal, tenant_node
from tests.unit.testing.loops import in_loop

MUTATIONS = "controller_mutation_rate"
BURST_S = 11
"""As in Kafka: `controller.quota.window.num` seconds of it at once."""


def create(client: Client, *names: str, partitions: int = 1, version: int = 7, **fields: Any) -> CreateTopicsResponse:
    topics = [CreatableTopic(name, partitions, 1) for name in names]
    request = CreateTopicsRequest(topics, timeout_ms=1000, **fields)
    (answer,) = client.ask(sent(request, version, 1), CreateTopicsResponse, version)
    return answer


def delete(client: Client, *names: str) -> DeleteTopicsResponse:
    request = DeleteTopicsRequest([DeleteTopicState(name) for name in names], timeout_ms=1000)
    (answer,) = client.ask(sent(request, 6, 1), DeleteTopicsResponse, 6)
    return answer


def grow(client: Client, name: str, count: int, *, validate_only: bool = False) -> CreatePartitionsResponse:
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, count, None)], 1000, validate_only)
    (answer,) = client.ask(sent(request, 3, 1), CreatePartitionsResponse, 3)
    return answer


def codes(answer: CreateTopicsResponse) -> list[int]:
    return [each.error_code for each in answer.topics]


@pytest.mark.parametrize(
    "entity",
    [{USER: "ANONYMOUS"}, {CLIENT: "app"}, {USER: "ANONYMOUS", CLIENT: "app"}, {USER: None}, {CLIENT: None}],
    ids=["user", "client", "both", "default user", "default client"],
)
def test_of_one_request_some_topics_are_made_and_the_rest_is_too_many(entity: dict[str, str | None]) -> None:
    house = limited((MUTATIONS, 1.0), entity=entity)
    client = Client(house)
    names = [f"t{number:02}" for number in range(BURST_S + 3)]
    answer = create(client, *names)
    assert codes(answer) == [Code.NONE] * (BURST_S + 1) + [Code.THROTTLING_QUOTA_EXCEEDED] * 2
    assert [each.topic_id == bytes(16) for each in answer.topics] == [False] * (BURST_S + 1) + [True] * 2
    assert answer.throttle_time_ms == 1000
    assert not client.is_read(), "and what comes next is read so much later"
    assert sorted(house.broker.broker.topics.image.topics) == ["orders", *names[: BURST_S + 1]]
    house.broker.clock.advance(1000)
    again = create(client, *names[BURST_S + 1 :])
    assert codes(again) == [Code.NONE, Code.THROTTLING_QUOTA_EXCEEDED]
    assert house.broker.broker.metrics.meters.throttles[MUTATIONS] == 3


def test_partitions_count_also_when_they_are_deleted_or_added() -> None:
    house = limited((MUTATIONS, 1.0))
    client = Client(house)
    assert codes(create(client, "wide", partitions=BURST_S + 4)) == [Code.NONE], "one may be larger than the burst"
    gone = delete(client, "wide")
    assert [each.error_code for each in gone.responses] == [Code.THROTTLING_QUOTA_EXCEEDED]
    assert gone.throttle_time_ms == 4000
    house.broker.clock.advance(4000)
    grown = grow(client, "orders", 5)
    assert ([each.error_code for each in grown.results], grown.throttle_time_ms) == ([Code.NONE], 0)
    grown = grow(client, "orders", 6)
    assert [each.error_code for each in grown.results] == [Code.THROTTLING_QUOTA_EXCEEDED]
    assert grown.throttle_time_ms == 3000
    house.broker.clock.advance(3000)
    assert [each.error_code for each in delete(client, "orders").responses] == [Code.NONE]
    assert delete(client, "wide").throttle_time_ms == 5000, "the five partitions of orders"


def test_what_makes_nothing_costs_nothing() -> None:
    house = limited((MUTATIONS, 1.0))
    client = Client(house)
    for _ in range(BURST_S + 2):
        assert codes(create(client, "orders", partitions=5)) == [Code.TOPIC_ALREADY_EXISTS]
        assert codes(create(client, "a b", partitions=5)) == [Code.INVALID_TOPIC_EXCEPTION]
        assert codes(create(client, "checked", partitions=5, validate_only=True)) == [Code.NONE]
        assert [each.error_code for each in grow(client, "orders", 9, validate_only=True).results] == [Code.NONE]
        assert [each.error_code for each in grow(client, "orders", 1).results] == [Code.INVALID_PARTITIONS]
        assert [each.error_code for each in delete(client, "none").responses] == [Code.UNKNOWN_TOPIC_OR_PARTITION]
    answer = create(client, "new", partitions=BURST_S)
    assert (codes(answer), answer.throttle_time_ms) == ([Code.NONE], 0)


def test_clients_that_do_not_know_the_error_get_all_and_wait_after() -> None:
    house = limited((MUTATIONS, 1.0))
    client = Client(house)
    answer = create(client, *(f"t{number}" for number in range(BURST_S + 3)), version=5)
    assert codes(answer) == [Code.NONE] * (BURST_S + 3)
    assert answer.throttle_time_ms == 3000
    assert not client.is_read()


def test_topics_that_are_made_because_somebody_asks_for_them_count() -> None:
    house = limited((MUTATIONS, 1.0))
    client = Client(house)

    def asked(*names: str) -> list[int]:
        topics = [MetadataRequestTopic(name=name) for name in names]
        (answer,) = Client(house).ask(sent(MetadataRequest(topics, True), 9, 1), MetadataResponse, 9)
        return [each.error_code for each in answer.topics]

    while create(client, f"t{len(house.broker.broker.topics.image.topics)}").throttle_time_ms == 0:
        pass
    house.broker.clock.advance(500)
    assert asked("wanted", "orders") == [Code.LEADER_NOT_AVAILABLE, Code.NONE], "which is asked for again"
    house.broker.clock.advance(500)
    assert asked("wanted", "orders") == [Code.NONE, Code.NONE]


def test_a_tenant_has_one_rate_for_all_its_clients_over_kafka() -> None:
    house = KafkaTenant(controller_mutation_rate=1)
    client, other = house.client(), house.client()
    names = [f"t{number}" for number in range(BURST_S + 1)]
    assert codes(create(client, *names)) == [Code.NONE] * len(names)
    refused = create(other, "more")
    assert (codes(refused), refused.throttle_time_ms) == ([Code.THROTTLING_QUOTA_EXCEEDED], 1000)
    of_default: list[Any] = []
    house.broker.broker.topics.submit(CreateTopic("mine", bytes([9]) * 16, 50), of_default.append)
    house.broker.commit()
    assert of_default[0].code is Code.NONE, "others are not concerned"


@in_loop
async def test_a_tenant_is_told_over_http() -> None:
    async with tenant_node(controller_mutation_rate=1) as node:
        assert (await node.http("POST", "/topics", {"name": "wide", "num_partitions": 14})).status == 201
        new = "POST", "/topics", {"name": "more", "num_partitions": 1}
        refused = await node.http(*new)
        assert (refused.status, refused.json["code"]) == (429, "THROTTLING_QUOTA_EXCEEDED")
        assert b"controller_mutation_rate of 1 a second is used up; try again in 3000 ms" in refused.body
        assert (await node.http("DELETE", "/topics/wide")).status == 429
        assert (await node.http("POST", "/admin/topics/wide/partitions", {"count": 15})).status == 429
        assert (await node.publish("a")).status == 200, "nothing else is limited"
        assert (await node.of_default("POST", "/topics", {"name": "more"})).status == 201
        await node.b.advance("3s")
        assert (await node.http(*new)).status == 201
        assert (await node.http("GET", "/topics")).json == {"topics": ["more", "orders", "wide"]}


@in_loop
async def test_a_tenant_is_told_over_sqs_and_grpc() -> None:
    async with tenant_node(controller_mutation_rate=1) as node:
        assert (await node.http("POST", "/topics", {"name": "wide", "num_partitions": 14})).status == 201
        assert await node.sqs("CreateQueue", QueueName="jobs") == (403, "RequestThrottled")
        wide = CreateTopicRequest(name="wider", partitions=14)  # gRPC has a gate of its own here
        assert isinstance((await node.grpc("CreateTopic", wide))[0], bytes)
        for name, request in (
            ("CreateTopic", CreateTopicRequest(name="more", partitions=1)),
            ("DeleteTopic", DeleteTopicRequest(name="wide")),
        ):
            status, words = refusal(await node.grpc(name, request))
            assert (status, MUTATIONS in words) == ("RESOURCE_EXHAUSTED", True)
        status, words = refusal(await node.grpc("Publish", PublishRequest(topic="fresh", value=b"x")))
        assert (status, MUTATIONS in words) == ("RESOURCE_EXHAUSTED", True)
        await node.b.advance("3s")
        assert await node.sqs("CreateQueue", QueueName="jobs") == (200, "")
        assert (await node.http("GET", "/topics")).json["topics"] == ["jobs", "orders", "wide", "wider"]


@in_loop
async def test_a_request_whose_topics_are_counted_meets_the_rights_that_there_are_now() -> None:
    async with broker() as b:
        accounts = b.broker.accounts
        gate = Gate(b.broker, logins=Logins(accounts, b.broker.clock, b.broker.dice, b"secret"), is_closed=True)
        made = await done_of(lambda done: accounts.create_key("maker", ("admin",), 0, {}, done))
        await done_of(lambda done: accounts.set_quota(None, "app", {MUTATIONS: 1.0}, done))
        access = gate.access(Principal(made.key.principal), IN_PROCESS)
        counted = access.charged("app")
        assert counted is not access
        counted.view(WRITES_TOPIC)
        await done_of(lambda done: accounts.delete_key(made.key.key_id, done))
        for each in (counted, access):
            with pytest.raises(NotAuthenticated):
                each.view(WRITES_TOPIC)


def test_what_makes_or_deletes_topics_is_done_where_it_came_in() -> None:
    """Over gRPC and SQS, which count there only: nothing of it is passed on to another node."""
    changing = {Operation.CREATE, Operation.DELETE, Operation.ALTER}
    grpc = {name: (each, HOMES[name]) for name, each in PERMISSIONS.items()}
    sqs = {name: (each.permission, each.home) for name, each in ACTIONS.items()}
    found = {
        name
        for name, (permission, home) in {**grpc, **sqs}.items()
        if changing & set(permission.needs.get(Kind.TOPIC, ())) and home.way in (Way.HOME, Way.FIRST, Way.EVERYWHERE)
    }
    assert found <= {"PurgeQueue"}, "which deletes messages"
