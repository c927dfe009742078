"""As `test_tenant_histories.py`, over Kafka, SQS and gRPC: two tenants on one node do at random what two nodes with one
user each do, with the same names, and are answered the same."""

import asyncio
from random import Random
from typing import Any

import pytest

from goqueue.testing import broker
from tests.layers import in_layers
from tests.unit.doors.http.bare import Asked, Bare
from tests.unit.doors.kafka.every_api import OFFERED
from tests.unit.doors.tenant_sides import GrpcAsked, KafkaAsked, Side, SqsAsked

TENANTS = ("acme", "beta")
STEPS = 150
TOPICS, GROUPS, QUEUES = ("orders", "jobs"), ("workers", "readers"), ("mail", "dead")
CLOSED = {
    *("AlterClientQuotas", "AlterPartitionReassignments", "DescribeClientQuotas", "DescribeLogDirs"),
}
"""About nodes and limits, which tenants do not see."""


def kafka(dice: Random) -> KafkaAsked:
    api = dice.choice([each for each in OFFERED if each.name not in CLOSED])
    version = dice.choice((api.versions.first, api.advertised.last))
    topic, group = dice.choice(TOPICS), dice.choice(GROUPS)
    names: dict[str, Any] = dict.fromkeys(("topic", "name", "topic_name", "topic_names", "resource_name"), topic)
    names |= dict.fromkeys(("group_id", "groups", "group_ids", "groups_names", "coordinator_keys"), f"{group}-kafka")
    names |= dict.fromkeys(("transactional_id", "transactional_ids", "v3_and_below_transactional_id"), f"{group}-tx")
    names |= {"subscribed_topic_names": topic, "validate_only": dice.random() < 0.2, "member_id": "$member"}
    names |= {"producer_id": "$producer", "producer_epoch": "$epoch"}
    names |= {
        "v3_and_below_producer_id": "$producer",
        "v3_and_below_producer_epoch": "$epoch",
        "share_session_epoch": dice.choice((0, 1, -1)),
    }
    return KafkaAsked(api, version, names)


def sqs(dice: Random) -> SqsAsked:
    url = {"QueueUrl": "$url"}
    action, given = dice.choice(
        (
            ("CreateQueue", {"QueueName": dice.choice(QUEUES)}),
            ("GetQueueUrl", {"QueueName": dice.choice(QUEUES)}),
            ("SendMessage", {**url, "MessageBody": f"m{dice.randrange(100)}"}),
            ("SendMessage", {**url, "MessageBody": f"m{dice.randrange(100)}"}),
            ("ReceiveMessage", {**url, "MaxNumberOfMessages": 10}),
            ("DeleteMessage", {**url, "ReceiptHandle": "$receipt"}),
            ("ChangeMessageVisibility", {**url, "ReceiptHandle": "$receipt", "VisibilityTimeout": 0}),
            ("GetQueueAttributes", {**url, "AttributeNames": ["All"]}),
            ("ListQueues", {}),
            ("ListDeadLetterSourceQueues", url),
            ("PurgeQueue", url),
            ("TagQueue", {**url, "Tags": {"a": "b"}}),
            ("ListQueueTags", url),
        )
    )
    return SqsAsked(action, given)


def grpc(dice: Random) -> GrpcAsked:
    topic, group = dice.choice(TOPICS), f"{dice.choice(GROUPS)}-grpc"
    place = {"topic": topic, "partition": 0}
    who = {"producer_id": "$producer", "epoch": "$epoch"}
    name = {} if dice.random() < 0.5 else {"transactional_id": f"{group}-tx"}
    method, given = dice.choice(
        (
            ("TopicService.CreateTopic", {"name": topic, "partitions": 2}),
            ("TopicService.ListTopics", {}),
            ("TopicService.DescribeTopic", {"name": topic}),
            ("PublishService.Publish", {**place, "value": "eA=="}),
            (
                "PublishService.Publish",
                {**place, "value": "eA==", "producer_id": "$producer", "producer_epoch": "$epoch"},
            ),
            ("ConsumeService.Consume", {"topic": topic, "until_end": True}),
            ("ConsumeService.Subscribe", {"topics": [topic], "group_id": group, "max_messages": 2}),
            ("OffsetService.CommitOffsets", {"group_id": f"{group}-stream", "offsets": [{**place, "offset": 1}]}),
            ("OffsetService.FetchOffsets", {"group_id": f"{group}-stream"}),
            ("GroupService.ListGroups", {}),
            ("GroupService.DescribeGroup", {"group_id": group}),
            ("GroupService.ConfigureGroup", {"group_id": group, "options": {"lease.ms": "2000"}}),
            ("GroupService.DeleteGroup", {"group_id": group}),
            ("TransactionService.InitProducer", {"transactional_id": f"{group}-tx"}),
            ("TransactionService.BeginTransaction", {**who, **name}),
            ("TransactionService.AddPartition", {**who, **name, **place}),
            ("TransactionService.CommitTransaction", {**who, **name}),
            ("TransactionService.ListTransactions", {}),
        )
    )
    return GrpcAsked(method, given)


@pytest.mark.parametrize("seed", in_layers(range(1, 7), 1))
def test_two_tenants_on_one_node_are_as_two_nodes_over_kafka_sqs_and_grpc(seed: int) -> None:
    async def scenario() -> None:
        dice = Random(seed)
        async with broker() as shared, broker() as one, broker() as other:
            bare = Bare(shared)
            for tenant in TENANTS:
                created = await bare.ask(Asked("POST", "/admin/tenants", {"id": tenant, "name": tenant}))
                assert created.status == 201
            sides = [(Side(shared, tenant), Side(alone)) for tenant, alone in zip(TENANTS, (one, other))]
            for side in (side for both in sides for side in both):  # groups wait for the first topic of a node
                await side.create_topic("first")
            history: list[Any] = []
            for _ in range(STEPS):
                number = dice.randrange(2)
                asked = dice.choice((kafka, kafka, sqs, grpc))(dice)
                history.append((TENANTS[number], asked[0].name if isinstance(asked, KafkaAsked) else asked))
                asking = [side.submit(asked) for side in sides[number]]
                for each in (shared, one, other):
                    await each.advance("1s")
                here, alone = [await answer() for answer in asking]
                assert here == alone, history[-6:]

    asyncio.run(scenario())
