"""What members of a classic group tell each other: opaque to the protocol, read only to describe a group."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from goqueue.wire.kafka.notation import Bytes, Int32, Message, String


class ProtocolTopicPartitions(Message):
    topic: String = ""
    partitions: list[Int32] = []


class ConsumerProtocolSubscription(Message):
    topics: list[String] = []
    user_data: Bytes | None = None
    owned_partitions: Annotated[list[ProtocolTopicPartitions], "1+ ignorable"] = []
    generation_id: Annotated[Int32, "2+ ignorable"] = -1
    rack_id: Annotated[String | None, "3+ ignorable"] = None


class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[ProtocolTopicPartitions] = []
    user_data: Bytes | None = None
