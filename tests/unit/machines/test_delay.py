"""The promises of delays: due once, never early, never after a cancel, the same after any restart."""

import pytest

from goqueue.machines.delays.commands import (
    CancelSchedule,
    NewSchedule,
    Reschedule,
    Schedule,
    ScheduleKey,
    TakeProducer,
)
from goqueue.machines.delays.firing import JOB_RECORDS_MAX
from goqueue.machines.delays.target import UNFINISHED_MAX
from goqueue.model.codes import Code
from tests.unit.machines.delay_samples import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    Driver,
    Restart,
    described,
    fill,
    restarts,
)

# Time


@pytest.mark.parametrize("delay_ms", [0, -1, -HOUR_MS])
def test_a_zero_or_past_delay_fires_at_once(delay_ms: int) -> None:
    driver = Driver()
    driver.schedule(1, delay_ms)
    deadline = driver.machine.next_deadline_ms()
    assert deadline is not None
    assert deadline <= driver.now_ms
    driver.tick()
    assert [job.records[0].key.offset for job in driver.machine.firing()] == [1]


def test_a_schedule_fires_when_it_is_due_and_not_before() -> None:
    driver = Driver()
    driver.schedule(1, 5 * SECOND_MS)
    driver.advance(5 * SECOND_MS - 1)
    assert driver.fired == []
    driver.advance(10)
    assert driver.fired_offsets == [1]
    assert driver.machine.next_deadline_ms() is None


def test_a_long_delay_holds_up_no_short_one() -> None:
    driver = Driver()
    driver.schedule(1, MINUTE_MS)
    driver.schedule(2, SECOND_MS)
    driver.advance(2 * SECOND_MS)
    assert driver.fired_offsets == [2]
    driver.advance(MINUTE_MS)
    assert driver.fired_offsets == [2, 1]


def test_there_is_no_longest_delay() -> None:
    driver = Driver()
    driver.schedule(1, 20 * 365 * DAY_MS)
    driver.advance(20 * 365 * DAY_MS - 1)
    assert driver.fired == []
    driver.advance(10)
    assert driver.fired_offsets == [1]


def test_a_time_that_is_none_is_refused() -> None:
    driver = Driver()
    reply = driver.submit(Schedule((NewSchedule(1, 1 << 63, b""),)))
    assert reply.code is Code.INVALID_REQUEST
    assert str(1 << 63) in reply.message
    key = driver.schedule(1, 10)
    assert driver.reschedule(key, 1 << 63) is Code.INVALID_REQUEST


def test_what_is_due_together_fires_in_the_order_of_due_times_then_of_offsets() -> None:
    driver = Driver()
    for offset, delay_ms in enumerate([500, 300, 300, 900, 100, 500]):
        driver.schedule(offset, delay_ms)
    driver.jump(DAY_MS)
    assert driver.fired_offsets == [4, 1, 2, 0, 5, 3]


@restarts
def test_a_restart_changes_no_delivery_time(how: Restart) -> None:
    driver = Driver()
    driver.submit(TakeProducer(5, 1))
    for offset, delay_ms in enumerate([0, 5, 2000, MINUTE_MS, DAY_MS, 400 * DAY_MS]):
        driver.schedule(offset, delay_ms)
    driver.advance(SECOND_MS)
    before = described(driver.machine)
    driver.restart(how)
    assert described(driver.machine) == before
    driver.advance(500 * DAY_MS)
    assert driver.fired_offsets == list(range(6))
    assert all(0 <= fired_ms - due.due_ms < 10 for due, fired_ms in driver.fired)


# Cancel and reschedule


@pytest.mark.parametrize("delay_ms", [1, 50, 3000, HOUR_MS, DAY_MS, 400 * DAY_MS])
@restarts
def test_cancelled_is_never_delivered(how: Restart, delay_ms: int) -> None:
    driver = Driver()
    key = driver.schedule(1, delay_ms)
    driver.schedule(2, delay_ms)
    driver.take_snapshot()
    assert driver.cancel(key) is Code.NONE
    driver.restart(how)
    assert driver.machine.find(key.offset) is None
    driver.advance(delay_ms + DAY_MS)
    assert driver.fired_offsets == [2]


def test_a_cancel_that_came_too_late_says_so() -> None:
    """NONE if and only if it never fires."""
    driver = Driver()
    key = driver.schedule(1, 100)
    driver.now_ms += 200
    driver.tick()
    reply = driver.submit(CancelSchedule(key.offset))
    assert reply.code is Code.INVALID_REQUEST
    assert "being published" in reply.message
    assert driver.reschedule(key, HOUR_MS) is Code.INVALID_REQUEST
    driver.publish()
    reply = driver.submit(CancelSchedule(key.offset))
    assert reply.code is Code.INVALID_REQUEST
    assert "nothing waits" in reply.message
    assert driver.fired_offsets == [1]


def test_a_cancel_between_the_due_time_and_the_tick_is_in_time() -> None:
    driver = Driver()
    keys = [driver.schedule(offset, 100) for offset in range(5)]
    driver.now_ms += 200
    assert driver.cancel(keys[2]) is Code.NONE
    driver.run()
    assert driver.fired_offsets == [0, 1, 3, 4]


