"""Validation on publish, through the Kafka door and through HTTP."""

import json

import httpx
import pytest
from confluent_kafka import KafkaError
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer

from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.integration.bare_producer import plain_batch
from tests.integration.conftest import CreateTopic
from tests.integration.process import Node
from tests.integration.registry import FIELD, consume, message_class, produce, registry, value_of
from tests.integration.test_schemas import AVRO, JSON, ORDER
from tests.integration.wire import Wire

BAD = b'{"id": "o-2", "amount": -1}'
GOOD = b'{"id": "o-1", "amount": 3}'


def refused(node: Node, topic: str, data: bytearray) -> tuple[Code, dict[int, str]]:
    """What the node says of a batch: the code, and the errors of its records by their places."""
    places = [PartitionProduceData(0, memoryview(data))]
    request = ProduceRequest(None, -1, 30_000, [TopicProduceData(topic, partition_data=places)])
    with Wire(node) as wire:
        answer = wire.call(request, 8, ProduceResponse)
    result = answer.responses[0].partition_responses[0]
    return Code(result.error_code), {
        each.batch_index: each.batch_index_error_message or "" for each in result.record_errors
    }


def test_a_kafka_producer_hears_which_record_and_why(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(1, **{"schema.validation": "reject"})
    with registry(node) as client:
        client.register_schema(f"{topic}-value", Schema(JSON, "JSON"))
    good, bad = produce(node, topic, GOOD, BAD)
    assert bad.error is not None
    assert bad.error.code() == KafkaError.INVALID_RECORD
    assert good.error is not None  # Kafka takes a batch or it does not; this one was in the same
    (alone,) = produce(node, topic, GOOD)
    assert (alone.error, alone.offset) == (None, 0)
    code, told = refused(node, topic, plain_batch(GOOD, BAD, GOOD, b"no"))  # what Confluent's client does not show
    assert code is Code.INVALID_RECORD
    assert told.keys() == {1, 3}
    assert "field amount: -1 is less than the minimum of 0" in told[1]
    assert "not JSON" in told[3]


def test_what_the_serializers_write_is_taken_and_what_they_did_not_is_refused(
    node: Node, make_topic: CreateTopic
) -> None:
    topic = make_topic(1, **{"schema.validation": "reject"})
    other = make_topic(1, **{"schema.validation": "reject"})
    kind = message_class("Order", {"id": FIELD.TYPE_STRING})
    with registry(node) as client:
        value = AvroSerializer(client, AVRO)(ORDER, value_of(topic))
        proto = ProtobufSerializer(kind, client)(kind(id="o-1"), value_of(other))
    assert value is not None
    assert proto is not None
    (sent,) = produce(node, topic, value)
    assert (sent.error, sent.offset) == (None, 0)
    (sent,) = produce(node, other, proto)
    assert (sent.error, sent.offset) == (None, 0)
    for target, wrong, why in (
        (topic, value[:-1], "field amount"),
        (topic, value + b"x", "bytes are left behind it"),
        (topic, b"{}", "names no schema"),
        (topic, proto, "is none of subject"),
        (other, proto[:-1], "field id"),
        (other, b"\0\0\0\x7f\xff\0", "is none of subject"),
    ):
        code, told = refused(node, target, plain_batch(wrong))
        assert (code, set(told)) == (Code.INVALID_RECORD, {0}), wrong
        assert why in told[0]
    (body,) = produce(node, topic, value[5:], headers={"schema-id": str(int.from_bytes(value[1:5]))})
    assert body.error is None


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_bad_record_becomes_a_dead_letter_and_the_others_go_on(
    node: Node, make_topic: CreateTopic, compression: str
) -> None:
    topic = make_topic(1, **{"schema.validation": "dead-letter", "schema.subject": "{topic}"})
    with registry(node) as client:
        client.register_schema(topic, Schema(JSON, "JSON"))
    settings = {"compression.type": compression, "enable.idempotence": True}
    told = produce(node, topic, GOOD, BAD, GOOD, None, **settings)
    assert [each.error for each in told] == [None] * 4
    assert [each.offset for each in told] == [0, 1, 2, 3]
    found = consume(node, topic, 3)
    assert [(each.offset(), each.value()) for each in found] == [(0, GOOD), (2, GOOD), (3, None)]
    (letter,) = consume(node, f"{topic}.dlq", 1)
    headers = dict(letter.headers())
    assert letter.value() == BAD
    assert headers["gq-dlq-reason"] == b"schema"
    assert headers["gq-dlq-offset"] == b"1"
    assert b"field amount" in headers["gq-dlq-error"]


def test_http_validates_too(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(1, **{"schema.validation": "reject"})
    with httpx.Client(base_url=node.url) as http:
        registered = http.post(f"/schemas/subjects/{topic}/versions", json={"schema": JSON, "schemaType": "JSON"})
        assert registered.json()["version"] == 1
        messages = [{"value": GOOD.decode()}, {"value": BAD.decode()}, {"value": "no"}, {"value": GOOD.decode()}]
        results = http.post(f"/topics/{topic}/messages", json={"messages": messages}).json()["results"]
    assert [each["offset"] for each in results] == [0, -1, -1, 1]
    assert "field amount: -1 is less than the minimum of 0" in results[1]["error"]
    assert "not JSON" in results[2]["error"]
    assert [json.loads(each.value()) for each in consume(node, topic, 2)] == [json.loads(GOOD)] * 2
