"""What deliveries cost: facts in the ledger, bytes and work; and what must not grow."""

from functools import partial
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.machines.deliveries.blocks import (
    BLOCK,
    Retry,
    clipped,
    merged,
    unpack_retries,
    with_retry,
    without,
    without_retries,
)
from goqueue.machines.deliveries.commands import How, Observe, Policy, Settlement, Span, Verdict
from goqueue.machines.deliveries.deadlines import Deadlines
from goqueue.machines.deliveries.facts import BlockForgotten, BlockStored, Progress
from goqueue.machines.deliveries.window import WINDOW_MAX
from goqueue.model.codes import Code
from tests.steps import count_steps
from tests.unit.machines.delivery_driver import PLACE, STORED, Driver

EAGER = Policy(unacked_max=10**7)


@pytest.fixture
def driver() -> Driver:
    driver = Driver(EAGER, checks=False)
    driver.see(2000)
    return driver


def last_written(driver: Driver) -> list[str]:
    """Kinds of what the last command stored."""
    records = driver.ledger[len(driver.ledger) - driver.written :]
    return ["forgotten" if value is None else type(STORED.decode(value)).__name__ for _, value in records]


def test_a_settlement_in_order_is_one_small_fact(driver: Driver) -> None:
    for first in range(0, 1000, 100):
        driver.settle(driver.lease(100).lease, first, first + 99)
        assert last_written(driver) == ["Progress"]
        assert len(driver.ledger[-1][1] or b"") < 60


def test_a_settlement_of_100_out_of_order_is_two_small_blocks_at_most(driver: Driver) -> None:
    leases = [driver.lease(100) for _ in range(10)]
    for number in (9, 3, 5, 1, 7, 2, 8):
        driver.settle(leases[number].lease, number * 100, number * 100 + 99)
        assert set(last_written(driver)) == {"BlockStored"}
        assert driver.written <= 2
        assert max(len(value or b"") for _, value in driver.ledger[-2:]) < 80
    driver.settle(leases[0].lease, 0, 99)
    assert last_written(driver) == ["forgotten"] * 3 + ["Progress"]
    assert driver.measure().start_offset == 400


