"""Consumers that take, settle, forget and come late, over virtual time and crashes: compared with a naive model."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from goqueue.machines.deliveries.commands import (
    NEVER,
    NO_KEY,
    NO_LEASE,
    OLD_LEASE,
    How,
    LeaseReply,
    Policy,
    Replay,
    ReplayReply,
    Seek,
    SetPolicy,
    Settlement,
    Span,
    Verdict,
)
from goqueue.machines.deliveries.window import DEAD, GAP, LEASED, READY, SETTLED, WAITING
from goqueue.model.codes import Code
from tests.layers import more_often
from tests.unit.machines.delivery_driver import PLACE, Driver, offsets_of
from tests.unit.machines.delivery_model import Known, Model
from tests.unit.machines.fair_model import SENDERS, FairModel

RECORDS_MAX = 300
CONSUMERS = ("ann", "bob", "cleo")
STORE_FAILS = 0.2
WAYS = ("whole", "compacted", "snapshot")
seeds = st.integers(0, 2**32)


class Given(msgspec.Struct):
    """A lease as its consumer remembers it."""

    reply: LeaseReply
    consumer: str
    is_old: bool = False


class DeliveriesAtRandom(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.given: list[Given] = []
        self.log_start = 0
        self.dice = Random(0)
        self.often: list[Callable[[], None]] = [
            self.publish,
            self.observe,
            self.lease,
            self.lease,
            self.lease,
            self.settle,
            self.settle,
            self.settle,
            self.settle_all_of_a_lease,
            self.wait,
        ]
        self.seldom: list[Callable[[], None]] = [
            self.delete_old_segments,
            self.settle_as_owner,
            self.restart,
            self.write_dead_letters,
            self.seek,
            self.replay,
            self.change_the_order,
            self.change_fairness,
        ]

    @initialize(
        by_key=st.booleans(),
        keeps_expired=st.booleans(),
        attempts_max=st.integers(1, 4),
        is_direct=st.booleans(),
        fair_by=st.sampled_from(["none", "header"]),
    )
    def begin(self, by_key: bool, keeps_expired: bool, attempts_max: int, is_direct: bool, fair_by: str) -> None:
        policy = Policy(
            lease_ms=100,
            attempts_max=attempts_max,
            unacked_max=30,
            backoff_ms=20,
            backoff_ms_max=60,
            orders_by_key=by_key,
            keeps_expired=keeps_expired,
            lane_boost_ms=500,
            fair_by=fair_by,
        )
        self.fair = FairModel()
        self.driver = Driver(policy)
        self.driver.is_direct = is_direct
        self.driver.fails = lambda: self.dice.random() < STORE_FAILS
        self.model = Model(policy)
        self.model.now_ms = self.driver.now_ms

    @rule(seed=seeds, steps=st.integers(1, 20), trouble=st.sampled_from([0, 0, 0.05, 0.2]))
    def go_on(self, seed: int, steps: int, trouble: float) -> None:
        self.dice = Random(seed)
        for _ in range(steps):
            step = self.dice.choice(self.seldom if self.dice.random() < trouble else self.often)
            try:
                step()
                self.check()
            except (AssertionError, KeyError, IndexError) as mistake:
                raise AssertionError(f"{step.__name__} in go_on({seed=}, {steps=})") from mistake

    @rule(number=st.integers(0, 7), seed=seeds)
    def get_into_trouble(self, number: int, seed: int) -> None:
        self.dice = Random(seed)
        self.seldom[number]()
        self.check()

    # The log

    def publish(self) -> None:
        count, lane, key = self.dice.randint(1, 40), self.dice.randrange(5), self.dice.randrange(4)
        ttl_ms = self.dice.choice([NEVER, NEVER, NEVER, 0, 50, 300])
        is_visible = self.dice.random() < 0.8
        senders = self.dice.choice([(0,), (0,), (1,), (2, 2, 3), range(SENDERS)])
        if len(self.model.log) + count > RECORDS_MAX:
            return
        expires_at_ms = NEVER if ttl_ms == NEVER else self.driver.now_ms + ttl_ms
        for _ in range(count):
            offset = len(self.model.log)
            sender = self.dice.choice(senders)
            span = Span(offset, offset, lane, expires_at_ms, key and key + offset % 3, is_visible, sender)
            self.model.log.append(Known(span, "open" if is_visible else "settled"))

    def _spans(self, first: int, last: int) -> tuple[Span, ...]:
        """As the broker tells them: neighbours that are alike are one, keys only where they matter."""
        spans: list[Span] = []
        for known in self.model.log[first : last + 1]:
            span = known.span if self.model.policy.orders_by_key else known.span._replace(key_hash=NO_KEY)
            span = span if self.model.policy.fair_by != "none" else span._replace(sender=0)
            if spans and spans[-1][2:] == span[2:]:
                spans[-1] = spans[-1]._replace(last=span.last)
            else:
                spans.append(span)
        return tuple(spans)

    def observe(self) -> None:
        self._observe(self.dice.choice([1, 7, 50, RECORDS_MAX]))

    def _observe(self, count: int) -> None:
        machine = self.driver.machine
        begin = max(machine.observed_end(PLACE), self.log_start)
        end = min(begin + count, len(self.model.log))
        if begin < end:
            self._tell(begin, end - 1)
        for window, observed, limit in machine.replays(PLACE):
            first, last = max(observed, self.log_start), min(observed + count, limit) - 1
            if first <= last:
                self._tell(first, last, window)
        self._look()

    def _tell(self, first: int, last: int, window: int = 0) -> None:
        for known in self.model.log[: self.log_start]:
            if known.state == "open":
                known.state, known.lease = "settled", 0
        self.driver.observe(*self._spans(first, last), window=window, log_start=self.log_start)

    def delete_old_segments(self) -> None:
        """What retention removed is settled."""
        self.log_start = self.dice.randint(self.log_start, min(self.log_start + 30, len(self.model.log)))
        begin = max(self.driver.machine.observed_end(PLACE), self.log_start)
        if begin < len(self.model.log):
            self._tell(begin, begin)
        self._look()

    def _look(self) -> None:
        """How far windows have come, and what time did meanwhile."""
        delivery = self.driver.delivery()
        self.model.ends = {window.number: window.end for window in delivery.windows()}
        self.model.bases = {window.number: window.base for window in delivery.windows()}
        self.model.pass_time(self.driver.now_ms)

    # Consumers

    def lease(self) -> None:
        consumer, count = self.dice.choice(CONSUMERS), self.dice.choice([1, 2, 5, 20, 100])
        lease_ms = self.dice.choice([None, None, 10, 300])
        before = self.model.deliverable()
        room = min(count, self.model.room(consumer))
        reply = self.driver.lease(count, consumer, lease_ms)
        offsets = offsets_of(reply.runs)
        assert len(set(offsets)) == len(offsets)
        assert set(offsets) <= set(before)
        if not self.model.policy.orders_by_key or len(self.model.ends) == 1:
            assert len(offsets) == min(room, len(before))
        assert bool(offsets) == bool(room > 0 and before)
        if self.model.policy.fair_by != "none" and len(self.model.ends) == 1:
            self.fair.check(self.model.log, before, offsets, self.model.policy.orders_by_key)
        self.fair.touched.update(offsets)
        self.model.leased(reply.runs, reply.lease, consumer, reply.deadline_ms)
        if offsets:
            self.given.append(Given(reply, consumer))
            del self.given[:-12]

    def settle(self) -> None:
        if not self.given:
            return
        given, how = self.dice.choice(self.given), self.dice.choice(list(How))
        count, by_name = self.dice.choice([1, 1, 1, 2, 4]), self.dice.random() < 0.3
        consumer = given.consumer if by_name and not given.is_old else None
        settlements = [self._draw(given, how) for _ in range(count)]
        verdicts = self.driver.settle_all(*settlements, consumer=consumer)
        taken: set[int] = set()
        for settlement, verdict in zip(settlements, verdicts):
            offsets = set(range(settlement.first, settlement.last + 1))
            if taken & offsets:
                assert verdict is Verdict.REPEATED
                continue
            assert verdict is self.model.judge(settlement, consumer)
            if verdict is Verdict.DONE:
                taken |= offsets
                self.model.settle(settlement, consumer)
        self.driver.advance()
        self._look()

    def _draw(self, given: Given, how: How) -> Settlement:
        run = self.dice.choice(runs := given.reply.runs)
        last_run = run if given.is_old else self.dice.choice([run, run, *runs])
        if last_run.last < run.first or given.reply.lease < max(self.model.forgot_below.values(), default=0):
            last_run = run  # what lies between the runs of a lease is not known any more, once the lease is forgotten
        first = self.dice.randint(run.first, run.last)
        last = self.dice.randint(max(first, last_run.first), last_run.last)
        delay_ms = self.dice.choice([-1, 0, 30, 200])
        if how is How.EXTEND:
            delay_ms = max(delay_ms, 0)
        return Settlement(first, last, how, delay_ms, "why", OLD_LEASE if given.is_old else given.reply.lease)

    def settle_all_of_a_lease(self) -> None:
        """What good consumers do, so that windows move on at all."""
        if not self.given:
            return
        given = self.dice.choice(self.given)
        lease = OLD_LEASE if given.is_old else given.reply.lease
        settlements = [Settlement(run.first, run.last, lease=lease) for run in given.reply.runs]
        verdicts = self.driver.settle_all(*settlements)
        for settlement, verdict in zip(settlements, verdicts):
            assert verdict is self.model.judge(settlement, None)
            if verdict is Verdict.DONE:
                self.model.settle(settlement, None)
        self._look()

    def settle_as_owner(self) -> None:
        low, high = self.model.bases[0], self.model.ends[0]
        if low == high:
            return
        first = self.dice.randint(low, high - 1)
        settlement = Settlement(first, self.dice.randint(first, min(first + 5, high - 1)), lease=NO_LEASE)
        (verdict,) = self.driver.settle_all(settlement)
        assert verdict is self.model.judge(settlement, None)
        if verdict is Verdict.DONE:
            self.model.settle(settlement, None)
        self.driver.advance()
        self._look()

    # Time and trouble

    def wait(self) -> None:
        self._wait(self.dice.choice([1, 5, 20, 60, 100, 400]))

    def _wait(self, ms: int) -> None:
        self.driver.advance(ms)
        self._look()

    def restart(self) -> None:
        self.driver.restart(self.dice.choice(WAYS))
        self.fair.forget()
        self.model.restarted()
        for given in self.given:
            given.is_old = True
        self._look()

    def write_dead_letters(self) -> None:
        for letter in self.driver.write_letters():
            self.model.log[letter.offset].state = "settled"
        self.driver.advance()
        self._look()

    def seek(self) -> None:
        offset = self.dice.randint(self.log_start, len(self.model.log))
        assert self.driver.ask(Seek(PLACE, offset)) is Code.NONE
        self.fair.forget()
        self.model.seek(offset)
        self.driver.advance()
        self._look()

    def replay(self) -> None:
        size = len(self.model.log)
        if self.log_start >= size:
            return
        first = self.dice.randint(self.log_start, size - 1)
        some = [known for known in self.model.log[first : first + 40] if known.span.is_visible and known.offset % 7 < 4]
        chosen = tuple((known.offset, known.offset) for known in some)
        wanted = [known for known in some if known.state == "settled"]
        reply = self.driver.ask(Replay(PLACE, first, size, chosen))
        assert isinstance(reply, ReplayReply)
        if reply.code is Code.NONE:
            assert reply.records == len(wanted)
            for known in wanted:
                known.reopen(reply.window)
            if wanted:
                self.model.new_windows.add(reply.window)
        else:
            assert len(self.driver.machine.replays(PLACE)) == 16
        self._look()

    def change_the_order(self) -> None:
        """Keys have to be seen anew; leases are forgotten as if by a restart."""
        self._change_policy(orders_by_key=not self.model.policy.orders_by_key)

    def change_fairness(self) -> None:
        """Senders, likewise."""
        self._change_policy(fair_by="none" if self.model.policy.fair_by != "none" else "header")

    def _change_policy(self, **changes: Any) -> None:
        policy = msgspec.structs.replace(self.model.policy, **changes)
        self.driver.policy = policy
        self.fair.forget()
        assert self.driver.ask(SetPolicy(PLACE, policy)) is Code.NONE
        self.model.reordered(policy, self.driver.machine._state.leases.next_number)
        self.driver.advance()
        self._look()

    # What must hold

    def check(self) -> None:
        """Every record is where it should be."""
        self.driver.check()
        delivery = self.driver.delivery()
        ready = self.model.ready()
        for known in self.model.log:
            window = delivery.window(known.window if known.state == "open" else 0)
            if window is None or not window.base <= known.offset < window.end:
                continue
            kind = window.kind_at(known.offset)
            assert self._is_right(known, kind, known.offset in ready), (known, kind, window.number)
            if known.state == "open":
                assert window.attempts[known.offset - window.base] == known.attempts, known
        dead = {known.offset: known.reason for known in self.model.log if known.state == "dead"}
        assert {letter.offset: letter.reason for letter in self.driver.machine.dead_due(PLACE)} == dead

    def _is_right(self, known: Known, kind: int, is_ready: bool) -> bool:
        match known.state:
            case "settled":
                return kind in (SETTLED, GAP)
            case "dead":
                return DEAD <= kind < SETTLED or known.window != 0 or known.offset < self.driver.delivery().own.start
        if known.lease:
            return LEASED <= kind < WAITING
        if is_ready:
            return READY <= kind < LEASED
        return WAITING <= kind < DEAD

    def teardown(self) -> None:
        """Whatever was published is delivered in the end, or dies."""
        if not hasattr(self, "driver"):
            return
        for _ in range(RECORDS_MAX):
            self._observe(RECORDS_MAX)
            self.write_dead_letters()
            if all(known.state == "settled" for known in self.model.log[self.log_start :]):
                break
            consumer = "drain"
            before: Any = self.model.deliverable()
            reply = self.driver.lease(RECORDS_MAX, consumer)
            assert bool(reply.runs) == bool(before)
            self.model.leased(reply.runs, reply.lease, consumer, reply.deadline_ms)
            for run in reply.runs:
                assert self.driver.settle(reply.lease, run.first, run.last) is Verdict.DONE
                self.model.settle(Settlement(run.first, run.last, lease=reply.lease), None)
            self._wait(100)
        assert [known for known in self.model.log[self.log_start :] if known.state != "settled"] == []


TestDeliveriesAtRandom = DeliveriesAtRandom.TestCase
TestDeliveriesAtRandom.settings = settings(max_examples=15, stateful_step_count=20)
TestDeliveriesMoreOften = more_often(DeliveriesAtRandom, settings(max_examples=40, stateful_step_count=20))


def test_a_reject_in_a_replay_is_repeated_while_the_log_is_observed_again() -> None:  # was found at random
    state = DeliveriesAtRandom()
    state.begin(by_key=False, keeps_expired=False, attempts_max=2, is_direct=False, fair_by="none")
    state.go_on(seed=237, steps=19, trouble=0)
    state.get_into_trouble(number=5, seed=0)
    state.go_on(seed=254230951, steps=6, trouble=0)
    state.get_into_trouble(number=6, seed=0)
    state.go_on(seed=652049, steps=16, trouble=0)
    state.teardown()
