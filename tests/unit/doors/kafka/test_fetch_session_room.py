"""Whose fetch session makes room for whose."""

from goqueue.doors.kafka.fetch_sessions import OF_CONNECTION_MAX, STALE_MS, FetchSessions
from goqueue.model.codes import Code
from tests.unit.doors.kafka.fetch_readers import Reader, fetch_sessions
from tests.unit.doors.kafka.share_members import House


def small(house: House, sessions_max: int, partitions_max: int = 1000) -> FetchSessions:
    made = FetchSessions(house.door._clock, house.door._gate.tenants, sessions_max, partitions_max)
    house.door.sessions.fetch = made
    return made


def test_who_comes_when_there_is_no_room_reads_without_a_session() -> None:
    house = House(partitions=2)
    kept = small(house, 2)
    first, second, third = Reader(house), Reader(house), Reader(house)
    for reader in (first, second):
        reader.fetch({0: 0, 1: 0})
    house.publish(b"x")
    assert third.told({0: 0, 1: 0}) == {0: [b"x"], 1: []}
    assert (third.session, len(kept), kept.evictions) == (0, 2, 0)
    first.lose_connection()
    third.fetch({0: 0, 1: 0})
    assert third.session > 0


def test_a_session_that_was_not_used_for_long_makes_room() -> None:
    house = House(partitions=2)
    kept = small(house, 2)
    first, second, third = Reader(house), Reader(house), Reader(house)
    first.fetch({0: 0, 1: 0})
    second.fetch({0: 0, 1: 0})
    house.advance(STALE_MS - 1)
    first.fetch()
    house.advance(2)
    third.fetch({0: 0})
    assert (third.session > 0, kept.evictions) == (True, 1)
    assert second.fetch().error_code == Code.FETCH_SESSION_ID_NOT_FOUND
    assert first.fetch().error_code == Code.NONE


def test_a_small_old_session_makes_room_for_a_larger_one_and_for_no_other() -> None:
    house = House(partitions=3)
    kept = small(house, 2)
    large, little = Reader(house), Reader(house)
    large.fetch({0: 0, 1: 0, 2: 0})
    little.fetch({0: 0})
    new = Reader(house)
    new.fetch({0: 0, 1: 0})
    assert new.session == 0, "all are young"
    house.advance(STALE_MS)
    for reader in (large, little):
        reader.fetch()
    house.advance(1)
    equal = Reader(house)
    equal.fetch({1: 0})
    assert (equal.session, kept.evictions) == (0, 0)
    new.epoch = 0
    new.fetch({0: 0, 1: 0})
    assert (new.session > 0, kept.evictions, kept.partitions) == (True, 1, 5)
    assert little.fetch().error_code == Code.FETCH_SESSION_ID_NOT_FOUND
    assert large.fetch().error_code == Code.NONE


def test_a_fetch_that_waits_in_a_session_that_makes_room_is_answered() -> None:
    house = House(partitions=2)
    small(house, 1)
    waiting, new = Reader(house), Reader(house)
    waiting.fetch({0: 0})
    waiting.park(max_wait_ms=10 * STALE_MS)
    house.advance(STALE_MS + 1)
    new.fetch({0: 0, 1: 0})
    (response,) = waiting.waited()
    assert (response.error_code, response.responses) == (Code.NONE, [])
    assert waiting.fetch().error_code == Code.FETCH_SESSION_ID_NOT_FOUND


def test_a_connection_has_a_few_sessions() -> None:
    house = House()
    reader = Reader(house)
    for _ in range(OF_CONNECTION_MAX + 3):
        reader.session = reader.epoch = 0
        reader.fetch({0: 0})
    assert (len(fetch_sessions(house)), fetch_sessions(house).evictions) == (OF_CONNECTION_MAX, 3)


def test_partitions_of_sessions_are_bounded() -> None:
    house = House(partitions=8)
    kept = small(house, 10, partitions_max=16)
    greedy = Reader(house)
    greedy.fetch(dict.fromkeys(range(5), 0))
    assert greedy.session == 0
    greedy.fetch(dict.fromkeys(range(4), 0))
    assert (greedy.session > 0, kept.partitions) == (True, 4)
    assert greedy.fetch({4: 0}).error_code == Code.FETCH_SESSION_ID_NOT_FOUND
    assert (len(kept), kept.partitions) == (0, 0)
    readers = [Reader(house) for _ in range(5)]
    for reader in readers:
        reader.fetch(dict.fromkeys(range(4), 0))
    assert [reader.session > 0 for reader in readers] == [True] * 4 + [False]
