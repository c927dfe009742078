"""Fetch sessions of clients: what is told of which partition, and what is refused."""

import pytest

from goqueue.machines.controller_commands import DeleteTopic
from goqueue.model.access import NoRights
from goqueue.model.codes import Code
from goqueue.model.tenancy import ONE_TENANT
from goqueue.records.batch import check_batch
from goqueue.replica.roles import Reign
from goqueue.wire.kafka.notation import INT32_MAX
from tests.brokers import data
from tests.unit.doors.kafka.fetch_readers import (
    FIRST_BY_ID,
    LAST_BY_NAME,
    Reader,
    codes,
    create,
    fetch_sessions,
    partitions,
    values,
)
from tests.unit.doors.kafka.share_members import House

# -- what is told


@pytest.mark.parametrize("version", [7, LAST_BY_NAME, FIRST_BY_ID, 18])
def test_the_first_answer_has_all_partitions_and_the_next_only_those_with_news(version: int) -> None:
    house = House(partitions=3)
    reader = Reader(house, version)
    house.publish(b"a", partition=1)
    assert reader.told({0: 0, 1: 0, 2: 0}) == {0: [], 1: [b"a"], 2: []}
    assert (reader.session > 0, reader.epoch) == (True, 1)
    house.publish(b"b", partition=2)
    assert reader.told({1: 1}) == {2: [b"b"]}
    assert reader.told({2: 1}) == {}
    assert reader.told() == {}
    assert len(fetch_sessions(house)) == 1


def test_records_that_the_client_does_not_go_past_are_given_again() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    house.publish(b"a")
    assert reader.told({0: 0, 1: 0}) == {0: [b"a"], 1: []}
    assert reader.told() == {0: [b"a"]}
    assert reader.told({0: 1}) == {}


def test_a_partition_that_is_added_is_told_of_and_a_forgotten_one_is_not() -> None:
    house = House(partitions=3)
    reader = Reader(house)
    reader.fetch({0: 0})
    assert reader.told({1: 0, 2: 0}) == {1: [], 2: []}
    for number in range(3):
        house.publish(b"x", partition=number)
    assert reader.told(forget=(0, 2)) == {1: [b"x"]}
    assert [len(replica._watchers) for replica in house.broker.replicas if replica.place[0] == "orders"] == [0, 0, 0]


def test_another_high_watermark_alone_is_told_once() -> None:
    """Records are there for the client, but it has no room for a second partition."""
    house = House(partitions=2)
    reader = Reader(house)
    reader.fetch({0: 0, 1: 0})
    house.publish(b"x" * 100, partition=0)
    house.publish(b"y" * 100, partition=1)
    response = reader.fetch(max_bytes=180)
    assert {number: one.high_watermark for number, one in partitions(response).items()} == {0: 1, 1: 1}
    assert values(response) == {0: [b"x" * 100], 1: []}


def test_another_start_is_told_once() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    house.publish(b"a", b"b")
    reader.fetch({0: 2, 1: 0})
    assert reader.told() == {}
    house.broker.broker.topics.replica("orders", 0).delete_before(1)
    house.broker.commit()
    assert {number: one.log_start_offset for number, one in partitions(reader.fetch()).items()} == {0: 1}
    assert reader.told() == {}


def test_a_refusal_is_told_each_time_and_its_end_as_well() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    assert codes(reader.fetch({0: 7, 1: 0})) == {0: Code.OFFSET_OUT_OF_RANGE, 1: Code.NONE}
    assert codes(reader.fetch()) == {0: Code.OFFSET_OUT_OF_RANGE}
    assert codes(reader.fetch(max_wait_ms=500)) == {0: Code.OFFSET_OUT_OF_RANGE}
    assert codes(reader.fetch({0: 0})) == {0: Code.NONE}
    assert codes(reader.fetch()) == {}


def test_a_changed_leader_is_told() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    reader.fetch({0: 0, 1: 0})
    replica = house.broker.broker.topics.replica("orders", 1)
    reader.park()
    replica.follow(replica.leader_epoch + 1, 7)
    house.broker.commit()
    (response,) = reader.waited()
    assert codes(response) == {1: Code.NOT_LEADER_OR_FOLLOWER}
    replica.lead(Reign(replica.leader_epoch + 1))
    house.broker.commit()
    assert codes(reader.fetch()) == {1: Code.NONE}
    assert codes(reader.fetch()) == {}


def test_a_node_that_was_cut_off_says_so_though_nothing_moves() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    reader.fetch({0: 0, 1: 0})
    house.broker.broker.health.cluster.session_holds = lambda: False
    replica = house.broker.broker.topics.replica("orders", 1)
    replica.freshness = lambda replica: False
    assert codes(reader.fetch(max_wait_ms=500)) == {1: Code.NOT_LEADER_OR_FOLLOWER}
    replica.freshness = None
    assert codes(reader.fetch()) == {1: Code.NONE}


