"""Delayed records, asked for in a header by any Kafka client and read by every one of them when they are due."""

import time

import pytest

from tests.integration.clients import Client, Message
from tests.integration.conftest import ALL_CLIENTS, CreateTopic
from tests.integration.process import Node, wait_until
from tests.integration.topics import end_offsets

DELAY_MS = 400
COUNT = 12


@pytest.mark.parametrize("idempotent", [False, True])
def test_delayed_records_are_read_once_when_due_and_never_before_by_every_client(
    node: Node, make_topic: CreateTopic, client: type[Client], idempotent: bool
) -> None:
    """Sent one by one, so that most batches in the log hold nothing but places that are kept free."""
    topic = make_topic(1)
    producer = client.producer(node.address, idempotent=idempotent)
    sent_ms: dict[bytes, float] = {}
    places: list[int] = []
    headers = (("gq-delay-ms", b"%d" % DELAY_MS), ("gq-priority", b"high"))
    for number in range(COUNT):
        value = b"late %d" % number
        sent_ms[value] = time.time() * 1000
        places += producer.send(topic, [Message(0, value, headers=headers)])
    places += producer.send(topic, [Message(0, b"now")])
    producer.close()
    # On a machine that is busy with other things the first of them may fire before the last is sent.
    assert places == sorted(set(places))
    assert set(places) <= set(range(2 * COUNT + 1))
    wait_until(lambda: end_offsets(node, topic, 1) == {0: 2 * COUNT + 1}, "all delayed records")
    for reader in ALL_CLIENTS:
        records = reader.read(node.address, {(topic, 0): 2 * COUNT + 1})
        assert sorted(record.value or b"" for record in records) == sorted([*sent_ms, b"now"]), reader.name
        for record in records:
            if record.value != b"now":
                assert record.timestamp_ms >= sent_ms[record.value or b""] + DELAY_MS - 1
                assert dict(record.headers).keys() == {"gq-priority", "gq-published-at", "gq-scheduled-as"}
