"""Recurring schedules on the delay machine: one job per run, nothing twice, nothing many times over."""

from datetime import UTC, datetime
from typing import Any

import pytest

from goqueue.machines.delays.commands import (
    RECURRING,
    DropRecurring,
    NewSchedule,
    PauseRecurring,
    RecurringReply,
    ReleaseRecurring,
    Schedule,
    StoreRecurring,
)
from goqueue.machines.delays.facts import RecurringStored
from goqueue.machines.delays.target import UNFINISHED_MAX
from goqueue.model.codes import Code
from tests.unit.machines.delay_samples import (
    DAY_MS,
    HOUR_MS,
    ID,
    MINUTE_MS,
    NOW_MS,
    Driver,
    Restart,
    described,
    restarts,
)

NEXT_MINUTE_MS = NOW_MS - NOW_MS % MINUTE_MS + MINUTE_MS


def store(driver: Driver, cron: str = "* * * * *", name: str = "r", **fields: Any) -> RecurringReply:
    command: dict[str, Any] = {"timezone": "UTC", "body": b"run"} | fields
    reply = driver.submit(StoreRecurring(name=name, cron=cron, **command))
    assert isinstance(reply, RecurringReply)
    return reply


def due_times(driver: Driver) -> list[int]:
    return [due.due_ms for due, _ in driver.fired]


@restarts
def test_it_runs_at_every_moment(how: Restart) -> None:
    driver = Driver()
    reply = store(driver)
    assert (reply.code, reply.next_ms) == (Code.NONE, NEXT_MINUTE_MS)
    driver.take_snapshot()
    for number in range(1, 4):
        driver.advance(MINUTE_MS)
        before = described(driver.machine)
        driver.restart(how)
        assert described(driver.machine) == before
        assert due_times(driver) == [NEXT_MINUTE_MS + each * MINUTE_MS for each in range(number)]
    assert {due.key.offset for due, _ in driver.fired} == {RECURRING}
    assert {driver.check_body(due) for due, _ in driver.fired} == {b"run"}
    (found,) = driver.machine.recurring()
    assert (found.last_ms, found.next_ms) == (NEXT_MINUTE_MS + 2 * MINUTE_MS, NEXT_MINUTE_MS + 3 * MINUTE_MS)


@restarts
def test_what_was_missed_runs_once_as_its_latest_moment(how: Restart) -> None:
    driver = Driver()
    store(driver, "0 * * * *")
    driver.restart(how)
    driver.jump(30 * DAY_MS)
    (due,) = due_times(driver)
    assert driver.now_ms - HOUR_MS < due <= driver.now_ms
    driver.advance(HOUR_MS)
    assert due_times(driver) == [due, due + HOUR_MS]


def test_a_clock_that_is_set_back_runs_nothing_twice() -> None:
    driver = Driver()
    store(driver, "0 * * * *")
    driver.advance(HOUR_MS)
    driver.now_ms -= 2 * HOUR_MS
    driver.advance(2 * HOUR_MS + 1)
    driver.advance(HOUR_MS)
    assert len(due_times(driver)) == len(set(due_times(driver))) == 2


@restarts
def test_a_crash_between_a_run_and_its_report_neither_loses_nor_repeats_it(how: Restart) -> None:
    driver = Driver()
    store(driver)
    driver.advance(MINUTE_MS, publishes=False)
    driver.publish(reports=False)
    driver.restart(how)
    driver.advance(MINUTE_MS)
    assert due_times(driver) == [NEXT_MINUTE_MS, NEXT_MINUTE_MS + MINUTE_MS]


@restarts
def test_one_that_replaces_another_is_the_only_one(how: Restart) -> None:
    driver = Driver()
    store(driver, body=b"old")
    driver.advance(MINUTE_MS)
    driver.take_snapshot()
    store(driver, "*/10 * * * *", body=b"new")
    driver.restart(how)
    (found,) = driver.machine.recurring()
    assert (found.cron, found.last_ms) == ("*/10 * * * *", -1)
    driver.fired.clear()
    driver.advance(20 * MINUTE_MS)
    assert [driver.check_body(due) for due, _ in driver.fired] == [b"new"] * 2


