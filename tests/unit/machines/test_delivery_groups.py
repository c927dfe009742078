"""Groups as a whole: options, save and restore, drop; and topics that come and go."""

from typing import Any

import msgspec
import pytest

from goqueue.machines.deliveries.commands import (
    DEFAULT_POLICY,
    DeadLetter,
    DropGroup,
    ForgetTopic,
    GroupState,
    How,
    Lease,
    Observe,
    OpenDelivery,
    Place,
    PlaceState,
    RestoreGroup,
    SetGroupOptions,
    SetPolicy,
    Span,
)
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.model.codes import Code
from tests.unit.machines.delivery_driver import PLACE, START_MS, TOPIC_ID, Driver, offsets_of

OTHER = Place("g", "bills", 3)
OTHER_ID = bytes(reversed(TOPIC_ID))


@pytest.fixture
def driver() -> Driver:
    """Of ten records: 0 and 4..6 settled, 1 tried, 2 waiting, 3 dead; the rest not delivered yet."""
    driver = Driver()
    driver.see(10)
    leased = driver.lease(7)
    driver.settle(leased.lease, 0)
    driver.settle(leased.lease, 1, 1, How.RETRY, 0)
    driver.settle(leased.lease, 2, 2, How.RETRY, 5000)
    driver.settle(leased.lease, 3, 3, How.REJECT, reason="bad")
    driver.settle(leased.lease, 4, 6)
    return driver


def stored(driver: Driver) -> dict[bytes, Any]:
    return {fact.key(): fact for fact in driver.machine.facts()}


def test_a_state_says_what_a_restart_would_find(driver: Driver) -> None:
    (place,) = driver.machine.state_of("g").places
    letter = DeadLetter(3, "rejected", "bad", 1, START_MS, START_MS)
    retries = ((1, 1, 1, START_MS, 0), (2, 2, 1, START_MS, START_MS + 5000))
    assert place == PlaceState("orders", TOPIC_ID, 0, 1, ((4, 6),), retries, (letter,))


def test_a_restored_group_is_as_it_was(driver: Driver) -> None:
    driver.ask(SetGroupOptions("g", {"lease_ms": "5"}))
    state = driver.machine.state_of("g")
    before = stored(driver)
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=GroupState)
    driver.ask(SetGroupOptions("g", {"lease_ms": None, "start": "latest"}))
    driver.ask(OpenDelivery(OTHER, OTHER_ID, 7))
    driver.settle(driver.lease().lease, 7, 9)
    driver.write_letters()
    assert driver.ask(RestoreGroup("g", state)) is Code.NONE
    assert stored(driver) == before
    assert driver.machine.places("g") == [PLACE]
    assert driver.machine.is_open(PLACE)
    assert list(driver.machine.dying) == [PLACE]
    driver.observe(Span(1, 9))
    assert driver.take() == [1, 7, 8, 9]
    driver.advance(5000)
    assert driver.take() == [2]
    driver.restart()
    driver.observe(Span(1, 9))
    assert driver.take() == [1, 2, 7, 8, 9]


def test_a_fork_is_a_group_of_its_own(driver: Driver) -> None:
    driver.ask(RestoreGroup("fork", driver.machine.state_of("g")))
    fork = Place("fork", "orders", 0)
    assert driver.machine.groups() == ["fork", "g"]
    assert not driver.machine.is_open(fork)
    driver.ask(OpenDelivery(fork, TOPIC_ID, 99))
    driver.ask(Observe(fork, (Span(1, 9),), 10))
    assert offsets_of(driver.ask(Lease(fork, "c", 100)).runs) == [1, 7, 8, 9]
    assert driver.take() == [1, 7, 8, 9]


