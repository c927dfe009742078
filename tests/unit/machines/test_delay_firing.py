"""What is due is published once: jobs and their limits, and crashes between publishing and its report."""

import pytest

from goqueue.machines.delays.commands import EndTransactionSchedules, FiringDone, NewSchedule, Schedule, TakeProducer
from goqueue.machines.delays.facts import TargetKept
from goqueue.machines.delays.firing import JOB_BYTES_MAX
from goqueue.machines.delays.target import UNFINISHED_MAX
from goqueue.machines.machine import Tick
from goqueue.model.codes import Code
from tests.unit.machines.delay_samples import DAY_MS, HOUR_MS, ID, RESTARTS, Driver, Restart, fill, restarts


@restarts
@pytest.mark.parametrize("is_published", [False, True])
def test_a_crash_between_firing_and_its_report_neither_loses_nor_repeats(how: Restart, is_published: bool) -> None:
    driver = Driver()
    fill(driver, 1200)
    driver.run(publishes=False)
    jobs = [(*job[:-1], list(job.records)) for job in driver.machine.firing()]
    assert [(job[0], job[4], len(job[5])) for job in jobs] == [(1, 0, 500), (2, 500, 500), (3, 1000, 200)]
    if is_published:
        driver.publish(2, reports=False)
    driver.restart(how)
    assert [(*job[:-1], list(job.records)) for job in driver.machine.firing()] == jobs, "alike"
    driver.run()
    assert driver.fired_offsets == list(range(1200))
    fill(driver, 1, first=1200)
    driver.run()
    assert driver.fired_offsets == list(range(1201))


@restarts
def test_a_job_that_is_reported_out_of_order_leaves_the_sequence_alone(how: Restart) -> None:
    driver = Driver()
    fill(driver, 700)
    driver.run(publishes=False)
    driver.publish(2, reports=False)
    driver.submit(FiringDone(2))
    driver.restart(how)
    assert [job.number for job in driver.machine.firing()] == [1]
    fill(driver, 1, first=700)
    driver.run()
    assert driver.fired_offsets == list(range(701))


def test_a_job_keeps_its_limits_and_a_body_beyond_them_goes_alone() -> None:
    driver = Driver()
    small, half, huge = b"s", b"h" * (JOB_BYTES_MAX // 2), b"H" * (JOB_BYTES_MAX + 1)
    new = [NewSchedule(offset, 0, body) for offset, body in enumerate([small, half, half, small, huge, small, half])]
    driver.submit(Schedule(tuple(new)))
    driver.run(publishes=False)
    assert [[due.key.offset for due in job.records] for job in driver.machine.firing()] == [[0, 1], [2, 3], [4], [5, 6]]


def test_a_partition_has_no_more_jobs_at_once_than_it_can_recognise() -> None:
    driver = Driver()
    fill(driver, 5000)
    driver.run(publishes=False)
    assert [len(job.records) for job in driver.machine.firing()] == [500] * UNFINISHED_MAX
    assert driver.machine.next_deadline_ms() is None, "there is nothing to do before one of them is done"
    driver.publish(1)
    driver.run(publishes=False)
    assert len(driver.machine.firing()) == UNFINISHED_MAX
    driver.run()
    assert driver.fired_offsets == list(range(5000))


def test_sequences_count_records_and_wrap_as_the_protocol_wants() -> None:
    driver = Driver()
    driver.machine.apply(TargetKept("t", ID, 0, -1, 2**31 - 2))
    fill(driver, 3)
    driver.run()
    fill(driver, 1, first=3)
    driver.run(publishes=False)
    (job,) = driver.machine.firing()
    assert job.sequence == 1
    assert [sequence for sequence, _ in driver.partition.batches] == [2**31 - 2]


def test_the_records_of_a_job_are_a_sequence() -> None:
    driver = Driver()
    fill(driver, 3)
    driver.tick()
    records = driver.machine.firing()[0].records
    everything = list(records)
    assert [due.key.offset for due in everything] == [0, 1, 2]
    assert [records[place] for place in range(3)] == everything
    assert (records[-1], records[1:]) == (everything[-1], tuple(everything[1:]))
    assert records == driver.machine.firing()[0].records
    assert hash(records) == hash(driver.machine.firing()[0].records)
    with pytest.raises(IndexError):
        records[3]


def test_a_report_that_comes_twice_changes_nothing() -> None:
    driver = Driver()
    fill(driver, 1)
    driver.run()
    end_offset = driver.end_offset
    assert driver.submit(FiringDone(1)).code is Code.NONE
    assert driver.end_offset == end_offset


def test_the_first_producer_stays() -> None:
    driver = Driver()
    assert driver.machine.producer() is None
    driver.submit(TakeProducer(5, 0))
    driver.submit(TakeProducer(6, 0))
    assert driver.machine.producer() == (5, 0)
    for how in RESTARTS:
        driver.restart(how)
        assert driver.machine.producer() == (5, 0)


def test_a_tick_with_nothing_to_do_stores_nothing() -> None:
    driver = Driver()
    driver.schedule(1, 30 * DAY_MS)
    end_offset = driver.end_offset
    driver.advance(29 * DAY_MS)
    assert driver.end_offset == end_offset
    assert driver.machine.decide(Tick(), 1, driver.now_ms).facts == []


def test_what_is_done_leaves_almost_nothing_in_the_ledger() -> None:
    driver = Driver()
    fill(driver, 900)
    driver.schedule(1000, HOUR_MS, producer=(7, 0))
    driver.submit(EndTransactionSchedules(7, 0, True))
    driver.advance(DAY_MS)
    assert len(driver.fired) == 901
    driver.compact(keeps_tombstones=False)
    assert [key[:1] for key, _ in driver.entries.values()] == [b"t"]