def test_what_is_ready_but_not_in_a_job_can_be_cancelled() -> None:
    driver = Driver()
    fill(driver, UNFINISHED_MAX * JOB_RECORDS_MAX + 2)
    driver.run(publishes=False)
    last = UNFINISHED_MAX * JOB_RECORDS_MAX
    assert driver.machine.find(last) is not None
    assert driver.cancel(ScheduleKey("t", 0, last)) is Code.NONE
    assert driver.reschedule(ScheduleKey("t", 0, last + 1), DAY_MS) is Code.NONE
    driver.run()
    assert driver.fired_offsets == list(range(last))


def test_what_takes_the_slot_of_a_cancelled_one_fires_once() -> None:
    driver = Driver()
    last = UNFINISHED_MAX * JOB_RECORDS_MAX + 1
    fill(driver, last + 1)
    driver.run(publishes=False)
    cancelled = ScheduleKey("t", 0, last)
    slot = driver.machine._state.target.index.find(last)
    assert driver.cancel(cancelled) is Code.NONE
    key = driver.schedule(last + 1, -5)
    assert driver.machine._state.target.index.find(last + 1) == slot, "what was ready still names it"
    driver.publish(1)  # there is room for both in the next tick
    driver.run()
    fired = [due.key for due, _ in driver.fired]
    assert sorted(fired) == sorted([*(ScheduleKey("t", 0, offset) for offset in range(last)), key])


def test_cancel_and_reschedule_of_what_never_was() -> None:
    driver = Driver()
    assert driver.cancel(ScheduleKey("t", 0, 1)) is Code.INVALID_REQUEST
    driver.schedule(1, 100)
    assert driver.cancel(ScheduleKey("t", 0, 2)) is Code.INVALID_REQUEST
    assert driver.submit(Reschedule(2, 1, b"")).code is Code.INVALID_REQUEST


@pytest.mark.parametrize(("before_ms", "after_ms"), [(HOUR_MS, 100), (100, HOUR_MS), (HOUR_MS, -1), (HOUR_MS, HOUR_MS)])
@restarts
def test_a_rescheduled_one_fires_once_at_its_new_time(how: Restart, before_ms: int, after_ms: int) -> None:
    driver = Driver()
    key = driver.schedule(1, before_ms)
    driver.schedule(2, 2 * HOUR_MS)
    driver.take_snapshot()
    assert driver.reschedule(key, after_ms) is Code.NONE
    driver.restart(how)
    driver.advance(max(after_ms - 1, 0))
    assert driver.fired_offsets == [] or after_ms < 0
    driver.advance(10)
    assert driver.fired_offsets == [1]
    driver.advance(DAY_MS)
    assert driver.fired_offsets == [1, 2]


@restarts
def test_what_was_scheduled_once_is_not_again(how: Restart) -> None:
    """After it fired, after it was cancelled, after everything else about it is gone from the ledger."""
    driver = Driver()
    driver.schedule(1, 0)
    key = driver.schedule(5, HOUR_MS)
    driver.run()
    assert driver.cancel(key) is Code.NONE
    for _ in range(2):
        fill(driver, 6)
        assert list(driver.machine.walk()) == []
        assert driver.machine.known_place()[1] == 5
        driver.restart(how)
    driver.schedule(6, 0)
    driver.run()
    assert driver.fired_offsets == [1, 6]


@pytest.mark.parametrize("with_tombstones", [False, True])
def test_the_ledger_alone_knows_what_was_scheduled_even_if_a_snapshot_knew_it_too(with_tombstones: bool) -> None:
    """The snapshot may be damaged when it is needed."""
    driver = Driver()
    key = driver.schedule(5, HOUR_MS)
    driver.restart("snapshot")
    assert driver.cancel(key) is Code.NONE
    driver.restart("compacted" if with_tombstones else "no tombstones")
    assert driver.machine.known_place()[1] == 5


# Questions


def test_what_waits_is_walked_over_from_anywhere() -> None:
    driver = Driver()
    keys = [driver.schedule(offset, HOUR_MS) for offset in (3, 5, 9)]
    assert [each.key for each in driver.machine.walk()] == keys
    assert [each.key.offset for each in driver.machine.walk(3)] == [5, 9]
    assert driver.machine.count() == 3


def test_what_is_found_says_where_the_body_lies() -> None:
    driver = Driver()
    key = driver.schedule(4, HOUR_MS, body=b"hello")
    found = driver.machine.find(key.offset)
    assert found is not None
    assert (found.key, found.due_ms, found.body_bytes) == (key, driver.now_ms + HOUR_MS, 5)
    assert b"hello" in (driver.entries[found.ledger_offset][1] or b"")


def test_measures_add_up() -> None:
    driver = Driver()
    assert driver.machine.measure().next_due_ms == -1
    keys = [driver.schedule(offset, delay) for offset, delay in enumerate([100, 200, HOUR_MS, DAY_MS, 300 * DAY_MS])]
    driver.schedule(9, 0, producer=(7, 0))
    driver.cancel(keys[1])
    driver.tick()
    measure = driver.machine.measure()
    assert (measure.pending, sum(measure.by_level), measure.by_level[-1]) == (4, 4, 1)
    assert (measure.waiting_for_transaction, measure.cancelled) == (1, 1)
    assert measure.next_due_ms == driver.now_ms + 100
    driver.advance(1000, publishes=False)
    assert driver.machine.measure().firing == 1
    driver.run()
    measure = driver.machine.measure()
    assert (measure.pending, measure.firing, measure.fired) == (3, 0, 1)


def test_only_its_own_commands_and_facts_are_taken() -> None:
    driver = Driver()
    with pytest.raises(TypeError, match="no command"):
        driver.submit("nonsense")