def test_a_state_beyond_all_windows_is_not_believed(driver: Driver) -> None:
    state = PlaceState("orders", TOPIC_ID, 0, 5, ((0, 6), (10**15, 10**15 + 9)), ((3, 8, 900, 1, 0),))
    driver.ask(RestoreGroup("g", GroupState({}, (state,))))
    (place,) = driver.machine.state_of("g").places
    assert place.settled == ((5, 6),)
    assert place.retries == ((7, 8, 254, 1, 0),)


def test_dropping_a_group_forgets_all_about_it(driver: Driver) -> None:
    driver.ask(SetGroupOptions("g", {"lease_ms": "5"}))
    assert driver.ask(DropGroup("g")) is Code.NONE
    assert stored(driver) == {}
    assert driver.machine.groups() == []
    assert driver.ask(DropGroup("g")) is Code.GROUP_ID_NOT_FOUND
    driver.advance(1_000_000)
    assert driver.take() == []
    driver.ask(OpenDelivery(PLACE, TOPIC_ID, 2))
    driver.observe(Span(2, 9))
    assert driver.take() == list(range(2, 10))
    driver.restart()
    assert driver.machine.observed_end(PLACE) == 2


def test_dropping_topics_leaves_the_others(driver: Driver) -> None:
    driver.ask(OpenDelivery(OTHER, OTHER_ID, 7))
    driver.ask(SetGroupOptions("g", {"lease_ms": "5"}))
    driver.ask(DropGroup("g", ("orders",)))
    assert driver.machine.places("g") == [OTHER]
    assert driver.machine.group_options("g") == {"lease_ms": "5"}


def test_options_are_merged_and_stored(driver: Driver) -> None:
    driver.ask(SetGroupOptions("g", {"a": "1", "b": "2"}))
    driver.ask(SetGroupOptions("g", {"a": None, "c": "3"}))
    assert driver.written == 1
    driver.ask(SetGroupOptions("g", {"a": None}))
    assert driver.written == 0
    driver.restart()
    assert driver.machine.group_options("g") == {"b": "2", "c": "3"}
    driver.machine.group_options("g")["b"] = "changed"
    assert driver.machine.group_options("g") == {"b": "2", "c": "3"}
    driver.ask(SetGroupOptions("g", {"b": None, "c": None}))
    driver.restart()
    assert driver.machine.group_options("g") == {}


def test_a_new_topic_of_the_same_name_begins_anew(driver: Driver) -> None:
    driver.ask(OpenDelivery(PLACE, OTHER_ID, 4))
    assert driver.machine.observed_end(PLACE) == 4
    assert driver.machine.dead_due(PLACE) == []
    assert stored(driver).keys() == {b'["progress","g","orders",0,0]'}


def test_opening_again_changes_nothing(driver: Driver) -> None:
    before = stored(driver)
    driver.ask(OpenDelivery(PLACE, TOPIC_ID, 77, driver.policy))
    assert driver.written == 0
    driver.restart()
    assert stored(driver) == before
    assert driver.machine.observed_end(PLACE) == 1


def test_a_deleted_topic_is_forgotten_and_its_namesake_is_not(driver: Driver) -> None:
    assert driver.ask(ForgetTopic("orders", OTHER_ID)) is Code.NONE
    assert driver.machine.places("g") == [PLACE]
    driver.ask(ForgetTopic("orders", TOPIC_ID))
    assert driver.machine.places("g") == []
    assert driver.replayed().groups() == []


def test_a_place_is_closed_until_it_is_opened_in_this_boot(driver: Driver) -> None:
    machine = driver.replayed()
    assert machine.places("g") == [PLACE]
    assert not machine.is_open(PLACE)
    assert machine.decide(Lease(PLACE, "c", 1), 1, START_MS).facts == []
    assert machine.decide(SetPolicy(PLACE, DEFAULT_POLICY), 1, START_MS).facts == []
    assert [letter.offset for letter in machine.dead_due(PLACE)] == [3]


def test_a_key_of_another_machine_is_an_error() -> None:
    with pytest.raises(ValueError):
        Deliveries().forget(b'["nonsense"]')
