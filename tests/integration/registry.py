"""Confluent's schema registry client and its serializers, unmodified, against a node."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.integration.process import DEADLINE_S, Node

Value = Callable[[str], SerializationContext]


@contextmanager
def registry(node: Node, below: str = "") -> Iterator[SchemaRegistryClient]:
    client = SchemaRegistryClient({"url": node.url + below})
    try:
        yield client
    finally:
        client.close()


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


class Delivery:
    """What became of one message: an offset or an error."""

    def __init__(self) -> None:
        self.offset = -1
        self.error: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Any) -> None:
        self.error = error
        self.offset = -1 if error is not None else message.offset()


def produce(node: Node, topic: str, *values: bytes | None, headers: Any = None, **settings: Any) -> list[Delivery]:
    """All of them to partition 0, in one batch if that can be."""
    producer = Producer({"bootstrap.servers": node.address, "linger.ms": 100, **settings})
    told = [Delivery() for _ in values]
    for value, delivery in zip(values, told, strict=True):
        producer.produce(topic, value, partition=0, on_delivery=delivery, headers=headers)
    assert producer.flush(DEADLINE_S) == 0
    return told


def consume(node: Node, topic: str, count: int) -> list[Any]:
    """The first messages of partition 0."""
    consumer = Consumer({"bootstrap.servers": node.address, "group.id": "readers", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Any] = []
        while len(found) < count:
            messages = consumer.consume(count - len(found), DEADLINE_S)
            assert messages, f"{len(found)} of {count} messages"
            for message in messages:
                assert message.error() is None, message.error()
                found.append(message)
        return found
    finally:
        consumer.close()


FIELD = descriptor_pb2.FieldDescriptorProto


def message_class(name: str, fields: dict[str, int], imports: str | None = None, pool: Any = None) -> Any:
    """A Protobuf message class as `protoc` would have generated it: {field: type}. Types above 100: a message of the
    imported file, called as the file is.
    """
    file = descriptor_pb2.FileDescriptorProto(name=f"{name.lower()}.proto", package="shop", syntax="proto3")
    if imports is not None:
        file.dependency.append(f"{imports.lower()}.proto")
    message = file.message_type.add(name=name)
    for number, (field, kind) in enumerate(fields.items(), 1):
        made = message.field.add(name=field, number=number, label=FIELD.LABEL_OPTIONAL, type=min(kind, 11))
        if kind > 100:
            made.type_name = f".shop.{imports}"
    pool = pool or descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}"))
