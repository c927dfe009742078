"""Produce: a refused batch names its bad records and no others; missing copies are told to who asked for them."""

from dataclasses import replace

from goqueue.model.codes import Code
from goqueue.records.build import build_batch
from goqueue.wire.kafka.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.brokers import data
from tests.unit.doors.kafka.share_members import Guest, House

VERSION = 9


def produce(guest: Guest, topic: str, records: memoryview, acks: int = -1) -> PartitionProduceResponse:
    asked = TopicProduceData(topic, partition_data=[PartitionProduceData(0, records)])
    answer = guest.call(ProduceRequest(None, acks, 1000, [asked]), VERSION, ProduceResponse)
    return answer.responses[0].partition_responses[0]


def test_the_records_without_a_key_are_named_and_only_those() -> None:
    house = House()
    house.broker.create("prices", cleanup_policy="compact")
    guest = Guest(house)
    batch = build_batch([(1000, key, b"x", []) for key in (b"a", None, b"c", None)])
    result = produce(guest, "prices", memoryview(batch))
    assert result.error_code == Code.INVALID_RECORD
    assert [one.batch_index for one in result.record_errors] == [1, 3]


def test_the_records_with_a_wish_that_cannot_be_are_named_and_only_those() -> None:
    house = House()
    guest = Guest(house)
    batch = build_batch([(1000, None, b"x", [("gq-delay-ms", value)]) for value in (b"5", b"soon", b"6")])
    result = produce(guest, "orders", memoryview(batch))
    assert result.error_code == Code.INVALID_RECORD
    assert [one.batch_index for one in result.record_errors] == [1]


def test_a_batch_that_cannot_be_names_no_record() -> None:
    result = produce(Guest(House()), "nowhere", data(b"x"))
    assert (result.error_code, result.record_errors) == (Code.UNKNOWN_TOPIC_OR_PARTITION, [])


def test_who_asks_for_all_copies_is_told_that_there_are_not_enough_and_who_does_not_is_served() -> None:
    house = House()
    guest = Guest(house)
    replica = house.broker.broker.topics.replica("orders", 0)
    assert produce(guest, "orders", data(b"before")).base_offset == 0
    replica.options = replace(replica.options, min_insync_replicas=2)
    for _ in range(2):  # the second time the way of the request is known
        refused = produce(guest, "orders", data(b"x"))
        assert (refused.error_code, refused.base_offset) == (Code.NOT_ENOUGH_REPLICAS, -1)
    assert [produce(guest, "orders", data(b"y"), acks=1).base_offset for _ in range(2)] == [1, 2]
    replica.options = replace(replica.options, min_insync_replicas=1)
    assert produce(guest, "orders", data(b"z")).base_offset == 3
