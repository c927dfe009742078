"""A key has one partition, whoever publishes it: all interfaces of ours and the Kafka clients that hash alike."""

import asyncio
import json
from pathlib import Path

import confluent_kafka as ck
import httpx
import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]

from goqueue.client import Producer
from goqueue.client.grpc.sync import GrpcClient
from goqueue.records.partitioners import Partitioner, partition_for
from tests.integration.confluent_client import Confluent
from tests.integration.goqueue_command import Command
from tests.integration.kafka_python_client import KafkaProducer  # type: ignore[attr-defined]
from tests.integration.process import DEADLINE_S, Node
from tests.integration.sqs_door import client_of
from tests.integration.topics import admin_client, end_offsets

PARTITIONS = 3
KEYS = [f"customer-{number}" for number in range(12)]


def publish_confluent(node: Node, topic: str, partitioner: str) -> None:
    producer = ck.Producer({"bootstrap.servers": node.address, "partitioner": partitioner})
    for key in KEYS:
        producer.produce(topic, b"confluent", key.encode())
    assert producer.flush(DEADLINE_S) == 0


def publish_sqs(node: Node, queue: str) -> None:
    sqs = client_of(node.url)
    for number, key in enumerate(KEYS):
        sqs.send_message(QueueUrl=queue, MessageBody="sqs", MessageGroupId=key, MessageDeduplicationId=f"sqs-{number}")


async def publish_http(node: Node, topic: str) -> None:
    async with httpx.AsyncClient(base_url=node.url, timeout=DEADLINE_S) as http:
        body = {"messages": [{"key": key, "value": "http"} for key in KEYS]}
        reply = await http.post(f"/topics/{topic}/messages", json=body)
        assert not [each for each in reply.json()["results"] if "error" in each]


async def publish_ours(node: Node, topic: str) -> None:
    async with Producer(node.address) as producer:
        await producer.send_many(topic, [{"value": b"goqueue", "key": key.encode()} for key in KEYS])


def publish_grpc(node: Node, topic: str) -> None:
    with GrpcClient(node.grpc) as client:
        for key in KEYS:
            client.publish(topic, b"grpc", key=key.encode())


def publish_cli(node: Node, topic: str, home: Path) -> None:
    lines = "".join(json.dumps({"key": key, "value": "cli"}) + "\n" for key in KEYS)
    Command(home, node.url).run("produce", topic, stdin=lines)


def publish_kafka_python(node: Node, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=node.address)
    for key in KEYS:
        producer.send(topic, b"kafka-python", key.encode()).get(DEADLINE_S)
    producer.close()


async def publish_aiokafka(node: Node, topic: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=node.address)
    await producer.start()
    try:
        for key in KEYS:
            await producer.send_and_wait(topic, b"aiokafka", key.encode())
    finally:
        await producer.stop()


def set_option(node: Node, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin_client(node.address).incremental_alter_configs([resource])[resource].result(DEADLINE_S)


OURS = {"sqs", "http", "goqueue", "grpc", "cli"}


@pytest.mark.parametrize(
    ("kind", "confluents", "others"),
    [
        (Partitioner.MURMUR2, "murmur2_random", {"kafka-python", "aiokafka"}),
        (Partitioner.CRC32, "consistent_random", set()),
    ],
    ids=["murmur2", "crc32"],
)
def test_a_key_has_one_partition_whoever_publishes_it(
    node: Node, group: str, tmp_path: Path, kind: Partitioner, confluents: str, others: set[str]
) -> None:
    topic = f"{group}.fifo"
    queue = client_of(node.url).create_queue(QueueName=topic, Attributes={"FifoQueue": "true"})["QueueUrl"]
    if kind is not Partitioner.MURMUR2:
        set_option(node, topic, "partitioner", kind.value)
    publish_confluent(node, topic, confluents)
    publish_sqs(node, queue)
    publish_grpc(node, topic)
    publish_cli(node, topic, tmp_path)
    asyncio.run(publish_http(node, topic))
    asyncio.run(publish_ours(node, topic))
    if others:
        publish_kafka_python(node, topic)
        asyncio.run(publish_aiokafka(node, topic))
    writers = {"confluent", *OURS, *others}
    expected = {(writer, key, partition_for(key.encode(), PARTITIONS, kind)) for writer in writers for key in KEYS}
    ends = end_offsets(node, topic, PARTITIONS)
    records = Confluent.read(node.address, {(topic, number): end for number, end in ends.items()})
    found = [((each.value or b"").decode(), (each.key or b"").decode(), each.partition) for each in records]
    assert sorted(found) == sorted(expected)
