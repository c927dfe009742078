"""One queue, two protocols: what Kafka clients publish boto3 receives, and the other way round."""

from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from goqueue.testing import MemoryBroker
from tests.integration.confluent_client import Confluent
from tests.integration.sqs_door import SqsDoor, attributes_of, make_fifo, make_queue, new_name, receive, receive_all
from tests.integration.topics import create_topic


def name_of(url: str) -> str:
    return url.rpartition("/")[2]


def produce(sqs_door: SqsDoor, topic: str, *records: dict[str, Any], **settings: Any) -> list[tuple[int, int]]:
    """Partition and offset of each."""
    told: list[tuple[int, int]] = []

    def delivered(error: Any, message: Any) -> None:
        assert error is None
        told.append((message.partition(), message.offset()))

    producer = Producer({"bootstrap.servers": sqs_door.kafka, "linger.ms": 50, **settings})
    for record in records:
        producer.produce(topic, on_delivery=delivered, **record)
    assert producer.flush(20) == 0
    return told


def read(sqs_door: SqsDoor, topic: str) -> list[Any]:
    def ends(b: MemoryBroker) -> dict[tuple[str, int], int]:
        partitions = b.broker.topics.image.topics[topic].partitions
        return {(topic, each): b.broker.topics.end_offset(topic, each) or 0 for each in range(partitions)}

    async def ask(b: MemoryBroker) -> dict[tuple[str, int], int]:
        return ends(b)

    found = sqs_door.ask(ask)
    return list(Confluent.read(sqs_door.kafka, {place: end for place, end in found.items() if end}))


def test_a_kafka_client_reads_what_boto3_sent_with_its_attributes(sqs: Any, sqs_door: SqsDoor) -> None:
    url = make_queue(sqs)
    attributes = {
        "text": {"DataType": "String", "StringValue": "drei Äpfel"},
        "count": {"DataType": "Number", "StringValue": "3"},
        "bytes": {"DataType": "Binary", "BinaryValue": b"\xff"},
    }
    sqs.send_message(QueueUrl=url, MessageBody="hello", MessageGroupId="customer-7", MessageAttributes=attributes)
    (record,) = read(sqs_door, name_of(url))
    assert (record.key, record.value) == (b"customer-7", b"hello")
    assert dict(record.headers) == {
        "text": "drei Äpfel".encode(),
        "count": b"3",
        "sqs-type-count": b"Number",
        "bytes": b"\xff",
    }


def test_boto3_receives_what_a_kafka_client_published_to_any_topic(sqs: Any, sqs_door: SqsDoor) -> None:
    topic = new_name("topic")
    create_topic(sqs_door.kafka, topic, 2, {})
    headers = [("trace", b"1"), ("trace", b"2"), ("raw", b"\xff\xfe"), ("none", None), ("gq-priority", b"high")]
    produce(sqs_door, topic, {"value": b"text", "key": b"k", "headers": headers}, {"value": b"\xff\x00"})
    url = sqs.get_queue_url(QueueName=topic)["QueueUrl"]
    assert attributes_of(sqs, url, "ApproximateNumberOfMessages") == {"ApproximateNumberOfMessages": "2"}
    found = receive_all(sqs, url, 2, AttributeNames=["All"], MessageAttributeNames=["All"])
    plain, raw = sorted(found, key=lambda each: each["Body"], reverse=True)
    assert (plain["Body"], plain["Attributes"]["MessageGroupId"]) == ("text", "k")
    assert plain["MessageAttributes"] == {
        "trace": {"DataType": "String", "StringValue": "2"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\xff\xfe"},
    }
    assert (raw["Body"], raw["MessageAttributes"]) == (
        "/wA=",
        {"body-encoding": {"DataType": "String", "StringValue": "base64"}},
    )
    assert "dlq" in attributes_of(sqs, url, "RedrivePolicy")["RedrivePolicy"]  # as for any topic


def test_the_ids_of_a_fifo_queue_count_for_kafka_producers_too(sqs: Any, sqs_door: SqsDoor) -> None:
    url = make_fifo(sqs)
    sqs.send_message(QueueUrl=url, MessageBody="from boto3", MessageGroupId="g", MessageDeduplicationId="one")

    def record(value: bytes, given: bytes) -> dict[str, Any]:
        return {"value": value, "key": b"g", "headers": [("gq-dedup-id", given)]}

    records = [record(b"again", b"one"), record(b"from kafka", b"two"), record(b"again", b"two")]
    for settings in ({}, {"enable.idempotence": True}, {"compression.type": "zstd"}):
        produce(sqs_door, name_of(url), *records, **settings)
    sqs.send_message(QueueUrl=url, MessageBody="again", MessageGroupId="g", MessageDeduplicationId="two")
    assert sorted(each.value for each in read(sqs_door, name_of(url))) == [b"from boto3", b"from kafka"]


def test_options_set_by_a_kafka_client_are_attributes_and_take_nothing_away(sqs: Any, sqs_door: SqsDoor) -> None:
    url = make_queue(sqs, DelaySeconds="7")
    sqs.tag_queue(QueueUrl=url, Tags={"team": "shop"})
    admin = AdminClient({"bootstrap.servers": sqs_door.kafka})
    resource = ConfigResource(ConfigResource.Type.TOPIC, name_of(url))
    (described,) = admin.describe_configs([resource]).values()
    assert not [name for name in described.result(10) if name.startswith("sqs.")]
    wanted = ConfigResource(ConfigResource.Type.TOPIC, name_of(url), set_config={"lease.ms": "5000"})
    with pytest.deprecated_call():  # the call that takes back all that it does not name
        (altered,) = admin.alter_configs([wanted]).values()
    altered.result(10)
    found = attributes_of(sqs, url, "VisibilityTimeout", "DelaySeconds")
    assert found == {"VisibilityTimeout": "5", "DelaySeconds": "7"}
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "shop"}


def test_delays_and_lanes_of_kafka_headers_hold_for_boto3(sqs: Any, sqs_door: SqsDoor) -> None:
    url = make_queue(sqs)
    (place,) = produce(sqs_door, name_of(url), {"value": b"later", "headers": [("gq-delay-ms", b"500")]})
    assert receive(sqs, url) == []
    (message,) = receive(sqs, url, wait=5)
    assert message["Body"] == "later"
    partition, _ = place
    wish = {"gq-priority": {"DataType": "String", "StringValue": "critical"}}
    for number in range(5):
        sqs.send_message(QueueUrl=url, MessageBody=str(number), MessageGroupId="g")
    sqs.send_message(QueueUrl=url, MessageBody="urgent", MessageGroupId="g", MessageAttributes=wish)
    assert partition in range(3)
    (first,) = receive_all(sqs, url, 1)
    assert first["Body"] == "urgent"
