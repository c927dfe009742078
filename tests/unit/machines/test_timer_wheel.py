"""A timer is never early, less than a tick late, and a dropped one never fires, whatever the clock does."""

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.machines.delays import timer_wheel
from goqueue.machines.delays.slots import FREE, Slots
from goqueue.machines.delays.timer_wheel import SHIFTS, TICK_MS, TURN_SHIFT, TimerWheel
from tests.unit.machines.delay_samples import DAY_MS, HOUR_MS, NOW_MS

YEAR_MS = 365 * DAY_MS
BORDERS_MS = [TICK_MS << shift for shift in (*SHIFTS, TURN_SHIFT)]


class Clock:
    """A wheel and the hand that turns it."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.slots = Slots()
        self.wheel = TimerWheel(self.slots)
        self.now_ms = now_ms
        self.fired: list[tuple[int, int, int]] = []
        """Slot, due time, time of firing."""

    def set(self, delay_ms: int) -> int:
        slot = self.slots.take(0, self.now_ms + delay_ms, 0)
        self.wheel.add(slot)
        return slot

    def drop(self, slot: int) -> None:
        self.wheel.remove(slot)
        self.slots.give_back(slot)

    def tick(self) -> None:
        drained = self.wheel.collect(self.now_ms)
        if drained is None:
            return
        again = self.wheel.collect(self.now_ms)
        assert again == drained, "collect only reads"
        self.wheel.commit(drained)
        assert len(drained.due) == len(set(drained.due))
        for slot in drained.due:
            self.fired.append((slot, self.slots.due_ms[slot], self.now_ms))
            self.slots.give_back(slot)

    def advance(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while (deadline := self.wheel.next_deadline_ms()) is not None and deadline <= end_ms:
            self.now_ms = max(self.now_ms, deadline)
            self.tick()
        self.now_ms = end_ms


def running(now_ms: int = NOW_MS) -> Clock:
    """One that has been told the time."""
    clock = Clock(now_ms)
    clock.set(0)
    clock.advance(TICK_MS)
    clock.fired.clear()
    return clock


def lateness(clock: Clock) -> list[int]:
    return [fired_ms - due_ms for _, due_ms, fired_ms in clock.fired]


@pytest.mark.parametrize("delay_ms", [1, 9, 10, 11, 2559, 2560, 163_841, HOUR_MS, 10_485_760, 7 * DAY_MS, 3 * YEAR_MS])
@pytest.mark.parametrize("now_ms", [NOW_MS, NOW_MS - NOW_MS % BORDERS_MS[-1] - 1, NOW_MS - NOW_MS % BORDERS_MS[-1]])
def test_a_timer_fires_at_its_time_however_far_it_is(now_ms: int, delay_ms: int) -> None:
    clock = running(now_ms - TICK_MS)
    clock.set(delay_ms)
    clock.advance(delay_ms - 1)
    assert clock.fired == []
    clock.advance(TICK_MS)
    (late,) = lateness(clock)
    assert 0 <= late < TICK_MS
    assert clock.wheel.next_deadline_ms() is None


def test_delays_below_a_tick_fire_on_the_next_one_and_not_a_turn_later() -> None:
    clock = running()
    for delay_ms in range(TICK_MS):
        clock.set(delay_ms)
    clock.advance(2 * TICK_MS)
    assert len(clock.fired) == TICK_MS
    assert all(0 <= late < TICK_MS for late in lateness(clock))


def test_timers_that_are_past_due_at_a_restart_fire_at_once() -> None:
    clock = Clock()
    slots = [clock.set(-delay_ms) for delay_ms in (5, HOUR_MS, YEAR_MS)]
    assert clock.wheel.next_deadline_ms() == 0
    clock.tick()
    assert {slot for slot, _, _ in clock.fired} == set(slots)


def test_whatever_is_dropped_meanwhile_every_other_timer_fires_in_time() -> None:
    """Between the walk over a bucket and its end, as the worst case: the drop comes after `collect`."""
    clock = Clock()
    slots = [clock.set(100) for _ in range(10)]
    clock.advance(50)
    clock.now_ms += 60
    drained = clock.wheel.collect(clock.now_ms)
    assert drained is not None
    clock.drop(slots[3])
    clock.tick()
    assert {slot for slot, _, _ in clock.fired} == set(slots) - {slots[3]}


@pytest.mark.parametrize("delay_ms", [15, 3000, HOUR_MS, 5 * HOUR_MS, YEAR_MS])
def test_a_dropped_timer_never_fires_and_its_slot_serves_another_time(delay_ms: int) -> None:
    clock = running()
    first = clock.set(delay_ms)
    clock.drop(first)
    other = clock.set(delay_ms + 10 * HOUR_MS)
    assert other == first, "the slot is used again: what is left of it in the old bucket must not count"
    clock.advance(delay_ms + HOUR_MS)
    assert clock.fired == []
    clock.advance(9 * HOUR_MS + TICK_MS)
    assert [slot for slot, _, _ in clock.fired] == [other]


def test_a_slot_that_is_used_again_for_the_same_bucket_fires_once() -> None:
    clock = Clock()
    for _ in range(5):
        clock.drop(clock.set(100))
    clock.set(100)
    clock.advance(200)
    assert len(clock.fired) == 1


def test_a_bucket_whose_tick_has_come_is_due_as_a_whole() -> None:
    """A clock that shows the very first moment of the tick must not make anything wait for another turn."""
    clock = Clock(NOW_MS - NOW_MS % TICK_MS)
    for delay_ms in range(1, TICK_MS + 1):
        clock.set(delay_ms)
    clock.tick()
    clock.now_ms += TICK_MS
    clock.tick()
    assert len(clock.fired) == TICK_MS


def test_a_clock_that_jumps_three_days_finds_everything_due_and_nothing_else() -> None:
    clock = running()
    due = {clock.set(hours * HOUR_MS) for hours in range(72)}
    for hours in range(73, 400):
        clock.set(hours * HOUR_MS)
    clock.now_ms += 3 * DAY_MS
    clock.tick()
    assert {slot for slot, _, _ in clock.fired} == due
    assert len(clock.wheel) == 327
    clock.advance(400 * HOUR_MS)
    assert all(0 <= late < TICK_MS for late in lateness(clock)[72:])


def test_a_clock_that_is_set_back_loses_nothing_and_fires_nothing_early() -> None:
    clock = Clock()
    clock.set(2 * HOUR_MS)
    clock.advance(HOUR_MS)
    clock.set(10)
    clock.advance(20)
    assert len(clock.fired) == 1
    clock.now_ms -= HOUR_MS
    soon, gone = clock.set(10_000), clock.set(10_000)
    clock.drop(gone)
    clock.advance(9_999)
    assert len(clock.fired) == 1
    clock.advance(TICK_MS)
    assert [slot for slot, _, _ in clock.fired[1:]] == [soon]
    clock.advance(2 * HOUR_MS)
    assert all(0 <= late < TICK_MS for late in lateness(clock))
    assert len(clock.fired) == 3


def test_a_clock_that_is_set_back_does_not_turn_the_wheel_back() -> None:
    """What lies in the wheel was placed by the time that it had reached; it must be found there again."""
    clock = running()
    timers = [clock.set(HOUR_MS + delay_ms) for delay_ms in (100, 3000, 300_000, 5 * HOUR_MS)]
    clock.advance(HOUR_MS)
    clock.now_ms -= HOUR_MS
    clock.set(50)
    clock.advance(60)
    for slot in timers[::2]:
        clock.drop(slot)
    clock.advance(10 * HOUR_MS)
    assert [slot for slot, _, _ in clock.fired][1:] == timers[1::2]
    assert all(0 <= late < TICK_MS for late in lateness(clock))


def test_after_the_clock_was_set_back_a_slot_may_serve_another_time_too() -> None:
    clock = running()
    clock.set(HOUR_MS)
    clock.advance(HOUR_MS + TICK_MS)
    clock.now_ms -= HOUR_MS
    clock.fired.clear()
    first = clock.set(1000)
    clock.drop(first)
    assert clock.set(5000) == first
    clock.advance(2000)
    assert clock.fired == []
    clock.advance(4000)
    assert [slot for slot, _, _ in clock.fired] == [first]


def test_what_was_dropped_does_not_pile_up() -> None:
    """A million timers that are set and dropped leave a few."""
    clock = Clock()
    clock.set(DAY_MS)
    for delay_ms in (20, 3000, HOUR_MS, YEAR_MS):
        for _ in range(1000):
            clock.drop(clock.set(delay_ms))
    left = sum(len(bucket) for level in clock.wheel._levels for bucket in level.buckets.values())
    assert left <= 4 * (timer_wheel._STALE_MIN + 2)
    assert len(clock.wheel) == 1


def test_the_next_deadline_is_found_without_looking_at_timers() -> None:
    clock = Clock()
    for number in range(20_000):
        clock.set(DAY_MS + number)
    clock.tick()
    with patch.object(clock.wheel, "_slots", None):
        deadline = clock.wheel.next_deadline_ms()
    assert deadline is not None
    assert clock.now_ms < deadline <= clock.now_ms + DAY_MS


def test_levels_are_those_of_the_plan() -> None:
    assert [TICK_MS << shift for shift in SHIFTS] == [5, 2560, 163_840, 10_485_760]
    clock = running(NOW_MS - NOW_MS % BORDERS_MS[-1])
    for delay_ms in (100, 10_000, HOUR_MS, 6 * HOUR_MS, 8 * DAY_MS, YEAR_MS):
        clock.set(delay_ms)
    assert clock.wheel.by_level() == (1, 1, 1, 1, 2)
    assert clock.wheel.earliest_due_ms() == clock.now_ms + 100


def test_the_earliest_of_very_many_in_one_coarse_bucket_is_told_by_its_beginning() -> None:
    clock = running()
    for _ in range(timer_wheel._EXACT_MAX + 1):
        clock.set(30 * DAY_MS)
    earliest = clock.wheel.earliest_due_ms()
    assert earliest is not None
    assert clock.now_ms + 30 * DAY_MS - BORDERS_MS[3] <= earliest <= clock.now_ms + 30 * DAY_MS


delays = st.one_of(
    st.integers(-20, 100),
    st.integers(0, 20_000),
    st.builds(lambda border, more: border + more, st.sampled_from(BORDERS_MS), st.integers(-12, 12)),
    st.integers(0, 30 * DAY_MS),
)
steps = st.one_of(
    st.tuples(st.just("set"), delays),
    st.tuples(st.just("drop"), st.integers(0, 1 << 20)),
    st.tuples(st.just("advance"), st.one_of(st.integers(0, 3000), st.sampled_from(BORDERS_MS))),
    st.tuples(st.just("jump"), st.one_of(st.integers(-3000, 3000), st.sampled_from([*BORDERS_MS, -HOUR_MS]))),
)


@given(st.lists(steps, max_size=60))
@settings(max_examples=300)
def test_it_does_what_a_table_of_due_times_would_do(walk: list[tuple[str, int]]) -> None:
    with patch.object(timer_wheel, "_STALE_MIN", 1):
        clock = Clock()
        pending: dict[int, int] = {}
        for step, number in walk:
            match step:
                case "set":
                    pending[clock.set(number)] = clock.now_ms + number
                case "drop" if pending:
                    slot = sorted(pending)[number % len(pending)]
                    del pending[slot]
                    clock.drop(slot)
                case "advance":
                    start_ms = clock.now_ms
                    clock.advance(number)
                    for slot, due_ms, fired_ms in clock.fired:
                        assert max(due_ms, start_ms) <= fired_ms < max(due_ms, start_ms) + TICK_MS
                        assert pending.pop(slot) == due_ms
                    clock.fired.clear()
                case "jump":
                    clock.now_ms += number
                    clock.tick()
                    for slot, due_ms, fired_ms in clock.fired:
                        assert due_ms <= fired_ms
                        assert pending.pop(slot) == due_ms
                    clock.fired.clear()
            assert len(clock.wheel) == len(pending) == sum(clock.wheel.by_level())
            assert clock.wheel.earliest_due_ms() == min(pending.values(), default=None)
            deadline = clock.wheel.next_deadline_ms()
            assert (deadline is None) <= (not pending)
            assert not pending or deadline < min(pending.values()) + TICK_MS  # type: ignore[operator]
        assert all(clock.slots.state[slot] != FREE for slot in pending)
