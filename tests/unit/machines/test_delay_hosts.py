"""A start at which the log of a partition and the ledger of the delays do not agree."""

from goqueue.machines.delays.commands import NO_PRODUCER, FollowHost, NewSchedule, Schedule
from goqueue.model.codes import Code
from tests.unit.machines.delay_samples import MINUTE_MS, SECOND_MS, Driver, Partition, Restart, restarts


def schedule(driver: Driver, epoch: int, *offsets: int, delay_ms: int = MINUTE_MS) -> None:
    new = tuple(NewSchedule(offset, driver.now_ms + delay_ms, b"%d" % offset) for offset in offsets)
    reply = driver.submit(Schedule(new, NO_PRODUCER, -1, epoch))
    assert reply.code is Code.NONE


def waiting(driver: Driver) -> list[int]:
    return [each.key.offset for each in driver.machine.walk()]


def follow(driver: Driver, end_offset: int, epoch: int, **found: object) -> None:
    assert driver.submit(FollowHost(end_offset, epoch, **found)) is False  # type: ignore[arg-type]


@restarts
def test_schedules_of_lost_places_never_fire_and_others_take_their_offsets(how: Restart) -> None:
    driver = Driver()
    schedule(driver, 0, 3, 4, 5)
    follow(driver, 4, 1)
    assert waiting(driver) == [3]
    schedule(driver, 1, 4, 6)
    driver.restart(how)
    assert waiting(driver) == [3, 4, 6]
    schedule(driver, 1, 4, 6)
    assert waiting(driver) == [3, 4, 6]
    driver.advance(2 * MINUTE_MS)
    assert [due.key.offset for due, _ in driver.fired] == [3, 4, 6]


@restarts
def test_what_the_ledger_lost_is_taken_when_it_comes_again_once(how: Restart) -> None:
    driver = Driver()
    schedule(driver, 0, 2)
    follow(driver, 10, 1, unkept=(4, 5, 7))
    schedule(driver, 1, 12)
    driver.restart(how)
    schedule(driver, 0, 4, 5)
    assert waiting(driver) == [2, 4, 5, 12]
    driver.restart(how)
    driver.advance(2 * MINUTE_MS)
    driver.restart(how)
    schedule(driver, 0, 4, 5)
    assert waiting(driver) == []
    schedule(driver, 0, 7)
    assert waiting(driver) == [7]


@restarts
def test_free_places_that_nobody_sends_again_are_forgotten(how: Restart) -> None:
    driver = Driver()
    follow(driver, 10, 0, unkept=(4, 7))
    schedule(driver, 0, 12)
    driver.restart(how)
    follow(driver, 13, 1, repeated_from=5)
    schedule(driver, 0, 4, 7)
    assert waiting(driver) == [7, 12]


def test_a_place_that_is_known_is_not_taken_for_a_lost_one() -> None:
    driver = Driver()
    schedule(driver, 0, 3, 8)
    follow(driver, 20, 1, unkept=(3, 8))
    driver.advance(2 * MINUTE_MS)
    schedule(driver, 0, 3, 8)
    assert waiting(driver) == []


@restarts
def test_a_job_goes_on_without_lost_places_behind_what_its_log_has(how: Restart) -> None:
    driver = Driver()
    schedule(driver, 0, 1, delay_ms=SECOND_MS)
    schedule(driver, 0, 2, 3, delay_ms=2 * SECOND_MS)
    schedule(driver, 0, 4, delay_ms=3 * SECOND_MS)
    driver.advance(10 * SECOND_MS, publishes=False)
    assert [(job.sequence, len(job.records)) for job in driver.machine.firing()] == [(0, 1), (1, 2), (3, 1)]
    follow(driver, 3, 1, next_sequence=1)
    assert [(job.sequence, list(job.records.offsets)) for job in driver.machine.firing()] == [(0, [1]), (1, [2])]
    driver.restart(how)
    assert [(job.sequence, list(job.records.offsets)) for job in driver.machine.firing()] == [(0, [1]), (1, [2])]
    assert driver.machine.measure().firing == 2
    schedule(driver, 1, 3, delay_ms=SECOND_MS)
    driver.advance(2 * SECOND_MS)
    assert [due.key.offset for due, _ in driver.fired] == [1, 2, 3]


def test_jobs_go_on_with_the_sequence_that_a_log_asks_for_after_it_lost_what_was_published() -> None:
    driver = Driver()
    schedule(driver, 0, 1, 2, 3, delay_ms=SECOND_MS)
    driver.advance(2 * SECOND_MS)
    assert driver.machine.firing() == []
    follow(driver, 4, 1, next_sequence=1)
    driver.partition = Partition()
    schedule(driver, 1, 5, delay_ms=SECOND_MS)
    driver.advance(2 * SECOND_MS, publishes=False)
    assert [job.sequence for job in driver.machine.firing()] == [1]


def test_a_start_that_finds_all_in_order_stores_nothing() -> None:
    driver = Driver()
    schedule(driver, 0, 1, delay_ms=SECOND_MS)
    schedule(driver, 0, 2)
    driver.advance(2 * SECOND_MS)
    end = driver.end_offset
    follow(driver, 4, 1, next_sequence=1)
    assert driver.end_offset == end
