"""What a queue group is promised about one partition."""

import pytest

from goqueue.machines.deliveries.commands import (
    DeadLetter,
    How,
    Lease,
    LeasedRun,
    Observe,
    OpenDelivery,
    Place,
    Policy,
    SetPolicy,
    Settle,
    Settlement,
    Span,
    Verdict,
)
from goqueue.machines.machine import Tick
from goqueue.model.codes import Code
from goqueue.model.lanes import Lane
from tests.unit.machines.delivery_driver import PLACE, START_MS, TOPIC_ID, Driver, offsets_of

MINUTE_MS = 60_000


@pytest.fixture
def driver() -> Driver:
    return Driver()


def _observe(place: Place, *spans: Span) -> Observe:
    return Observe(place, spans, spans[-1].last + 1)


def ready(driver: Driver) -> int:
    return sum(driver.measure().ready)


# Leases


def test_a_leased_record_is_invisible_until_its_deadline_and_then_delivered_again(driver: Driver) -> None:
    driver.see(1)
    leased = driver.lease()
    assert leased.runs == (LeasedRun(0, 0, 1, START_MS),)
    assert leased.deadline_ms == START_MS + 30_000
    driver.advance(29_999)
    assert driver.take(consumer="other") == []
    driver.advance(1)
    assert driver.lease(consumer="other").runs == (LeasedRun(0, 0, 2, START_MS),)


def test_a_lease_may_be_shorter_than_the_policy_says(driver: Driver) -> None:
    driver.see(1)
    driver.lease(lease_ms=10)
    driver.advance(10)
    assert driver.take() == [0]


def test_an_acked_record_is_not_delivered_again(driver: Driver) -> None:
    driver.see(3)
    leased = driver.lease(2)
    assert driver.settle(leased.lease, 0) is Verdict.DONE
    driver.advance(MINUTE_MS)
    assert driver.take() == [1, 2]
    driver.restart()
    driver.observe(Span(1, 2))
    assert driver.take() == [1, 2]


def test_groups_do_not_see_each_others_leases(driver: Driver) -> None:
    other = Place("h", "orders", 0)
    driver.ask(OpenDelivery(other, TOPIC_ID, 0))
    driver.see(1)
    driver.ask(_observe(other, Span(0, 0)))
    assert driver.take() == [0]
    assert offsets_of(driver.ask(Lease(other, "c", 10)).runs) == [0]


def test_a_consumer_holds_no_more_than_it_may() -> None:
    driver = Driver(Policy(unacked_max=3))
    driver.see(10)
    first = driver.lease(2)
    assert driver.take(5) == [2]
    assert driver.take(5) == []
    assert driver.take(5, "other") == [3, 4, 5]
    driver.machine.woken.clear()
    driver.settle(first.lease, 0)
    assert list(driver.machine.woken) == [PLACE]
    assert driver.take(5) == [6]


def test_hidden_records_do_not_hide_others(driver: Driver) -> None:
    driver.observe(Span(0, 11, is_visible=False), Span(12, 12))
    assert driver.take(1) == [12]
    assert driver.measure().start_offset == 12


def test_an_unknown_or_closed_place_leases_nothing(driver: Driver) -> None:
    nowhere = Place("nobody", "orders", 0)
    assert driver.ask(Lease(nowhere, "c", 1)).runs == ()
    assert driver.ask(Settle(nowhere, (Settlement(0, 0, lease=1),))).verdicts == (Verdict.UNKNOWN,)
    assert driver.ask(_observe(nowhere, Span(0, 0))) is Code.UNKNOWN_TOPIC_OR_PARTITION
    assert driver.ask(SetPolicy(nowhere, Policy())) is Code.UNKNOWN_TOPIC_OR_PARTITION


def test_thousands_of_leases_that_end_together_take_turns() -> None:
    driver = Driver(Policy(unacked_max=10**6, attempts_max=1), checks=False)
    driver.see(30_000)
    assert len(driver.take(30_000)) == 10_000
    for _ in range(1000):
        driver.lease(20)
    driver.now_ms += 30_000
    deaths = []
    while driver.measure().leased[Lane.NORMAL]:
        driver.ask(Tick())
        deaths.append(driver.written)
    assert sum(deaths) == 30_000
    assert max(deaths) <= 10_000
    assert len(deaths) > 5


