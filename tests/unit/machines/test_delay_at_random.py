"""Random schedules, cancels, transactions, clocks and crashes against a dictionary: what fires, and when."""

from collections.abc import Iterable
from contextlib import ExitStack
from typing import NamedTuple
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from goqueue.machines.delays import decisions as delay_decisions
from goqueue.machines.delays import firing as delay_firing
from goqueue.machines.delays import index as delay_index
from goqueue.machines.delays import state as delay_state
from goqueue.machines.delays import target as delay_target
from goqueue.machines.delays import timer_wheel
from goqueue.machines.delays.commands import (
    NO_PRODUCER,
    CancelSchedule,
    EndTransactionSchedules,
    NewSchedule,
    Reschedule,
    Schedule,
    ScheduleKey,
    TakeProducer,
)
from goqueue.machines.delays.timer_wheel import TICK_MS
from goqueue.model.codes import Code
from tests.layers import more_often
from tests.unit.machines.delay_samples import (
    DAY_MS,
    HOUR_MS,
    RESTARTS,
    SECOND_MS,
    Driver,
    Restart,
    described,
)

PRODUCERS = (70, 71)
WALKS = 200

# So small that a few schedules are many.
LIMITS = {
    (delay_decisions, "REMOVALS_PER_TICK_MAX"): 3,
    (delay_decisions, "DOOMED_MAX"): 2,
    (delay_firing, "JOB_RECORDS_MAX"): 2,
    (delay_firing, "JOB_BYTES_MAX"): 8,
    (delay_index, "_DEAD_MIN"): 1,
    (delay_index, "_STRAYS_MIN"): 1,
    (delay_state, "PACKED_MAX"): 2,
    (delay_target, "_STALE_MIN"): 1,
    (timer_wheel, "_STALE_MIN"): 1,
}

# Around every border of the wheel, and the borders of its levels from both sides.
BORDERS = [0, TICK_MS, 2560, 163_840, 10_485_760, 671_088_640, 400 * DAY_MS]
delays = st.one_of(
    st.integers(-50, 50),
    st.integers(0, 10 * SECOND_MS),
    st.builds(lambda border, more: border + more, st.sampled_from(BORDERS), st.integers(-11, 11)),
    st.integers(0, 9 * DAY_MS),
)
passing = st.one_of(
    st.integers(0, 30), st.integers(0, 5 * SECOND_MS), st.sampled_from([HOUR_MS, 3 * DAY_MS, 8 * DAY_MS, 401 * DAY_MS])
)


class Pending(NamedTuple):
    due_ms: int
    body: bytes
    producer_id: int
    since_ms: int
    """When it began to wait: from then on it may be late."""


