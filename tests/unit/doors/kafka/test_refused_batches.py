"""What idempotent producers hear of batches that they sent behind one that was refused for now."""

from typing import Any

import pytest

from goqueue.model.codes import Code
from goqueue.replica.roles import Reign
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.frames import decode_response
from goqueue.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.brokers import data
from tests.unit.doors.kafka.test_door_fuzz import House, frame

PRODUCE = 0


class Idempotent:
    """A producer with several requests under way on one connection."""

    def __init__(self, house: House, producer_id: int = 7) -> None:
        self._house = house
        self._guest = house.knock()
        self._producer_id = producer_id

    def send(self, sequence: int, epoch: int = 0) -> tuple[int, int]:
        """Code and offset."""
        batch = data(b"x", producer_id=self._producer_id, producer_epoch=epoch, base_sequence=sequence)
        part = PartitionProduceData(0, batch)
        asked = ProduceRequest(None, -1, 1000, [TopicProduceData("orders", partition_data=[part])])
        self._guest.send(frame(asked, 9, 1))
        self._house.broker.commit()
        response: Any = decode_response(APIS[PRODUCE].response, 9, self._guest.replies()[-1])[1]
        (answered,) = response.responses[0].partition_responses
        return answered.error_code, answered.base_offset


def refuse_one(house: House, producer: Idempotent, sequence: int, epoch: int = 3) -> None:
    """While nobody leads; then this copy leads again."""
    replica = house.broker.broker.topics.replica("orders", 0)
    replica.follow(epoch, leader=2)
    assert producer.send(sequence) == (Code.NOT_LEADER_OR_FOLLOWER, -1)
    replica.lead(Reign(epoch + 1))


def test_what_was_sent_behind_a_refused_batch_is_refused_like_it_until_that_batch_comes_again() -> None:
    house = House()
    replica = house.broker.broker.topics.replica("orders", 0)
    producer, end = Idempotent(house), replica.end_offset
    assert producer.send(0) == (Code.NONE, end)
    replica.follow(3, leader=2)
    assert producer.send(1) == (Code.NOT_LEADER_OR_FOLLOWER, -1)
    assert producer.send(2) == (Code.NOT_LEADER_OR_FOLLOWER, -1)
    replica.lead(Reign(4))
    assert producer.send(3) == (Code.NOT_LEADER_OR_FOLLOWER, -1)  # librdkafka would send all again in a new epoch
    assert [producer.send(sequence) for sequence in (1, 2, 3)] == [(Code.NONE, end + each) for each in (1, 2, 3)]
    assert producer.send(5) == (Code.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


def test_a_refused_batch_that_comes_again_behind_a_gap_is_told_the_gap() -> None:
    house = House()
    replica = house.broker.broker.topics.replica("orders", 0)
    producer, other = Idempotent(house), Idempotent(house)
    producer.send(0)
    replica.follow(3, leader=2)
    assert producer.send(5) == (Code.NOT_LEADER_OR_FOLLOWER, -1)
    replica.lead(Reign(4))
    assert producer.send(5) == (Code.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert producer.send(6) == (Code.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert other.send(6) == (Code.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)  # on another connection nothing was refused
    assert producer.send(0, epoch=1)[0] == Code.NONE


def test_who_has_given_a_refused_batch_up_is_told_the_gap_when_it_tries_the_next_again() -> None:
    """Java with few `retries` counts on: it would hear of no leader with everything that it sends from then on."""
    house = House()
    producer = Idempotent(house)
    producer.send(0)
    refuse_one(house, producer, 1)
    assert [producer.send(sequence)[0] for sequence in (2, 3)] == [Code.NOT_LEADER_OR_FOLLOWER] * 2
    assert [producer.send(sequence)[0] for sequence in (2, 3)] == [Code.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2
    assert producer.send(0, epoch=1)[0] == Code.NONE


def test_no_more_are_refused_like_a_refused_batch_than_can_have_been_under_way_with_it() -> None:
    house = House()
    producer = Idempotent(house)
    producer.send(0)
    refuse_one(house, producer, 1)
    assert [producer.send(sequence)[0] for sequence in (2, 3, 4, 5)] == [Code.NOT_LEADER_OR_FOLLOWER] * 4
    assert producer.send(6)[0] == Code.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_what_was_sent_behind_a_batch_that_is_refused_again_is_refused_like_it_again() -> None:
    house = House()
    producer = Idempotent(house)
    producer.send(0)
    for epoch in (3, 5):
        refuse_one(house, producer, 1, epoch)
        assert producer.send(2)[0] == Code.NOT_LEADER_OR_FOLLOWER
    assert [producer.send(sequence)[0] for sequence in (1, 2)] == [Code.NONE] * 2


@pytest.mark.parametrize("is_given_up", [False, True])
def test_a_new_producer_whose_first_batch_was_refused_does_not_begin_with_its_second(is_given_up: bool) -> None:
    """As on a topic that was just made. Its first would have no place any more."""
    house = House()
    producer, end = Idempotent(house), house.broker.broker.topics.replica("orders", 0).end_offset
    refuse_one(house, producer, 0)
    assert producer.send(1) == (Code.NOT_LEADER_OR_FOLLOWER, -1)
    sequences = (1, 2) if is_given_up else (0, 1)
    assert [producer.send(sequence) for sequence in sequences] == [(Code.NONE, end), (Code.NONE, end + 1)]


def test_what_was_sent_behind_a_batch_that_a_leader_refused_while_it_was_cut_off_is_refused_like_it() -> None:
    """Of a topic with unclean elections. The first of its producer has gone before it, so it comes the short way."""
    house = House()
    producer, replica = Idempotent(house), house.broker.broker.topics.replica("orders", 0)
    assert [producer.send(sequence)[0] for sequence in (0, 1)] == [Code.NONE] * 2
    replica.needs_session, replica.freshness = True, lambda _: False
    assert producer.send(2)[0] == Code.NOT_LEADER_OR_FOLLOWER
    replica.freshness = lambda _: True
    assert producer.send(3)[0] == Code.NOT_LEADER_OR_FOLLOWER
    assert [producer.send(sequence)[0] for sequence in (2, 3)] == [Code.NONE] * 2
