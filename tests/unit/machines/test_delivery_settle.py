"""Who may settle what: by lease, by name, late, from before a restart, and whoever looks after a group."""

import pytest

from goqueue.machines.deliveries.commands import NO_LEASE, OLD_LEASE, How, Policy, Settlement, Span, Verdict
from tests.unit.machines.delivery_driver import Driver


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_a_late_ack_is_true_as_long_as_nobody_else_has_the_record(driver: Driver) -> None:
    driver.see(2)
    leased = driver.lease()
    driver.advance(30_000)
    assert driver.settle(leased.lease, 0) is Verdict.DONE
    assert driver.take(consumer="other") == [1]
    assert driver.settle(leased.lease, 1) is Verdict.EXPIRED
    assert driver.settle(leased.lease, 0) is Verdict.REPEATED


def test_a_settlement_is_all_or_nothing(driver: Driver) -> None:
    driver.see(4)
    first = driver.lease(2)
    driver.lease(2, "other")
    assert driver.settle(first.lease, 0, 2) is Verdict.EXPIRED
    assert driver.measure().start_offset == 0
    assert driver.settle(first.lease, 0, 1) is Verdict.DONE


def test_receipts_are_judged_one_by_one(driver: Driver) -> None:
    driver.see(4)
    leased = driver.lease(3)
    driver.settle(leased.lease, 1)
    number = leased.lease
    settlements = [
        Settlement(0, 0, lease=number),
        Settlement(1, 1, lease=number),
        Settlement(2, 2, lease=number),
        Settlement(2, 2, lease=number),
        Settlement(3, 3, lease=number),
        Settlement(0, 0, lease=77),
        Settlement(9, 9, lease=number),
        Settlement(2, 1, lease=number),
    ]
    done, repeated, expired, unknown = Verdict.DONE, Verdict.REPEATED, Verdict.EXPIRED, Verdict.UNKNOWN
    verdicts = driver.settle_all(*settlements)
    assert verdicts == (done, repeated, done, repeated, expired, repeated, unknown, unknown)
    assert driver.measure().start_offset == 3


def test_receipts_in_a_row_are_settled_as_one(driver: Driver) -> None:
    driver.see(200)
    leased = driver.lease(100)
    verdicts = driver.settle_all(*(Settlement(offset, offset, lease=leased.lease) for offset in range(100)))
    assert set(verdicts) == {Verdict.DONE}
    assert driver.written == 1


def test_a_named_consumer_settles_what_it_holds_and_nothing_else(driver: Driver) -> None:
    driver.observe(Span(0, 1), Span(2, 3, is_visible=False), Span(4, 5), Span(6, 6))
    driver.lease(1)
    driver.lease(3)
    driver.lease(1, "other")
    assert driver.settle(0, 0, 6, consumer="c") is Verdict.EXPIRED
    assert driver.settle(0, 0, 5, consumer="c") is Verdict.DONE
    assert driver.settle(0, 6, 6, consumer="c") is Verdict.EXPIRED
    assert driver.settle(0, 7, 7, consumer="c") is Verdict.UNKNOWN
    assert driver.settle(0, 0, 1, consumer="c") is Verdict.REPEATED
    assert driver.settle(0, 2, 3, consumer="c") is Verdict.DONE
    assert driver.written == 0
    assert driver.settle(0, 6, 6, consumer="other") is Verdict.DONE


def test_a_named_consumer_may_not_settle_late(driver: Driver) -> None:
    driver.see(1)
    driver.lease()
    driver.advance(30_000)
    assert driver.settle(0, 0, consumer="c") is Verdict.EXPIRED


def test_a_lease_from_before_the_restart_settles_what_nobody_got_since(driver: Driver) -> None:
    driver.see(5)
    driver.lease()
    driver.restart()
    assert driver.settle(OLD_LEASE, 1) is Verdict.DONE
    assert driver.settle(OLD_LEASE, 1) is Verdict.REPEATED
    driver.observe(Span(0, 4))
    assert driver.settle(OLD_LEASE, 2) is Verdict.DONE
    assert driver.settle(OLD_LEASE, 3, 3, How.EXTEND, 1000) is Verdict.EXPIRED
    assert driver.take() == [0, 3, 4]
    assert driver.settle(OLD_LEASE, 0) is Verdict.EXPIRED


def test_an_old_nack_counts_as_the_delivery_it_ends() -> None:
    driver = Driver(Policy(attempts_max=2))
    driver.see(2)
    driver.lease()
    driver.restart()
    driver.settle(OLD_LEASE, 0, 0, How.RETRY, 0)
    driver.observe(Span(0, 1))
    assert [run.attempt for run in driver.lease().runs] == [2, 1]


def test_whoever_looks_after_a_group_settles_what_nobody_holds(driver: Driver) -> None:
    driver.see(4)
    leased = driver.lease(2)
    assert driver.settle(NO_LEASE, 0, 3) is Verdict.EXPIRED
    assert driver.settle(NO_LEASE, 2, 3) is Verdict.DONE
    assert driver.settle(NO_LEASE, 2) is Verdict.REPEATED
    driver.advance(30_000)
    assert driver.settle(NO_LEASE, 0) is Verdict.DONE
    assert driver.settle(leased.lease, 0) is Verdict.REPEATED
    assert driver.take() == [1]