class Model(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.limits = ExitStack()
        for (module, name), value in LIMITS.items():
            self.limits.enter_context(patch.object(module, name, value))
        self.driver = Driver()
        self.pending: dict[ScheduleKey, Pending] = {}
        self.gone: set[ScheduleKey] = set()
        self.next_offset = -1
        self.checked = 0
        self.commands: list[Schedule] = []

    @initialize()
    def begin(self) -> None:
        assert self.driver.submit(TakeProducer(9, 0)).code is Code.NONE
        assert self.driver.submit(TakeProducer(10, 1)).code is Code.NONE

    # What users do

    @rule(
        wishes=st.lists(st.tuples(st.integers(1, 3), delays), min_size=1, max_size=5),
        producer=st.one_of(st.just(NO_PRODUCER), st.sampled_from(PRODUCERS)),
    )
    def schedule(self, wishes: list[tuple[int, int]], producer: int) -> None:
        new = []
        now_ms = self.driver.now_ms
        for skipped, delay_ms in wishes:
            offset = self.next_offset = self.next_offset + skipped
            body = f"b{offset}".encode()
            new.append(NewSchedule(offset, now_ms + delay_ms, body))
            self.pending[ScheduleKey("t", 0, offset)] = Pending(now_ms + delay_ms, body, producer, now_ms)
        epoch = -1 if producer == NO_PRODUCER else 0
        command = Schedule(tuple(new), producer, epoch)
        assert self.driver.submit(command).code is Code.NONE
        self.commands.append(command)

    @rule(chosen=st.integers(0, 1 << 20))
    def repeat(self, chosen: int) -> None:
        """What was scheduled once is not again, even after it fired or was cancelled."""
        if self.commands:
            before = described(self.driver.machine)
            assert self.driver.submit(self.commands[chosen % len(self.commands)]).code is Code.NONE
            assert described(self.driver.machine) == before

    @rule(chosen=st.integers(0, 1 << 20))
    def cancel(self, chosen: int) -> None:
        firing = self.firing()
        for key in self.some(self.pending, chosen):
            reply = self.driver.submit(CancelSchedule(key.offset))
            assert (reply.code is Code.NONE) == (key not in firing), reply
            if reply.code is Code.NONE:
                del self.pending[key]
                self.gone.add(key)
            assert self.driver.submit(CancelSchedule(key.offset)).code is Code.INVALID_REQUEST

    @rule(chosen=st.integers(0, 1 << 20))
    def cancel_what_is_gone(self, chosen: int) -> None:
        for key in self.some(self.gone, chosen):
            assert self.driver.submit(CancelSchedule(key.offset)).code is Code.INVALID_REQUEST

    @rule(chosen=st.integers(0, 1 << 20), delay_ms=delays)
    def reschedule(self, chosen: int, delay_ms: int) -> None:
        firing = self.firing()
        for key in self.some(self.pending, chosen):
            was = self.pending[key]
            due_ms = self.driver.now_ms + delay_ms
            reply = self.driver.submit(Reschedule(key.offset, due_ms, was.body))
            assert (reply.code is Code.NONE) == (key not in firing), reply
            if reply.code is Code.NONE:
                self.pending[key] = was._replace(due_ms=due_ms, since_ms=self.driver.now_ms)

    @rule(
        producer=st.sampled_from(PRODUCERS),
        is_commit=st.booleans(),
        is_fenced=st.booleans(),
    )
    def end_transaction(self, producer: int, is_commit: bool, is_fenced: bool) -> None:
        command = EndTransactionSchedules(producer, int(is_fenced), is_commit)
        assert self.driver.submit(command).code is Code.NONE
        for key, each in list(self.pending.items()):
            if each.producer_id == producer:
                if is_commit:
                    self.pending[key] = each._replace(producer_id=NO_PRODUCER, since_ms=self.driver.now_ms)
                else:
                    del self.pending[key]
                    self.gone.add(key)

    # What time and the broker do

    @rule(ms=passing)
    def advance(self, ms: int) -> None:
        """While the broker publishes at once, nothing is more than a tick late."""
        self.driver.run()
        self.note_fired()
        start_ms, before = self.driver.now_ms, len(self.driver.fired)
        self.driver.advance(ms)
        for due, fired_ms in self.driver.fired[before:]:
            assert fired_ms < max(due.due_ms, start_ms) + TICK_MS, "late"
        self.note_fired()

    @rule(ms=passing)
    def advance_without_a_broker(self, ms: int) -> None:
        self.driver.advance(ms, publishes=False)

    @rule(ms=passing)
    def jump(self, ms: int) -> None:
        """The clock is set forward: all that is due then fires, in the order of due times."""
        self.driver.run()
        self.note_fired()
        before = len(self.driver.fired)
        self.driver.jump(ms)
        order = [(due.due_ms, due.key.offset) for due, _ in self.driver.fired[before:]]
        assert order == sorted(order)
        self.note_fired()

    @rule(ms=st.sampled_from([7, 500, HOUR_MS]))
    def set_clock_back(self, ms: int) -> None:
        self.driver.run()
        self.note_fired()
        self.driver.now_ms -= ms

    @rule(count=st.integers(1, 3), reports=st.booleans())
    def publish(self, count: int, reports: bool) -> None:
        self.driver.publish(count, reports=reports)
        self.note_fired()

    @rule()
    def snapshot(self) -> None:
        self.driver.take_snapshot()

    @rule(how=st.sampled_from(RESTARTS))
    def restart(self, how: Restart) -> None:
        """Restart changes nothing."""
        before = described(self.driver.machine)
        self.driver.restart(how)
        assert described(self.driver.machine) == before

    # What must hold

    def some(self, keys: Iterable[ScheduleKey], chosen: int) -> list[ScheduleKey]:
        found = sorted(keys)
        return [found[chosen % len(found)]] if found else []

    def firing(self) -> set[ScheduleKey]:
        return {due.key for job in self.driver.machine.firing() for due in job.records}

    def note_fired(self) -> None:
        """Exactly once, never early, at most a tick late, and only what was neither cancelled nor aborted."""
        for due, fired_ms in self.driver.fired[self.checked :]:
            was = self.pending.pop(due.key)
            assert was.producer_id == NO_PRODUCER
            assert was.due_ms == due.due_ms
            assert fired_ms >= was.due_ms, "early"
            self.gone.add(due.key)
        self.checked = len(self.driver.fired)

    @invariant()
    def the_machine_knows_what_waits(self) -> None:
        machine = self.driver.machine
        firing = self.firing() - self.gone
        found = {each.key: each for each in machine.walk()}
        assert set(found) == set(self.pending) - firing
        for key, each in found.items():
            assert machine.find(key.offset) == each
            was = self.pending[key]
            assert (each.due_ms, each.body_bytes) == (was.due_ms, len(was.body))
            assert each.waits_for_transaction == (was.producer_id != NO_PRODUCER)
        waiting = sum(each.producer_id != NO_PRODUCER for each in self.pending.values())
        measure = machine.measure()
        assert measure.waiting_for_transaction == waiting
        assert measure.pending == sum(measure.by_level) == len(found) - waiting
        timed = [each.due_ms for each in found.values() if not each.waits_for_transaction]
        assert measure.next_due_ms == min(timed, default=-1)
        assert machine.known_place()[1] == self.next_offset
        assert machine.producer() in {(9, 0), None}

    @invariant()
    def nobody_waits_longer_than_a_tick(self) -> None:
        """The machine asks for a tick in time."""
        machine, firing = self.driver.machine, self.firing()
        timed = [
            max(each.due_ms, each.since_ms)
            for key, each in self.pending.items()
            if each.producer_id == NO_PRODUCER and key not in firing and not machine.firing()
        ]
        deadline = machine.next_deadline_ms()
        if timed:
            assert deadline is not None
            assert deadline < min(timed) + TICK_MS

    def teardown(self) -> None:
        """In the end all that waits for its time has fired, and nothing else."""
        self.limits.close()
        self.driver.advance(500 * DAY_MS)
        self.note_fired()
        assert all(each.producer_id != NO_PRODUCER for each in self.pending.values())
        published = [due.key.offset for _, records in self.driver.partition.batches for due in records]
        assert len(published) == len(set(published)), "twice"
        assert not self.driver.machine.firing()
        assert not self.driver.machine._state.target.is_doomed


TestDelaysAtRandom = Model.TestCase
TestDelaysAtRandom.settings = settings(max_examples=WALKS // 3, stateful_step_count=40, deadline=None)
TestDelaysMoreOften = more_often(Model, settings(max_examples=WALKS, stateful_step_count=40, deadline=None))