@restarts
def test_one_that_is_dropped_runs_no_more_and_leaves_nothing(how: Restart) -> None:
    driver = Driver()
    store(driver)
    driver.advance(MINUTE_MS)
    driver.take_snapshot()
    assert driver.submit(DropRecurring("r")).code is Code.NONE
    driver.restart(how)
    assert driver.submit(DropRecurring("r")).code is Code.INVALID_REQUEST
    driver.advance(HOUR_MS)
    assert len(driver.fired) == 1
    driver.compact(keeps_tombstones=False)
    assert [key[:1] for key, _ in driver.entries.values()] == [b"t"]
    assert driver.machine.next_deadline_ms() is None


@restarts
@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_run_that_is_on_its_way_keeps_its_body(how: Restart, is_replaced: bool) -> None:
    """Dropped or replaced meanwhile: even if the ledger is compacted before the job is done."""
    driver = Driver()
    store(driver, body=b"old")
    driver.advance(MINUTE_MS, publishes=False)
    driver.advance(MINUTE_MS, publishes=False)
    assert len(driver.machine.firing()) == 2
    if is_replaced:
        store(driver, "0 0 1 1 *", body=b"new")
    else:
        driver.submit(DropRecurring("r"))
    driver.compact()
    driver.restart(how)
    assert len(driver.machine.recurring()) == is_replaced
    for _ in range(2):
        (job, *_) = driver.machine.firing()
        assert driver.check_body(job.records[0]) == b"old"
        driver.publish(1)
    driver.compact(keeps_tombstones=False)
    left = [value for _, value in driver.entries.values() if value is not None and b"old" in value]
    assert left == []
    driver.advance(HOUR_MS)
    assert len(driver.fired) == 2


def test_a_partition_that_is_stuck_gets_one_run_when_it_goes_on() -> None:
    driver = Driver()
    new = tuple(NewSchedule(offset, 0, b"x") for offset in range(3000))
    driver.submit(Schedule(new))
    store(driver)
    driver.run(publishes=False)
    assert len(driver.machine.firing()) == UNFINISHED_MAX
    driver.advance(HOUR_MS, publishes=False)
    assert len(driver.machine.firing()) == UNFINISHED_MAX
    deadline = driver.machine.next_deadline_ms()
    assert deadline is None or deadline > driver.now_ms, "it waits, and asks for no tick meanwhile"
    driver.run()
    due = [due.due_ms for due, _ in driver.fired if due.key.offset == RECURRING]
    assert due == [NEXT_MINUTE_MS + HOUR_MS - MINUTE_MS]


def test_one_that_is_held_does_not_run_before_it_is_released() -> None:
    driver = Driver()
    assert store(driver, is_held=True).next_ms == NEXT_MINUTE_MS
    driver.advance(2 * MINUTE_MS)
    assert driver.fired == []
    assert driver.submit(ReleaseRecurring("r")).code is Code.NONE
    driver.run()
    assert due_times(driver) == [NEXT_MINUTE_MS + MINUTE_MS], "what was missed comes once"
    assert driver.submit(ReleaseRecurring("other")).code is Code.INVALID_REQUEST


