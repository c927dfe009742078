"""Every producer, codec and acknowledgement level is read back exactly by every consumer."""

import pytest

from tests.integration.clients import Client, Headers, Message, Record
from tests.integration.conftest import ALL_CLIENTS, CreateTopic
from tests.integration.process import Node, wait_until
from tests.integration.topics import end_offsets

PARTITIONS = 3
MESSAGES_PER_PARTITION = 20
FIRST_MS = 1_700_000_000_000
WHOLE = dict.fromkeys(range(PARTITIONS), MESSAGES_PER_PARTITION)


def message(partition: int, number: int) -> Message:
    """No two alike; among them an empty and a missing key and value, and repeated and empty headers."""
    key = [b"key %d" % number, None, b""][number % 3]
    value = None if number % 6 == 0 else b"" if number % 6 == 4 else b"value %d of %d " % (number, partition) * 20
    headers: Headers = (("a", b"1"), ("a", b"\xff"), ("empty", b"")) if number % 2 else ()
    return Message(partition, value, key, headers, FIRST_MS + number * 10 + partition)


SENT = [message(partition, number) for number in range(MESSAGES_PER_PARTITION) for partition in range(PARTITIONS)]


def expected(topic: str) -> set[Record]:
    return {
        Record(topic, one.partition, number // PARTITIONS, one.value, one.key, one.headers, one.timestamp_ms or 0)
        for number, one in enumerate(SENT)
    }


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_sent_is_read_back_exactly_by_every_client(
    node: Node, make_topic: CreateTopic, client: type[Client], codec: str
) -> None:
    """Key, value, headers and timestamp, with acks 0, 1 and all."""
    topics = {acks: make_topic(PARTITIONS) for acks in ("0", "1", "all")}
    for acks, topic in topics.items():
        producer = client.producer(node.address, codec=codec, acks=acks)
        offsets = producer.send(topic, SENT)
        if acks != "0":
            assert offsets == [number // PARTITIONS for number in range(len(SENT))]
        else:  # nobody tells when they have arrived
            wait_until(lambda topic=topic: end_offsets(node, topic) == WHOLE, "arrival of all messages")  # type: ignore[misc]
        producer.close()
    ends = {(topic, number): MESSAGES_PER_PARTITION for topic in topics.values() for number in range(PARTITIONS)}
    for reader in ALL_CLIENTS:
        records = reader.read(node.address, ends)
        assert len(records) == len(set(records)), reader.name
        for acks, topic in topics.items():
            found = {record for record in records if record.topic == topic}
            assert found == expected(topic), f"acks {acks}, read by {reader.name}"