@pytest.mark.parametrize("is_parked", [False, True])
@pytest.mark.parametrize(
    ("version", "gone", "anew"),
    [
        (LAST_BY_NAME, Code.UNKNOWN_TOPIC_OR_PARTITION, Code.NONE),
        (FIRST_BY_ID, Code.UNKNOWN_TOPIC_ID, Code.UNKNOWN_TOPIC_ID),
    ],
)
def test_a_topic_that_is_deleted_and_made_again(version: int, gone: Code, anew: Code, *, is_parked: bool) -> None:
    house = House(partitions=2)
    reader = Reader(house, version)
    reader.fetch({0: 0, 1: 0})
    if is_parked:
        reader.park()
    house.broker.ask(house.broker.broker.topics.submit, DeleteTopic("orders"))
    house.broker.commit()
    (response,) = reader.waited() if is_parked else [reader.fetch()]
    assert set(codes(response).values()) == {gone}
    create(house, "orders", 2, b"another id......")
    house.publish(b"new", partition=1)
    response = reader.fetch()
    assert codes(response) == {0: anew, 1: anew}
    assert values(response)[1] == ([b"new"] if anew is Code.NONE else [])


def test_a_topic_that_comes_later_is_read_by_its_id() -> None:
    house = House(partitions=2)
    reader = Reader(house, FIRST_BY_ID)
    later = {"topic": "later", "topic_id": b"its id to come.."}
    assert codes(reader.fetch({0: 0}, **later)) == {0: Code.UNKNOWN_TOPIC_ID}
    create(house, "later", 1, b"its id to come..")
    house.broker.publish("later", b"x")
    house.broker.commit()
    assert reader.told() == {0: [b"x"]}


def test_partitions_take_turns_when_there_is_room_for_one() -> None:
    house = House(partitions=3)
    for number in range(3):
        for _ in range(3):
            house.publish(b"x" * 200, partition=number)
    reader = Reader(house)
    at = dict.fromkeys(range(3), 0)
    first = reader.fetch(at, max_bytes=300)
    given = [number for number, one in partitions(first).items() if one.records]
    for _ in range(5):
        (last,) = given[-1:]
        at[last] += 1
        told = partitions(reader.fetch({last: at[last]}, max_bytes=300))
        given += [number for number, one in told.items() if one.records]
    assert given == [0, 1, 2, 0, 1, 2]


# -- isolation


def test_another_isolation_level_is_another_question_about_all_partitions() -> None:
    house = House(partitions=2)
    replica = house.broker.broker.topics.replica("orders", 1)
    batch = check_batch(data(b"open", base_sequence=0, producer_id=9, producer_epoch=0, transactional=True))
    replica.append(batch, house.broker.clock.now_ms())
    house.broker.commit()
    reader = Reader(house)
    assert reader.told({0: 0, 1: 0}, isolation_level=1) == {0: [], 1: []}
    assert reader.told(isolation_level=1) == {}
    assert reader.told(isolation_level=0) == {1: [b"open"]}
    assert reader.told(isolation_level=1) == {}


# -- waiting


def test_a_fetch_that_waits_is_woken_and_tells_of_all_that_came_in_the_same_turn() -> None:
    house = House(partitions=4)
    reader = Reader(house)
    reader.fetch(dict.fromkeys(range(4), 0))
    reader.park()
    assert reader.waited() == []
    for number in (3, 1):
        house.broker.publish("orders", b"x", partition=number)
    house.broker.commit()
    (response,) = reader.waited()
    assert values(response) == {3: [b"x"], 1: [b"x"]}


def test_a_fetch_waits_for_as_much_as_it_asks_for_or_its_time() -> None:
    house = House(partitions=3)
    reader = Reader(house)
    reader.fetch({0: 0, 1: 0, 2: 0})
    reader.park(min_bytes=400)
    house.publish(b"x" * 100, partition=0)
    house.publish(b"y" * 100, partition=1)
    assert reader.waited() == []
    house.publish(b"z" * 100, partition=0)
    (response,) = reader.waited()
    assert values(response) == {0: [b"x" * 100, b"z" * 100], 1: [b"y" * 100]}
    reader.park({0: 2, 1: 1}, min_bytes=400)
    house.publish(b"last", partition=2)
    house.advance(499)
    assert reader.waited() == []
    house.advance(1)
    (response,) = reader.waited()
    assert values(response) == {2: [b"last"]}


def test_a_fetch_that_waited_in_vain_names_nobody() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    reader.fetch({0: 0, 1: 0})
    for _ in range(3):
        reader.park()
        house.advance(500)
        (response,) = reader.waited()
        assert (response.responses, response.session_id) == ([], reader.session)


def test_what_comes_between_two_fetches_is_not_lost() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    reader.fetch({0: 0, 1: 0})
    for number in range(3):
        house.publish(b"%d" % number)
        assert reader.told() == {0: [b"%d" % number]}
        assert reader.told({0: number + 1}) == {}