def test_an_extended_lease_ends_later(driver: Driver) -> None:
    driver.see(2)
    leased = driver.lease()
    driver.advance(20_000)
    assert driver.settle(leased.lease, 0, 1, How.EXTEND, 30_000) is Verdict.DONE
    driver.advance(29_999)
    assert driver.take() == []
    driver.advance(1)
    assert driver.take() == [0, 1]


def test_single_records_of_a_lease_may_be_extended(driver: Driver) -> None:
    driver.see(5)
    leased = driver.lease()
    assert driver.settle(leased.lease, 1, 1, How.EXTEND, 40_000) is Verdict.DONE
    assert driver.settle(leased.lease, 3, 3, How.EXTEND, 50_000) is Verdict.DONE
    driver.advance(30_000)
    assert driver.take(consumer="other") == [0, 2, 4]
    driver.advance(10_000)
    assert driver.take(consumer="third") == [1]
    driver.advance(9_999)
    assert driver.measure().leased[Lane.NORMAL] == 5
    driver.advance(1)
    assert driver.take(consumer="fourth") == [3]


def test_a_lease_may_be_shortened(driver: Driver) -> None:
    driver.see(2)
    leased = driver.lease()
    driver.settle(leased.lease, 1, 1, How.EXTEND, 10)
    driver.advance(10)
    assert driver.take() == [1]


def test_what_did_not_reach_its_consumer_was_not_delivered(driver: Driver) -> None:
    driver.see(3)
    leased = driver.lease()
    assert driver.settle(leased.lease, 1, 2, How.UNDO) is Verdict.DONE
    assert driver.written == 0
    assert driver.lease().runs == (LeasedRun(1, 2, 1, START_MS),)
    assert driver.settle(leased.lease, 1) is Verdict.EXPIRED


# Retries and dead letters


def test_a_nacked_record_is_delivered_again_when_its_delay_is_over(driver: Driver) -> None:
    driver.see(2)
    leased = driver.lease()
    assert driver.settle(leased.lease, 0, 0, How.RETRY, 2000) is Verdict.DONE
    driver.advance(1999)
    assert driver.take() == []
    assert driver.measure().waiting == 1
    driver.machine.woken.clear()
    driver.advance(1)
    assert list(driver.machine.woken) == [PLACE]
    assert driver.lease().runs == (LeasedRun(0, 0, 2, START_MS),)


def test_a_long_delay_does_not_keep_up_a_short_one(driver: Driver) -> None:
    driver.see(2)
    leased = driver.lease()
    driver.settle(leased.lease, 0, 0, How.RETRY, 60_000)
    driver.settle(leased.lease, 1, 1, How.RETRY, 1000)
    driver.advance(1000)
    assert driver.take() == [1]


def test_backoff_doubles_up_to_its_limit() -> None:
    driver = Driver(Policy(backoff_ms=1000, backoff_ms_max=3000, attempts_max=10))
    driver.see(1)
    delays = []
    for _ in range(4):
        driver.settle(driver.lease().lease, 0, 0, How.RETRY)
        before = driver.now_ms
        while not ready(driver):
            driver.advance(500)
        delays.append(driver.now_ms - before)
    assert delays == [1000, 2000, 3000, 3000]


def test_a_record_dies_after_as_many_deliveries_as_allowed_and_never_comes_back() -> None:
    driver = Driver(Policy(attempts_max=3))
    driver.see(2)
    attempts = []
    for _ in range(3):
        (run,) = driver.lease(1).runs
        attempts.append((run.first, run.attempt))
        driver.advance(30_000)
    assert attempts == [(0, 1), (0, 2), (0, 3)]
    assert list(driver.machine.dying) == [PLACE]
    (letter,) = driver.machine.dead_due(PLACE)
    assert letter == DeadLetter(0, "attempts", "", 3, START_MS, START_MS + 90_000)
    assert driver.take() == [1]
    driver.restart()
    assert list(driver.machine.dying) == [PLACE]
    assert driver.write_letters() == [letter]
    driver.observe(Span(0, 1))
    assert driver.take() == [1]
    assert driver.measure().start_offset == 1
    assert driver.write_letters() == []


