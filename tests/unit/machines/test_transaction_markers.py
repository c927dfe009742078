"""The second phase: markers are due until they are reported, whatever crashes, and reports may come twice or late."""

import pytest

from goqueue.machines.deadlines import Deadlines
from goqueue.machines.machine import Tick
from goqueue.machines.transactions.commands import AddPartitions, MarkersWritten
from goqueue.machines.transactions.facts import State
from goqueue.machines.transactions.machine import TransactionMachine
from tests.unit.machines.transaction_samples import MINUTE_MS, Bench, identity_of, replayed, restored

A, B, C = ("orders", 0), ("orders", 1), ("audit", 0)


def prepared(*, commit: bool = True) -> Bench:
    bench = Bench()
    who = bench.begin()
    bench.ask(AddPartitions("tx", *who, (A, B, C)))
    bench.end(who, commit=commit)
    return bench


def test_what_is_reported_is_no_longer_due() -> None:
    bench = prepared()
    (job,) = bench.machine.markers_due()
    bench.ask(MarkersWritten(*identity_of(job), (B,)))
    assert bench.machine.markers_due() == [job._replace(partitions=(A, C))]
    shown = bench.machine.describe("tx")
    assert shown is not None
    assert shown.partitions == (A, C)
    bench.ask(MarkersWritten(*identity_of(job), (A, B)))
    bench.ask(MarkersWritten(*identity_of(job), (C,)))
    assert bench.known().state is State.COMPLETE_COMMIT


def test_only_the_last_report_is_stored() -> None:
    bench = prepared()
    (job,) = bench.machine.markers_due()
    before = len(bench.ledger.entries)
    for partition in (A, B):
        bench.ask(MarkersWritten(*identity_of(job), (partition,)))
    assert len(bench.ledger.entries) == before
    bench.ask(MarkersWritten(*identity_of(job), (C,)))
    assert len(bench.ledger.entries) == before + 1


@pytest.mark.parametrize("commit", [True, False])
def test_after_a_crash_all_markers_are_due_again_with_the_same_outcome(commit: bool) -> None:
    bench = prepared(commit=commit)
    (job,) = bench.machine.markers_due()
    bench.ask(MarkersWritten(*identity_of(job), (A, B)))
    bench.crash()
    assert bench.machine.markers_due() == [job]


def test_a_report_that_comes_twice_changes_nothing() -> None:
    bench = prepared()
    (job,) = bench.finish()
    done = bench.known()
    bench.ask(MarkersWritten(*identity_of(job), job.partitions))
    assert bench.known() == done


def test_a_late_report_is_not_taken_for_the_next_transaction() -> None:
    bench = prepared()
    (late,) = bench.finish()
    bench.ask(AddPartitions("tx", late.producer_id, late.epoch, (A, B, C)))
    bench.end((late.producer_id, late.epoch), commit=False)
    bench.ask(MarkersWritten(*identity_of(late), late.partitions))
    assert bench.known().state is State.PREPARE_ABORT
    assert len(bench.machine.markers_due()[0].partitions) == 3


def test_a_report_about_an_unknown_id_changes_nothing() -> None:
    bench = prepared()
    due = bench.machine.markers_due()
    bench.ask(MarkersWritten("other", 0, 1, (A,)))
    assert bench.machine.markers_due() == due


def test_jobs_carry_the_epoch_of_their_coordinator_and_come_in_the_order_of_the_decisions() -> None:
    bench = Bench()
    names = ("b", "a", "c")
    for name in names:
        bench.ask(AddPartitions(name, *bench.begin(name), (A,)))
    for name in names[::-1]:
        known = bench.known(name)
        bench.end(known.identity, commit=True, name=name)
    successor = replayed(bench.ledger.entries, coordinator_epoch=4)
    jobs = [(job.transactional_id, job.coordinator_epoch) for job in successor.markers_due()]
    assert jobs == [("c", 4), ("a", 4), ("b", 4)]
    assert [job.transactional_id for job in restored(successor).markers_due()] == ["c", "a", "b"]


@pytest.mark.parametrize("bumps_epoch", [True, False])
def test_whatever_was_stored_when_it_crashed_every_transaction_ends_as_it_was_decided(bumps_epoch: bool) -> None:
    bench = Bench()
    who = bench.begin()
    for commit in (True, False, True):
        bench.ask(AddPartitions("tx", *who, (A,)))
        bench.ask(AddPartitions("tx", *who, (A, B)))
        reply = bench.end(who, commit=commit, bumps_epoch=bumps_epoch)
        bench.finish()
        who = reply.producer_id, reply.epoch
    bench.ask(AddPartitions("tx", *who, (A,)))
    stored = bench.ledger.entries
    states = []
    for length in range(1, len(stored) + 1):
        bench.ledger.entries = stored[:length]
        bench.crash()
        before = bench.known().state
        bench.now_ms += MINUTE_MS
        bench.ask(Tick())
        jobs = bench.finish()
        assert (bench.known().state, [job.commit for job in jobs]) == {
            State.EMPTY: (State.EMPTY, []),
            State.ONGOING: (State.COMPLETE_ABORT, [False]),
            State.PREPARE_COMMIT: (State.COMPLETE_COMMIT, [True]),
            State.PREPARE_ABORT: (State.COMPLETE_ABORT, [False]),
            State.COMPLETE_COMMIT: (State.COMPLETE_COMMIT, []),
            State.COMPLETE_ABORT: (State.COMPLETE_ABORT, []),
        }[before]
        states.append(before)
    assert set(states) == set(State) - {State.DEAD}


def test_an_empty_machine_has_no_facts() -> None:
    assert list(TransactionMachine().facts()) == []


def test_deadlines_that_move_leave_little_behind() -> None:
    deadlines = Deadlines()
    for step in range(10_000):
        deadlines.set(f"tx-{step % 10}", 1_000_000 - step)
    assert len(deadlines._heap) <= 100
    assert deadlines.earliest_ms() == 1_000_000 - 9_999
    assert sorted(deadlines.due(1_000_000, 100)) == [f"tx-{number}" for number in range(10)]
    assert len(deadlines.due(1_000_000, 3)) == 3
    for number in range(10):
        deadlines.clear(f"tx-{number}")
    assert deadlines.due(1_000_000, 100) == []
    assert deadlines.earliest_ms() is None