def test_a_second_fetch_of_a_session_has_the_first_answered() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    reader.fetch({0: 0, 1: 0})
    reader.park()
    reader.epoch += 1
    reader.park()
    (first,) = reader.waited()
    assert (first.error_code, first.responses) == (Code.NONE, [])
    house.advance(500)
    assert len(reader.waited()) == 1


def test_a_right_that_is_taken_away_is_told_of_every_partition() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    house.publish(b"secret")
    reader.fetch({0: 1, 1: 0})
    access = reader._connection.access
    assert access is not None
    access.renew(NoRights(), ONE_TENANT, is_over=False)
    house.publish(b"more")
    response = reader.fetch(max_wait_ms=500)
    assert codes(response) == dict.fromkeys(range(2), Code.TOPIC_AUTHORIZATION_FAILED)
    assert set(map(tuple, values(response).values())) == {()}


# -- the protocol


def test_a_session_that_is_not_there_and_an_epoch_that_is_not_the_next_are_refused() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    for number in (0, 1, 12345):
        assert reader.fetch(session_id=number, session_epoch=1).error_code == Code.FETCH_SESSION_ID_NOT_FOUND
    reader.fetch({0: 0})
    for epoch in (2, INT32_MAX, -5):
        response = reader.fetch({1: 0}, session_epoch=epoch)
        assert (response.error_code, response.session_id) == (Code.INVALID_FETCH_SESSION_EPOCH, 0)
    house.publish(b"x", partition=1)
    assert reader.told() == {}, "a refused request has changed nothing"


def test_an_epoch_is_good_once_and_goes_round() -> None:
    house = House()
    reader = Reader(house)
    reader.fetch({0: 0})
    reader.fetch()
    assert reader.fetch(session_epoch=1).error_code == Code.INVALID_FETCH_SESSION_EPOCH
    (kept,) = fetch_sessions(house)._by_number.values()
    kept.epoch = reader.epoch = INT32_MAX
    reader.fetch()
    reader.epoch = 1
    assert reader.fetch().error_code == Code.NONE


@pytest.mark.parametrize(("first", "then"), [(LAST_BY_NAME, FIRST_BY_ID), (FIRST_BY_ID, LAST_BY_NAME)])
def test_a_session_names_topics_in_one_way(first: int, then: int) -> None:
    house = House()
    reader = Reader(house, first)
    reader.fetch({0: 0})
    reader.version = then
    assert reader.fetch({0: 0}).error_code == Code.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_is_of_its_connection() -> None:
    house = House()
    reader, other = Reader(house), Reader(house)
    reader.fetch({0: 0})
    other.session, other.epoch = reader.session, reader.epoch
    assert other.fetch().error_code == Code.FETCH_SESSION_ID_NOT_FOUND
    other.epoch = -1
    other.fetch()
    assert reader.fetch().error_code == Code.NONE


def test_the_last_epoch_closes_and_reads_what_it_names_once() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    house.publish(b"a", partition=1)
    reader.fetch({0: 0, 1: 0})
    number, reader.epoch = reader.session, -1
    response = reader.fetch({1: 0})
    assert (response.session_id, values(response)) == (0, {1: [b"a"]})
    assert reader.fetch(session_id=number, session_epoch=2).error_code == Code.FETCH_SESSION_ID_NOT_FOUND
    assert len(fetch_sessions(house)) == fetch_sessions(house).partitions == 0
    assert all(not replica._watchers for replica in house.broker.replicas)


def test_the_first_epoch_begins_anew_in_place_of_the_session_that_it_names() -> None:
    house = House(partitions=2)
    reader = Reader(house)
    reader.fetch({0: 0, 1: 0})
    before, reader.epoch = reader.session, 0
    assert reader.told({1: 0}) == {1: []}
    assert reader.session not in (0, before)
    assert (len(fetch_sessions(house)), fetch_sessions(house).partitions) == (1, 1)


def test_who_wants_no_session_gets_none() -> None:
    house = House(partitions=2)
    for version in (4, 7, 18):
        reader = Reader(house, version)
        reader.epoch = -1
        response = reader.fetch({0: 0, 1: 0})
        assert (response.session_id, values(response)) == (0, {0: [], 1: []})
    assert len(fetch_sessions(house)) == 0


def test_a_session_that_reads_nothing_any_more_is_over() -> None:
    house = House()
    reader = Reader(house)
    reader.fetch({0: 0})
    response = reader.fetch(forget=(0,), max_wait_ms=500)
    assert (response.error_code, response.session_id) == (Code.NONE, 0)
    assert len(fetch_sessions(house)) == 0


def test_nothing_is_left_when_the_connection_is_lost() -> None:
    house = House(partitions=2)
    for is_parked in (False, True):
        reader = Reader(house)
        reader.fetch({0: 0, 1: 0})
        if is_parked:
            reader.park()
        assert fetch_sessions(house).partitions == 2
        reader.lose_connection()
        assert (len(fetch_sessions(house)), fetch_sessions(house).partitions) == (0, 0)
        assert all(not replica._watchers for replica in house.broker.replicas)
        assert not fetch_sessions(house)._by_connection