def test_the_last_nack_makes_a_dead_letter() -> None:
    driver = Driver(Policy(attempts_max=2))
    driver.see(1)
    driver.settle(driver.lease().lease, 0, 0, How.RETRY, 0)
    driver.settle(driver.lease().lease, 0, 0, How.RETRY, 0, "no such customer")
    (letter,) = driver.write_letters()
    assert letter == DeadLetter(0, "attempts", "no such customer", 2, START_MS, START_MS)


def test_a_rejected_record_is_dead_at_once_and_settled_when_it_is_written(driver: Driver) -> None:
    driver.see(2)
    leased = driver.lease(1)
    assert driver.settle(leased.lease, 0, 0, How.REJECT, reason="x" * 5000) is Verdict.DONE
    assert driver.measure().dead == 1
    assert driver.settle(leased.lease, 0) is Verdict.REPEATED
    assert driver.take() == [1]
    (letter,) = driver.write_letters()
    assert (letter.reason, letter.error, letter.attempts) == ("rejected", "x" * 1000, 1)
    assert driver.measure()[:2] == (1, 2)
    assert driver.machine.dead_due(PLACE) == []


def test_dead_letters_that_cannot_be_written_stop_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goqueue.machines.deliveries.pick.DEAD_MAX", 2)
    driver = Driver()
    driver.see(5)
    driver.settle(driver.lease(2).lease, 0, 1, How.REJECT)
    assert driver.take() == []
    driver.machine.woken.clear()
    driver.write_letters()
    assert list(driver.machine.woken) == [PLACE]
    assert driver.take() == [2, 3, 4]


# Time to live


def test_an_expired_record_is_a_dead_letter_and_not_delivered(driver: Driver) -> None:
    driver.observe(Span(0, 0, expires_at_ms=START_MS + 100), Span(1, 1))
    driver.advance(100)
    assert driver.take() == [1]
    assert driver.write_letters() == [DeadLetter(0, "expired", "", 0, 0, START_MS + 100)]


def test_an_expired_record_may_be_dropped() -> None:
    driver = Driver(Policy(keeps_expired=False))
    driver.see(3, expires_at_ms=START_MS + 100)
    driver.advance(100)
    assert driver.take() == []
    assert driver.write_letters() == []
    assert driver.measure().start_offset == 3


def test_a_leased_record_expires_when_its_lease_ends(driver: Driver) -> None:
    driver.see(2, expires_at_ms=START_MS + 100)
    leased = driver.lease()
    driver.advance(29_999)
    assert driver.settle(leased.lease, 0) is Verdict.DONE
    driver.advance(1)
    assert [letter.offset for letter in driver.write_letters()] == [1]


def test_a_record_that_expired_before_anybody_noticed_is_not_delivered(driver: Driver) -> None:
    driver.observe(Span(0, 0, expires_at_ms=START_MS + 100), Span(1, 1, expires_at_ms=START_MS + 500))
    driver.now_ms += 100
    assert driver.take() == [1]


def test_a_record_that_was_given_back_expires_in_its_time(driver: Driver) -> None:
    """Its time was noted when it was observed, and looked at while it was leased."""
    driver.observe(Span(0, 0, expires_at_ms=START_MS + 100), Span(1, 1, expires_at_ms=START_MS + 50))
    leased = driver.lease()
    driver.advance(60)
    assert driver.settle(leased.lease, 0, 0, How.UNDO) is Verdict.DONE
    driver.advance(39)
    assert driver.machine.dead_due(PLACE) == []
    driver.advance(1)
    assert [letter.offset for letter in driver.machine.dead_due(PLACE)] == [0]
