"""Delays wait for the end of their transaction."""

from goqueue.machines.delays.commands import EndTransactionSchedules, ScheduleKey
from goqueue.model.codes import Code
from tests.unit.machines.delay_samples import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Driver,
    Restart,
    restarts,
)

# Transactions


@restarts
def test_a_transaction_that_commits_sets_its_schedules_going(how: Restart) -> None:
    driver = Driver()
    key = driver.schedule(1, 100, producer=(7, 0))
    driver.schedule(2, HOUR_MS, producer=(7, 0))
    found = driver.machine.find(key.offset)
    assert found is not None
    assert found.waits_for_transaction
    assert driver.machine.has_open_transaction(7)
    driver.advance(MINUTE_MS)
    driver.restart(how)
    assert driver.fired == []
    assert driver.machine.measure().waiting_for_transaction == 2
    driver.submit(EndTransactionSchedules(7, 0, True))
    assert driver.machine.next_deadline_ms() == 0, "what is past due fires at once"
    assert not driver.machine.has_open_transaction(7)
    driver.restart(how)
    driver.run()
    assert driver.fired_offsets == [1]
    driver.restart(how)
    assert driver.machine.measure().pending == 1, "the commit is known as long as anything depends on it"
    driver.advance(HOUR_MS)
    assert driver.fired_offsets == [1, 2]


@restarts
def test_what_a_transaction_that_aborts_scheduled_never_fires(how: Restart) -> None:
    """Nor does a later commit of the same producer change that, whatever compaction left of the abort."""
    driver = Driver()
    for offset in range(3):
        driver.schedule(offset, 100, producer=(7, 0))
    driver.schedule(3, 100)
    driver.take_snapshot()
    driver.submit(EndTransactionSchedules(7, 0, False))
    driver.schedule(4, 100, producer=(7, 0))
    driver.submit(EndTransactionSchedules(7, 0, True))
    driver.restart(how)
    driver.advance(DAY_MS)
    assert driver.fired_offsets == [3, 4]
    driver.compact(keeps_tombstones=False)
    assert [key[:1] for key, _ in driver.entries.values()] == [b"t"]


@restarts
def test_what_was_aborted_is_not_scheduled_again(how: Restart) -> None:
    driver = Driver()
    driver.schedule(5, 0, producer=(7, 0))
    driver.submit(EndTransactionSchedules(7, 0, False))
    driver.run()
    driver.restart(how)
    driver.schedule(5, 0)
    driver.run()
    assert driver.fired == []


def test_a_fenced_producer_is_ended_with_a_later_epoch_and_a_late_end_touches_no_later_transaction() -> None:
    driver = Driver()
    driver.schedule(1, 0, producer=(7, 4))
    driver.submit(EndTransactionSchedules(7, 5, False))
    driver.schedule(2, 0, producer=(7, 6))
    driver.submit(EndTransactionSchedules(7, 5, True))
    driver.run()
    assert driver.fired == []
    assert driver.machine.has_open_transaction(7)
    driver.submit(EndTransactionSchedules(7, 6, True))
    driver.run()
    assert driver.fired_offsets == [2]


def test_an_end_touches_one_producer() -> None:
    driver = Driver()
    driver.schedule(1, 0, producer=(7, 0))
    driver.schedule(2, 0, producer=(8, 0))
    driver.submit(EndTransactionSchedules(7, 0, True))
    driver.run()
    assert [due.key for due, _ in driver.fired] == [ScheduleKey("t", 0, 1)]
    assert not driver.machine.has_open_transaction(7)
    assert driver.machine.has_open_transaction(8)
    assert driver.submit(EndTransactionSchedules(7, 0, True)).code is Code.NONE


@restarts
def test_what_waits_for_a_transaction_can_be_cancelled_and_rescheduled(how: Restart) -> None:
    driver = Driver()
    first, second = driver.schedule(1, 100, producer=(7, 0)), driver.schedule(2, 100, producer=(7, 0))
    driver.schedule(3, 100, producer=(8, 0))
    assert driver.cancel(first) is Code.NONE
    assert driver.reschedule(second, HOUR_MS) is Code.NONE
    assert driver.cancel(ScheduleKey("t", 0, 3)) is Code.NONE
    driver.restart(how)
    found = driver.machine.find(second.offset)
    assert found is not None
    assert found.waits_for_transaction
    for producer in (7, 8):
        driver.submit(EndTransactionSchedules(producer, 0, True))
        assert not driver.machine.has_open_transaction(producer)
    driver.advance(MINUTE_MS)
    assert driver.fired == []
    driver.advance(HOUR_MS)
    assert driver.fired_offsets == [2]