@restarts
def test_one_that_was_held_runs_after_a_restart_unless_it_is_dropped(how: Restart) -> None:
    driver = Driver()
    store(driver, is_held=True)
    store(driver, name="s", is_held=True)
    driver.restart(how)
    assert driver.submit(DropRecurring("s")).code is Code.NONE
    driver.advance(MINUTE_MS)
    assert due_times(driver) == [NEXT_MINUTE_MS]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"cron": "* * *"}, "five fields"),
        ({"cron": "99 * * * *"}, "minute"),
        ({"cron": "* * * * *", "timezone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"cron": "* * * * *", "name": ""}, "name"),
        ({"cron": "* * * * *", "name": "n" * 256}, "name"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, str], word: str) -> None:
    driver = Driver()
    reply = store(driver, **fields)
    assert reply.code is Code.INVALID_REQUEST
    assert word in reply.message
    assert driver.end_offset == 0


def test_one_whose_time_zone_is_gone_after_an_upgrade_runs_once_more_and_harms_no_other() -> None:
    driver = Driver()
    lost = RecurringStored(1, "lost", "t", ID, 0, "* * * * *", "Mars/Olympus", NEXT_MINUTE_MS, b"x")
    driver.machine.apply(lost)
    driver.machine.placed(lost, 0)
    driver.entries[0] = (lost.key(), None)
    driver.end_offset = 1
    store(driver, name="other")
    driver.advance(MINUTE_MS, publishes=False)
    assert [job.records[0].due_ms for job in driver.machine.firing()] == [NEXT_MINUTE_MS] * 2
    assert [(each.name, each.next_ms) for each in driver.machine.recurring()] == [
        ("lost", -1),
        ("other", NEXT_MINUTE_MS + MINUTE_MS),
    ]


def test_summer_time_in_berlin() -> None:
    """On the day when clocks go forward the run comes when the gap ends, and then again at its own time."""
    start = datetime(2030, 3, 29, tzinfo=UTC)
    driver = Driver(int(start.timestamp() * 1000))
    store(driver, "30 2 * * *", timezone="Europe/Berlin")
    driver.advance(4 * DAY_MS)
    runs = [datetime.fromtimestamp(due / 1000, UTC) for due in due_times(driver)]
    assert [f"{run:%d %H:%M}" for run in runs] == ["29 01:30", "30 01:30", "31 01:00", "01 00:30"]


@restarts
def test_paused_it_does_not_run_and_resumed_it_makes_up_for_nothing(how: Restart) -> None:
    driver = Driver()
    store(driver)
    driver.take_snapshot()
    driver.advance(MINUTE_MS)
    assert driver.submit(PauseRecurring("r")).code is Code.NONE
    driver.take_snapshot()
    for _ in range(3):
        driver.advance(MINUTE_MS)
        driver.restart(how)
        (found,) = driver.machine.recurring()
        assert found.is_paused
    assert due_times(driver) == [NEXT_MINUTE_MS]
    reply = driver.submit(PauseRecurring("r", is_paused=False))
    assert reply.next_ms == NEXT_MINUTE_MS + 4 * MINUTE_MS
    driver.restart(how)
    driver.advance(MINUTE_MS)
    assert due_times(driver) == [NEXT_MINUTE_MS, NEXT_MINUTE_MS + 4 * MINUTE_MS]


@restarts
def test_a_program_that_stores_it_again_does_not_resume_it(how: Restart) -> None:
    driver = Driver()
    store(driver)
    driver.submit(PauseRecurring("r"))
    assert driver.submit(PauseRecurring("r")).code is Code.NONE, "twice is fine"
    store(driver, body=b"new")
    driver.restart(how)
    driver.advance(HOUR_MS)
    assert due_times(driver) == []
    driver.submit(PauseRecurring("r", is_paused=False))
    driver.advance(MINUTE_MS)
    assert [driver.check_body(due) for due, _ in driver.fired] == [b"new"]


def test_a_paused_one_can_be_dropped_and_one_of_its_name_runs() -> None:
    driver = Driver()
    store(driver)
    driver.submit(PauseRecurring("r"))
    driver.submit(DropRecurring("r"))
    assert driver.submit(PauseRecurring("r")).code is Code.INVALID_REQUEST
    store(driver)
    driver.advance(MINUTE_MS)
    assert due_times(driver) == [NEXT_MINUTE_MS]
