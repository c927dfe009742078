"""Counters against what clients were told: over every door, with retries, refusals and delays, they are equal."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka import KafkaError, Message, Producer
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as plain

from goqueue.client.grpc import GrpcClient
from goqueue.model.errors import GoQueueError
from goqueue.testing import MemoryBroker
from tests.integration.process import Node
from tests.integration.sqs_door import SqsDoor, client_of

openmetrics: Any = openmetrics_parser.text_string_to_metric_families  # without types

MESSAGES = 300
TOPICS = ("orders", "bills")
OPENMETRICS = {"accept": "application/openmetrics-text; version=1.0.0"}
TOO_LARGE = 1_200_000


@pytest.fixture
def door() -> Iterator[SqsDoor]:
    started = SqsDoor().start()
    yield started
    started.stop()


def counted(url: str, name: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for family in plain(httpx.get(f"{url}/metrics").text):
        for sample in family.samples:
            if sample.name == name:
                found[sample.labels["topic"]] += int(sample.value)
    return found


def over_kafka(door: SqsDoor, acked: Counter[str], refused: Counter[str]) -> None:
    """Idempotent; its first requests are answered too late, so that it sends them again."""

    def told(error: KafkaError | None, message: Message) -> None:
        (refused if error else acked)[str(message.topic())] += 1

    producer = Producer(
        {
            "bootstrap.servers": door.kafka,
            "enable.idempotence": True,
            "socket.timeout.ms": 1000,
            "retry.backoff.ms": 50,
            "message.max.bytes": 2 * TOO_LARGE,
            "linger.ms": 5,
            "batch.num.messages": 7,
        }
    )
    door.ask(lambda b: slow_disk(b, "1200ms"))
    for number in range(MESSAGES):
        producer.produce(TOPICS[number % 2], b"x" * 10, key=b"%d" % number, on_delivery=told)
    assert producer.flush(3) > 0
    door.ask(lambda b: slow_disk(b, "0ms"))
    assert producer.flush(30) == 0
    assert door.ask(duplicates) > 0, "nothing was sent again: the test shows less than it says"


async def slow_disk(b: MemoryBroker, sync: str) -> None:
    b.slow_disk(sync)


async def duplicates(b: MemoryBroker) -> int:
    """Batches that were acknowledged without being stored: they had been before."""
    acknowledged = sum(histogram.count for histogram in b.broker.metrics.meters.published_s.values())
    return acknowledged - b.broker.publisher.batches


def over_http(door: SqsDoor, acked: Counter[str], refused: Counter[str]) -> None:
    with httpx.Client(base_url=door.url) as http:
        for number in range(20):
            topic = TOPICS[number % 2]
            messages = [{"value": "a"}, {"value": "b", "delay": "50ms"}, {"value": "c", "delay": "never"}]
            reply = http.post(f"/topics/{topic}/messages", json={"messages": messages})
            for result in reply.json()["results"]:
                (refused if result.get("error") else acked)[topic] += 1
        assert http.post("/topics/no%20name/messages", json={"messages": [{"value": "a"}]}).status_code == 400


def over_sqs(door: SqsDoor, acked: Counter[str]) -> None:
    client = client_of(door.url)
    url = client.create_queue(QueueName="jobs")["QueueUrl"]
    fifo = client.create_queue(QueueName="jobs.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    for number in range(15):
        client.send_message(QueueUrl=url, MessageBody=f"body {number}")
        acked["jobs"] += 1
        once = {"MessageGroupId": "g", "MessageDeduplicationId": str(number // 3)}
        client.send_message(QueueUrl=fifo, MessageBody="same", **once)
        acked["jobs.fifo"] += number % 3 == 0  # the others are known already
    sent = client.send_message_batch(
        QueueUrl=url, Entries=[{"Id": str(number), "MessageBody": "x"} for number in range(10)]
    )
    acked["jobs"] += len(sent["Successful"])


async def in_process(b: MemoryBroker) -> tuple[int, int]:
    await b.publish_many("orders", [b"x"] * 25)
    with pytest.raises(GoQueueError):
        await b.publish("orders", b"x" * TOO_LARGE)
    return 25, 1


def test_counters_equal_what_was_acknowledged_over_every_door(door: SqsDoor) -> None:
    acked: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for topic in TOPICS:
        door.ask(lambda b, topic=topic: b.create_topic(topic, partitions=3))  # type: ignore[misc]
    over_kafka(door, acked, refused)
    over_http(door, acked, refused)
    over_sqs(door, acked)
    more, none = door.ask(in_process)
    acked["orders"] += more
    refused["orders"] += none
    published = "goqueue_broker_messages_published_total"
    assert acked["orders"] > MESSAGES // 2
    assert counted(door.url, published) == acked
    door.wait_until(lambda b: not b.broker.schedules.pending_by_topic())  # what becomes due adds nothing
    assert counted(door.url, published) == acked
    failed = counted(door.url, "goqueue_broker_messages_failed_total")
    assert {topic: count for topic, count in failed.items() if count} == dict(refused)


def test_a_slow_publish_is_followed_from_its_exemplar_to_its_journey(door: SqsDoor) -> None:
    door.ask(lambda b: b.create_topic("orders"))
    door.ask(lambda b: slow_disk(b, "60ms"))
    with httpx.Client(base_url=door.url) as http:
        http.post("/topics/orders/messages", json={"messages": [{"value": "a"}]})
        reply = http.get("/metrics", headers=OPENMETRICS)
        found = [
            sample.exemplar
            for family in openmetrics(reply.text)
            if family.name == "goqueue_broker_publish_latency_seconds"
            for sample in family.samples
            if sample.exemplar is not None
        ]
        (exemplar,) = found
        assert exemplar.value > 0.06
        trace = http.get(f"/traces/{exemplar.labels['trace_id']}").json()
    assert trace["trace_id"] == exemplar.labels["trace_id"]
    events = [(event["event_type"], event["topic"], event["offset"]) for event in trace["spans"]]
    assert ("publish.persisted", "orders", 0) in events


def test_counters_equal_what_was_acknowledged_over_grpc(own_node: Node) -> None:
    async def publish() -> tuple[int, int]:
        acked = refused = 0
        async with GrpcClient(own_node.grpc) as client:
            for number in range(20):
                size = TOO_LARGE if number % 5 == 4 else 10
                try:
                    await client.publish("orders", b"x" * size)
                    acked += 1
                except GoQueueError:
                    refused += 1
        return acked, refused

    httpx.post(f"{own_node.url}/topics", json={"name": "orders"}).raise_for_status()
    assert asyncio.run(publish()) == (16, 4)
    assert counted(own_node.url, "goqueue_broker_messages_published_total")["orders"] == 16
    assert counted(own_node.url, "goqueue_broker_messages_failed_total")["orders"] == 4