def test_blocks_that_the_start_has_passed_are_forgotten(driver: Driver) -> None:
    leased = driver.lease(2000)
    for offset in range(1999, 0, -1):
        assert driver.settle(leased.lease, offset) is Verdict.DONE
    assert len(driver.delivery().own.stored) == 2000 // BLOCK + 1
    driver.settle(leased.lease, 0)
    assert set(driver.delivery().own.stored) <= {2000 // BLOCK}
    assert {type(fact) for fact in driver.machine.facts()} <= {Progress, BlockStored}
    assert len({fact.key() for fact in driver.replayed(compacted=True).facts()}) <= 2


def test_retries_stay_small_however_they_are_scattered(driver: Driver) -> None:
    leased = driver.lease(BLOCK)
    for offset in range(BLOCK):
        driver.now_ms += 1
        driver.settle(leased.lease, offset, offset, How.RETRY, 60_000)
    assert last_written(driver) == ["BlockStored"]
    assert len(driver.ledger[-1][1] or b"") < 20 * BLOCK + 100
    driver.restart()
    driver.see(2000)
    driver.advance(59_999)
    waiting = driver.measure().waiting
    assert waiting < BLOCK
    driver.advance(BLOCK)
    assert driver.measure().waiting == 0


def test_leases_and_observations_are_not_stored(driver: Driver) -> None:
    before = len(driver.ledger)
    leased = driver.lease(100)
    driver.settle(leased.lease, 0, 10, How.EXTEND, 1000)
    driver.settle(leased.lease, 20, 30, How.UNDO)
    driver.see(5)
    assert len(driver.ledger) == before


def test_what_retention_removed_is_settled_and_forgotten(driver: Driver) -> None:
    leases = [driver.lease(100) for _ in range(3)]
    driver.settle(leases[2].lease, 200, 299)
    driver.settle(leases[1].lease, 150, 150, How.REJECT)
    assert driver.ask(Observe(PLACE, (), 0, 1000)) is Code.NONE
    assert driver.measure()[:2] == (1000, 2000)
    assert [letter.offset for letter in driver.write_letters()] == [150]
    assert driver.delivery().unacked == {}
    assert driver.settle(leases[0].lease, 5) is Verdict.REPEATED
    driver.observe(Span(5000, 5009), log_start=5000)
    assert driver.measure()[:2] == (5000, 5010)
    driver.restart()
    driver.observe(Span(5000, 5009), log_start=5000)
    assert driver.take(5) == [5000, 5001, 5002, 5003, 5004]
    driver.check()


def test_windows_are_limited(driver: Driver) -> None:
    assert driver.machine.observe_room(PLACE) == WINDOW_MAX - 2000
    leased = driver.lease(1000)
    driver.settle(leased.lease, 500, 999)
    assert driver.machine.observe_room(PLACE) == WINDOW_MAX - 2000
    driver.settle(leased.lease, 0, 499)
    assert driver.machine.observe_room(PLACE) == WINDOW_MAX - 1000


def test_observing_twice_is_harmless_and_leaving_something_out_is_not(driver: Driver) -> None:
    driver.ask(Observe(PLACE, (Span(1990, 2010),), 2011))
    assert driver.machine.observed_end(PLACE) == 2011
    with pytest.raises(AssertionError):
        driver.ask(Observe(PLACE, (Span(2012, 2020),), 2021))
    with pytest.raises(AssertionError):
        driver.ask(Observe(PLACE, (Span(2011, 2012),), 2021))


def test_a_million_records_cost_the_same_from_first_to_last() -> None:
    """Observed, leased and acked in hundreds, with one record in front that nobody settles for half of the time."""
    driver = Driver(EAGER, checks=False)
    total, step = 1_000_000, 100
    for first in range(0, total, 10_000):
        driver.observe(*(Span(each, each + 999) for each in range(first, first + 10_000, 1000)))
    stuck = driver.lease(step, lease_ms=10**9)

    def work(times: int) -> None:
        for _ in range(times):
            leased = driver.lease(step)
            ((first, last, _, _),) = leased.runs
            assert driver.settle(leased.lease, first, last) is Verdict.DONE

    tenths = []
    for tenth in range(10):
        if tenth == 5:
            driver.settle(stuck.lease, 0, step - 1)
        tenths.append(count_steps(partial(work, total // step // 10 - (tenth == 9))))
        driver.ledger.clear()
    assert driver.measure()[:2] == (total, total)
    assert max(tenths) < 1.2 * min(tenths), tenths
    assert len(driver.delivery().own.kinds) < total


def test_leases_that_were_settled_leave_nothing_behind(driver: Driver) -> None:
    for _ in range(10):
        driver.see(1000)
        for _ in range(1000):
            leased = driver.lease(1)
            driver.settle(leased.lease, leased.runs[0].first)
    deadlines = driver.machine._state.leases.deadlines
    assert len(deadlines._heap) <= 1026
    assert deadlines._noted == {}
    assert driver.delivery().unacked == {}


# Parts


def test_deadlines_come_in_order_and_those_dropped_never() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for item in range(100):
        deadlines.note(item, 1000 - item)
    deadlines.note(5, 10)
    deadlines.note(6, 2000)  # a later time does not count
    for item in range(50, 100):
        deadlines.drop(item)
    assert deadlines.earliest_ms() == 10
    assert deadlines.due(9, 1000) == []
    assert deadlines.due(952, 1000) == [5, 49, 48]
    assert len(deadlines.due(5000, 7)) == 7
    assert set(deadlines.due(5000, 1000)) == set(range(50))
    for item in range(50):
        deadlines.drop(item)
    deadlines.passed()
    assert deadlines.earliest_ms() is None


def test_ranges_are_cut_and_merged() -> None:
    assert without([(0, 9), (20, 29)], [(0, 0), (3, 4), (8, 21), (29, 40)]) == [(1, 2), (5, 7), (22, 28)]
    assert without([(0, 9), (10, 12)], [(5, 11)]) == [(0, 4), (12, 12)]
    assert without([(5, 5)], []) == [(5, 5)]
    assert merged([(5, 6), (0, 1), (2, 3), (6, 9)]) == [(0, 3), (5, 9)]
    assert list(clipped([(0, 3), (5, 9)], 2, 5)) == [(2, 3), (5, 5)]


steps = st.lists(
    st.tuples(st.integers(0, BLOCK - 1), st.integers(0, 20), st.integers(0, 3), st.booleans()), max_size=60
)


@given(steps, st.integers(0, 3))
def test_packed_retries_say_what_a_table_would(changes: list[tuple[int, int, int, bool]], number: int) -> None:
    base = number * BLOCK
    packed, table = b"", dict[int, int]()
    for first, more, attempts, is_removed in changes:
        last = min(first + more, BLOCK - 1)
        if is_removed:
            packed = without_retries(number, packed, base + first, base + last)
            table = {index: count for index, count in table.items() if not first <= index <= last}
        else:
            packed = with_retry(number, packed, Retry(base + first, base + last, attempts, 5, 6))
            table |= dict.fromkeys(range(first, last + 1), attempts)
    rows = list(unpack_retries(number, packed))
    assert rows == sorted(rows)
    assert {each - base: row.attempts for row in rows for each in range(row.first, row.last + 1)} == table
    assert all(one.last + 1 < two.first or one[2:] != two[2:] for one, two in pairwise(rows))


def test_stored_facts_come_back_as_they_were() -> None:
    fact = BlockStored(PLACE, 0, 7, b"\1" * 16, b"")
    assert STORED.decode(msgspec.msgpack.encode(fact)) == fact
    assert BlockForgotten(PLACE, 0, 7).key() == fact.key()
    assert Settlement(1, 2) == Settlement(1, 2, How.ACK, -1, "", 0)
