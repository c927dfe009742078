"""Produce requests of one turn of the event loop, over several connections: one write, and answers to each."""

import errno
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from goqueue.machines.controller_commands import DeleteTopic
from goqueue.model.codes import Code
from goqueue.replica.roles import MYSELF, Fetched, Reign
from tests.brokers import data
from tests.unit.doors.kafka.test_door_fuzz import House
from tests.unit.doors.kafka.test_produce_run import OTHER, ask, asked, house, learned, outcome, results, the_general_way

reads = st.lists(asked() | st.just(OTHER), max_size=3).map(b"".join)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2), reads), max_size=4), max_size=4),
    st.booleans(),
)
def test_both_ways_answer_and_store_the_same_whoever_sends(
    turns: list[list[tuple[int, bytes]]], is_broken: bool
) -> None:
    outcomes = []
    for is_general in (True, False):
        with the_general_way(is_general), capture_logs():
            made = house()
            guests = [made.knock() for _ in range(3)]
            if is_broken:
                made.broker.disk.faults.add("sync", errno.EIO, prefix="logs/orders/1", forever=True)
            for turn in turns:
                for number, read in turn:
                    if not guests[number].transport.closed:
                        guests[number].send(read)
                made.broker.clock.run()
            made.settle()
            outcomes.append([outcome(made, guest) for guest in guests])
    assert outcomes[0] == outcomes[1]


def test_what_comes_from_many_connections_in_one_turn_is_one_write_to_the_log() -> None:
    made = House()
    guests = [learned(made, client=f"client-{number % 2}") for number in range(5)]
    operations = made.broker.disk.op_count
    for number, guest in enumerate(guests):
        name = f"client-{number % 2}"
        guest.send(ask(number, client=name) + ask(number + 100, client=name))
    assert made.broker.disk.op_count == operations
    made.broker.clock.run()
    assert made.broker.disk.op_count == operations + 1
    made.broker.commit()
    found = [[(number, one.error_code, one.base_offset) for number, one in results(guest)] for guest in guests]
    first = made.broker.broker.topics.replica("orders", 0).end_offset - 10
    assert found == [[(n, 0, first + 2 * n), (n + 100, 0, first + 2 * n + 1)] for n in range(5)]


def test_a_run_does_not_grow_beyond_the_memory_that_it_lies_in() -> None:
    """Each read is put behind the one before, until there is too little room."""
    made = House()
    guests = [learned(made) for _ in range(40)]
    values = [bytes([number]) * 10_000 for number in range(len(guests))]
    for number, guest in enumerate(guests):
        guest.send(ask(number, records=bytes(data(values[number]))))
    made.broker.commit()
    assert [one.error_code for guest in guests for _, one in results(guest)] == [0] * len(guests)
    stored = b"".join(bytes(batch.data) for batch in made.broker.broker.topics.replica("orders", 0).batches_from(0))
    assert [stored.count(value) for value in values] == [1] * len(guests)
    assert made.door.kept_bytes == 0


def test_whatever_else_comes_finds_what_came_before_it() -> None:
    """Also if it comes from another connection."""
    made = House()
    guest, other = learned(made), made.knock()
    end_offset = made.broker.broker.topics.replica("orders", 0).end_offset
    guest.send(ask(1))
    assert made.broker.broker.topics.replica("orders", 0).end_offset == end_offset
    other.send(OTHER)
    assert made.broker.broker.topics.replica("orders", 0).end_offset == end_offset + 1


@pytest.mark.parametrize("is_general", [True, False])
def test_a_leader_that_hands_over_in_the_middle_of_a_turn_appends_nothing_more(is_general: bool) -> None:
    made = House()
    guest = learned(made)
    replica = made.broker.broker.topics.replica("orders", 0)
    end_offset = replica.end_offset
    with the_general_way(is_general):
        if is_general:
            replica.rest()
        guest.send(ask(1) + ask(2))
        replica.rest()
        made.broker.clock.run()
    assert results(guest) == []
    replica.follow(replica.leader_epoch + 1, 7)
    made.broker.clock.run()
    assert [one.error_code for _, one in results(guest)] == [Code.NOT_LEADER_OR_FOLLOWER] * 2
    assert replica.end_offset == end_offset


def test_what_was_taken_for_a_topic_that_is_deleted_in_this_turn_is_refused() -> None:
    made = House()
    guest = learned(made)
    guest.send(ask(1))
    made.broker.ask(made.broker.broker.topics.submit, DeleteTopic("orders"))
    made.broker.commit()
    assert [one.error_code for _, one in results(guest)] == [Code.KAFKA_STORAGE_ERROR]


def test_a_connection_that_is_lost_takes_nothing_from_the_others() -> None:
    made = House()
    guest, other = learned(made), learned(made)
    end_offset = made.broker.broker.topics.replica("orders", 0).end_offset
    guest.send(ask(1))
    other.send(ask(2))
    guest.leave()
    made.broker.commit()
    assert [(number, one.error_code) for number, one in results(other)] == [(2, 0)]
    assert made.broker.broker.topics.replica("orders", 0).end_offset == end_offset + 2


def test_what_all_copies_are_to_have_takes_the_short_way_and_waits_for_them() -> None:
    made = House()
    guest = learned(made)
    replica = made.broker.broker.topics.replica("orders", 0)
    replica.options = replace(replica.options, min_insync_replicas=2)
    replica.lead(Reign(replica.leader_epoch + 1, isr=(MYSELF, 7), replicas=2))
    guest.send(ask(0))  # the first of an epoch has more to write
    made.broker.clock.run()
    operations = made.broker.disk.op_count
    guest.send(ask(1) + ask(2))
    made.broker.clock.run()
    assert made.broker.disk.op_count == operations + 1
    made.broker.commit()
    assert guest.replies() == []
    epoch = replica.leader_epoch
    replica.heard(Fetched(7, 1, epoch, replica.end_offset, epoch, 0, 0), 0)
    made.broker.clock.run()
    assert [(number, one.error_code) for number, one in results(guest)] == [(0, 0), (1, 0), (2, 0)]
