"""Order by key: no two records of one key are leased at once, and they come in the order of their offsets."""

import msgspec
import pytest

from goqueue.machines.deliveries.commands import (
    NEVER,
    OLD_LEASE,
    How,
    Lease,
    Policy,
    Replay,
    SetPolicy,
    Span,
    Verdict,
)
from tests.unit.machines.delivery_driver import PLACE, START_MS, Driver, offsets_of

A, B, C = 11, 22, 33
KEYED = Policy(orders_by_key=True, attempts_max=2)


def keyed(*hashes: int, first: int = 0, expires_at_ms: int = NEVER) -> list[Span]:
    return [Span(each, each, key_hash=key, expires_at_ms=expires_at_ms) for each, key in enumerate(hashes, first)]


@pytest.fixture
def driver() -> Driver:
    return Driver(KEYED)


def test_one_record_of_each_key_at_a_time(driver: Driver) -> None:
    driver.observe(*keyed(A, A, B, A, B, C))
    leased = driver.lease()
    assert offsets_of(leased.runs) == [0, 2, 5]
    assert driver.measure().held == 3
    assert driver.take(consumer="other") == []
    driver.machine.woken.clear()
    driver.settle(leased.lease, 2)
    assert list(driver.machine.woken) == [PLACE]
    assert driver.take(consumer="other") == [4]
    driver.settle(leased.lease, 0)
    assert driver.take(consumer="other") == [1]


def test_records_without_a_key_have_no_order(driver: Driver) -> None:
    driver.observe(*keyed(0, 0, A, 0))
    assert driver.take() == [0, 1, 2, 3]


def test_a_record_that_is_tried_again_holds_its_key(driver: Driver) -> None:
    driver.observe(*keyed(A, A))
    driver.settle(driver.lease().lease, 0, 0, How.RETRY, 1000)
    assert driver.take() == []
    driver.advance(1000)
    assert driver.take() == [0]
    driver.advance(30_000)
    assert [letter.offset for letter in driver.machine.dead_due(PLACE)] == [0]
    assert driver.take() == [1]


def test_a_lease_that_ends_keeps_the_order(driver: Driver) -> None:
    driver.observe(*keyed(A, A))
    driver.lease()
    driver.advance(30_000)
    assert driver.take() == [0]


def test_a_dead_letter_frees_its_key(driver: Driver) -> None:
    driver.observe(*keyed(A, A))
    driver.settle(driver.lease().lease, 0, 0, How.REJECT)
    assert driver.take() == [1]


def test_expired_records_behind_a_key_are_passed_over(driver: Driver) -> None:
    driver.observe(*keyed(A), *keyed(A, A, first=1, expires_at_ms=START_MS + 10), *keyed(A, first=3))
    leased = driver.lease()
    driver.advance(10)
    assert [letter.offset for letter in driver.write_letters()] == [1, 2]
    assert driver.take() == []
    driver.settle(leased.lease, 0)
    assert driver.take() == [3]


def test_order_outlives_a_restart(driver: Driver) -> None:
    driver.observe(*keyed(A, A, B, A))
    leased = driver.lease()
    driver.settle(leased.lease, 2)
    driver.settle(leased.lease, 0, 0, How.RETRY, 5000)
    driver.restart()
    driver.observe(*keyed(A, A, B, A))
    assert driver.take() == []
    driver.advance(5000)
    assert driver.take() == [0]


def test_order_holds_across_trimmed_windows() -> None:
    driver = Driver(msgspec.structs.replace(KEYED, unacked_max=100_000), checks=False)
    for round_number in range(12):
        first = round_number * 1000
        driver.observe(*keyed(*(1 + offset % 10 for offset in range(1000)), first=first))
        for step in range(100):
            leased = driver.lease(1000)
            assert offsets_of(leased.runs) == list(range(first + 10 * step, first + 10 * step + 10))
            driver.settle(leased.lease, leased.runs[0].first, leased.runs[-1].last)
    assert driver.delivery().own.base > 0
    driver.check()


def test_turning_order_on_asks_for_keys_and_forgets_leases_but_not_who_had_them() -> None:
    driver = Driver(Policy())
    driver.see(4)
    leased = driver.lease(2)
    driver.ask(SetPolicy(PLACE, KEYED))
    assert driver.machine.observed_end(PLACE) == 0
    assert driver.settle(leased.lease, 0) is Verdict.DONE
    driver.observe(*keyed(A, B, A, B))
    assert driver.take() == [1, 2]
    assert driver.settle(leased.lease, 1) is Verdict.EXPIRED


def test_retries_of_before_the_order_wait_for_their_key_and_their_time() -> None:
    driver = Driver(Policy())
    driver.see(2)
    driver.settle(driver.lease().lease, 1, 1, How.RETRY, 10_000)
    driver.ask(SetPolicy(PLACE, KEYED))
    driver.observe(*keyed(A, A))
    leased = driver.lease()
    assert offsets_of(leased.runs) == [0]
    driver.settle(leased.lease, 0)
    assert driver.take() == []
    driver.advance(10_000)
    assert driver.take() == [1]


def test_an_old_nack_of_a_held_record_leaves_it_held() -> None:
    driver = Driver(Policy())
    driver.see(2)
    driver.lease()
    driver.policy = KEYED
    driver.restart()
    driver.observe(*keyed(A, A))
    assert driver.settle(OLD_LEASE, 1, 1, How.RETRY, 0) is Verdict.DONE
    assert driver.take() == [0]


def test_a_key_is_not_leased_in_a_replay_and_in_the_log_at_once(driver: Driver) -> None:
    driver.observe(*keyed(A, B, A))
    leased = driver.lease()
    driver.settle(leased.lease, 0, 1)
    reply = driver.ask(Replay(PLACE, 0, 2, ((0, 1),)))
    driver.observe(*keyed(A, B), window=reply.window)
    assert driver.ask(Lease(PLACE, "c", 1)).runs[0].first == 2
    assert driver.take() == [1]
    leased = driver.lease()
    assert leased.runs == ()


def test_a_record_that_waits_for_its_retry_and_expires_frees_its_key(driver: Driver) -> None:
    driver.observe(*keyed(A, expires_at_ms=START_MS + 500), *keyed(A, first=1))
    driver.settle(driver.lease().lease, 0, 0, How.RETRY, 1000)
    driver.advance(499)
    assert driver.take() == []
    driver.advance(1)
    assert [letter.offset for letter in driver.machine.dead_due(PLACE)] == [0]
    assert driver.take() == [1]
