"""Fetches of several partitions that wait: what counts as enough, and what is told when it is there."""

import pytest

from goqueue.model.codes import Code
from tests.unit.doors.kafka.fetch_readers import MANY, Reader, codes, partitions, values
from tests.unit.doors.kafka.share_members import House

WITHOUT_SESSION = -1


@pytest.mark.parametrize("epoch", [0, WITHOUT_SESSION])
def test_a_batch_too_large_for_its_partition_counts_as_much_as_there_is_room_for(epoch: int) -> None:
    """As in Kafka: else all that the client waits for is there, and it waits."""
    house = House(partitions=2)
    reader = Reader(house)
    house.publish(b"x" * 100, partition=0)
    house.publish(b"y" * 1000, partition=1)
    response = reader.fetch(
        {0: 0, 1: 0}, session_epoch=epoch, max_wait_ms=500, min_bytes=500, partition_max=400, max_bytes=MANY
    )
    assert values(response) == {0: [b"x" * 100], 1: []}


def test_a_batch_too_large_for_its_partition_counts_once() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    house.publish(b"x" * 100, partition=0)
    house.publish(b"y" * 1000, partition=1)
    reader.park({0: 0, 1: 0}, min_bytes=900, partition_max=600)
    house.publish(b"y", partition=1)
    assert reader.waited() == []
    house.publish(b"x" * 100, partition=0)
    (response,) = reader.waited()
    assert values(response) == {0: [b"x" * 100] * 2, 1: []}


def test_what_was_too_large_comes_first_the_next_time() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    house.publish(b"x" * 100, partition=0)
    house.publish(b"y" * 1000, partition=1)
    assert reader.told({0: 0, 1: 0}, partition_max=400) == {0: [b"x" * 100], 1: []}
    assert reader.told({0: 1}, partition_max=400) == {1: [b"y" * 1000]}


def test_what_is_deleted_in_the_turn_in_which_enough_has_come_is_not_sent() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    house.publish(b"gone", partition=0)
    reader.park({0: 0, 1: 0}, min_bytes=300)
    assert reader.waited() == []
    first = house.broker.broker.topics.replica("orders", 0)
    house.broker.publish("orders", b"y" * 400, partition=1)
    house.broker.clock.call_soon(lambda: first.delete_before(1))
    assert house.broker.committer.run_once()
    house.broker.commit()
    (response,) = reader.waited()
    assert codes(response) == {0: Code.OFFSET_OUT_OF_RANGE, 1: Code.NONE}
    assert not partitions(response)[0].records
    assert values(response)[1] == [b"y" * 400]
