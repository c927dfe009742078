"""One group with members of two worlds: one speaks HTTP and reads as a queue, one is a Kafka consumer of KIP-848."""

import httpx
import pytest

from tests.integration.clients import Consumer
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.http_client import HttpConsumer
from tests.integration.members import Crowd, Stream
from tests.integration.process import Node

PARTITIONS = 4


def kafka_owns_all(crowd: Crowd, topic: str) -> bool:
    return crowd.owned("kafka") == {(topic, number) for number in range(PARTITIONS)}


@pytest.mark.parametrize("by_receipt", [True, False], ids=["receipts", "offsets"])
def test_http_and_kafka_members_share_a_group_and_each_message_comes_once(
    node: Node, make_topic: CreateTopic, group: str, by_receipt: bool
) -> None:
    topic = make_topic(PARTITIONS)
    others = f"{group}-others"

    def http() -> Consumer:
        return HttpConsumer(node, group, [topic], by_receipt=by_receipt)

    with Crowd() as crowd, Crowd() as other_crowd:
        stream = Stream(Confluent.producer(node.address), topic, PARTITIONS)
        with stream:
            other_crowd.join("other", lambda: Confluent.member(node.address, others, [topic]))
            crowd.join("http", http)
            crowd.wait_for(lambda: len(crowd.owned("http")) == PARTITIONS, "all for the first member")
            crowd.wait_for(lambda: len(crowd.deliveries) > 50, "some messages")
            crowd.join("kafka", lambda: Confluent.member(node.address, group, [topic], "consumer"))
            crowd.wait_shared(topic, PARTITIONS)
            seen = len(crowd.deliveries)
            crowd.wait_for(lambda: len(crowd.deliveries) > seen + 100, "messages for both")
            assert {each.member for each in crowd.deliveries[seen:]} == {"http", "kafka"}
            crowd.leave("http")
            crowd.wait_for(lambda: kafka_owns_all(crowd, topic), "all for the Kafka member")
            seen = len(crowd.deliveries)
            crowd.wait_for(lambda: len(crowd.deliveries) > seen + 50, "messages for the Kafka member")
            crowd.join("http", http)
            crowd.wait_shared(topic, PARTITIONS)
        for one in (crowd, other_crowd):
            one.wait_for(lambda one=one: stream.sent <= one.received(), "all messages")  # type: ignore[misc]
            assert one.received() == stream.sent
            assert len(one.deliveries) == len(stream.sent), "no message came twice"
        assert crowd.gaps() == []
        crowd.leave("kafka")
        crowd.leave("http")
        lag = httpx.get(f"{node.url}/groups/{group}/lag").json()
        assert (lag["total_lag"], lag["type"], lag["state"]) == (0, "consumer", "Empty")
        assert [each["committed_offset"] for each in lag["partitions"]] == [
            each["end_offset"] for each in lag["partitions"]
        ]
