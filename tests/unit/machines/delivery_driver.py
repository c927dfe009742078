"""Plays the coordinator of deliveries: a ledger in memory, a clock that is told, decisions that only read."""

from array import array
from collections import deque
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

import msgspec

from goqueue.machines.deliveries.commands import (
    BACKOFF,
    DeadLetter,
    DeadLettersWritten,
    How,
    Lease,
    LeasedRun,
    LeaseReply,
    Measure,
    Observe,
    OpenDelivery,
    Place,
    Policy,
    Settle,
    Settlement,
    SettleReply,
    Span,
    Verdict,
)
from goqueue.machines.deliveries.direct import are_apart
from goqueue.machines.deliveries.facts import DELIVERY_FACTS
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.machines.deliveries.place import Delivery
from goqueue.machines.deliveries.window import Window
from goqueue.machines.machine import Fact, Tick
from goqueue.model.codes import Code
from goqueue.records.decode import decode
from goqueue.records.plain import NumberRecord
from tests.unit.machines.fair_model import check_fair

STORED: Any = msgspec.msgpack.Decoder(reduce(or_, DELIVERY_FACTS))
PLACE = Place("g", "orders", 0)
TOPIC_ID = bytes(range(16))
START_MS = 1_000_000


PLAIN = frozenset({int, str, bytes, float, bool, tuple, type(None)})
NO_STATE = ("_appliers", "_deciders")


def frozen(thing: Any, *but: str) -> Any:
    """All that a decision might have changed by mistake, as something that can be compared."""
    if isinstance(thing, dict):
        return {key: each if type(each) in PLAIN else frozen(each, *but) for key, each in thing.items()}
    if isinstance(thing, bytearray | array):
        return bytes(thing)
    if isinstance(thing, list | deque):
        return [each if type(each) in PLAIN else frozen(each, *but) for each in thing]
    if type(thing).__module__.startswith("goqueue.machines.deliveries") and not isinstance(
        thing, msgspec.Struct | tuple
    ):
        names = [*getattr(thing, "__dict__", ()), *getattr(type(thing), "__slots__", ())]
        state = {name: getattr(thing, name) for name in names if name not in NO_STATE and name not in but}
        return frozen(state, *but)
    return set(thing) if isinstance(thing, set) else thing


def offsets_of(runs: tuple[LeasedRun, ...]) -> list[int]:
    return [offset for run in runs for offset in range(run.first, run.last + 1)]


class Driver:
    def __init__(self, policy: Policy | None = None, checks: bool = True, start: int = 0) -> None:
        self.machine = Deliveries()
        self.now_ms = START_MS
        self.policy = policy or Policy()
        self.ledger: list[tuple[bytes, bytes | None]] = []
        """All that was ever stored, in order; None for a tombstone."""
        self.written = 0
        """Durable facts of the last command."""
        self._checks = checks
        self._tickets = 0
        self.is_direct = False
        """Leases and acks go the short way where they can."""
        self.fails: Callable[[], bool] = lambda: False
        """Whether what was settled the short way cannot be stored; then it is settled once more."""
        self.ask(OpenDelivery(PLACE, TOPIC_ID, start, self.policy))

    # Speaking to the machine

    def ask(self, command: Any) -> Any:
        if self.machine.direct.is_ahead:
            self.store()
        self._tickets += 1
        before = frozen(self.machine) if self._checks else None
        outcome = self.machine.decide(command, self._tickets, self.now_ms)
        if self._checks:
            assert frozen(self.machine) == before, f"deciding {command} changed the state"
        self.written = 0
        for fact in outcome.facts:
            self._store(fact)
            self.machine.apply(fact)
        ((ticket, reply),) = outcome.replies
        assert ticket == self._tickets
        return reply

    def store(self) -> None:
        """The end of a turn."""
        before = frozen(self.machine, "_progress_record") if self._checks else None
        facts = self.machine.direct.facts_ahead(self.now_ms)
        number = self.machine.direct.number_ahead()
        assert not self._checks or frozen(self.machine, "_progress_record") == before
        self.written = 0
        if number is not None:
            self._store_number(number, facts)
        else:
            for fact in facts:
                self._store(fact)
                self.machine.apply(fact)
        assert not self.machine.direct.is_ahead

    def _store_number(self, number: tuple[NumberRecord, int], facts: list[Fact]) -> None:
        """The short way says the same as the facts do."""
        ((record,),) = [decode(number[0].batch(number[1], self.now_ms))]
        assert record.key is not None
        assert record.value is not None
        assert [STORED.decode(record.value), self.machine.direct.number_stored(self.now_ms)] == facts
        assert (record.key, record.timestamp) == (facts[0].key(), self.now_ms)
        self.written += 1
        self.ledger.append((record.key, record.value))

    def _lease_directly(self, count: int, consumer: str, lease_ms: int | None) -> LeaseReply | None:
        return self.machine.direct.lease(PLACE, consumer, count, lease_ms, self.now_ms)

    def _settle_directly(self, settlements: tuple[Settlement, ...], consumer: str | None) -> int:
        """How many of them, the first ones."""
        was_ahead = self.machine.direct.is_ahead  # what others settled before in the same turn would be taken back too
        before = frozen(self.machine, "_heap") if self._checks and not was_ahead else None
        done = self._settled_directly(settlements, consumer)
        if done and not was_ahead and self.fails():
            self.machine.direct.take_back(self.now_ms)
            assert frozen(self.machine, "_heap") == before
            again = self._settled_directly(settlements, consumer)
            assert again == done
        return done

    def _settled_directly(self, settlements: tuple[Settlement, ...], consumer: str | None) -> int:
        for done, each in enumerate(settlements):
            if each.how is not How.ACK or not self.machine.direct.settle(
                PLACE, each.first, each.last, each.lease, consumer
            ):
                return done
        return len(settlements)

    def _store(self, fact: Fact) -> None:
        if fact.durable:
            self.written += 1
            self.ledger.append((fact.key(), None if fact.is_tombstone else msgspec.msgpack.encode(fact)))

    def advance(self, ms: int = 0) -> None:
        """Let time pass as the coordinator does: a tick at every deadline on the way."""
        if self.machine.direct.is_ahead and ms:
            self.store()
        end_ms = self.now_ms + ms
        for _ in range(10_000):
            deadline_ms = self.machine.next_deadline_ms()
            if deadline_ms is None or deadline_ms > end_ms:
                self.now_ms = end_ms
                return
            self.now_ms = max(self.now_ms, deadline_ms)
            self.ask(Tick())
        raise AssertionError("deadlines that never pass")

    # After a crash

    def replayed(self, compacted: bool = False) -> Deliveries:
        """A machine rebuilt from the ledger, or from what compaction leaves of it."""
        records = self.ledger
        if compacted:
            latest = {key: position for position, (key, _) in enumerate(records)}
            records = [records[position] for position in sorted(latest.values())]
        machine = Deliveries()
        for key, value in records:
            if value is None:
                machine.forget(key)
            else:
                machine.apply(STORED.decode(value))
        return machine

    def from_snapshot(self) -> Deliveries:
        machine = Deliveries()
        for fact in self.machine.facts():
            machine.apply(STORED.decode(msgspec.msgpack.encode(fact)))
        return machine

    def restart(self, how: str = "compacted") -> None:
        """Every way to come back leads to the same state."""
        if self.machine.direct.is_ahead:
            self.store()
        ways = {
            "whole": self.replayed(),
            "compacted": self.replayed(compacted=True),
            "snapshot": self.from_snapshot(),
        }
        stored = {name: {fact.key(): fact for fact in machine.facts()} for name, machine in ways.items()}
        assert stored["whole"] == stored["compacted"] == stored["snapshot"]
        self.machine = ways[how]
        self.advance()
        self.ask(OpenDelivery(PLACE, TOPIC_ID, 0, self.policy))
        self.advance()

    # Short ways

    def observe(self, *spans: Span, log_start: int = 0, window: int = 0) -> None:
        next_offset = spans[-1].last + 1 if spans else 0
        assert self.ask(Observe(PLACE, spans, next_offset, log_start, window)) is Code.NONE
        self.advance()

    def see(self, count: int, **about: Any) -> None:
        """So many records more, all alike."""
        end = self.machine.observed_end(PLACE)
        self.observe(Span(end, end + count - 1, **about))

    def lease(self, count: int = 100, consumer: str = "c", lease_ms: int | None = None) -> LeaseReply:
        reply = self._lease_directly(count, consumer, lease_ms) if self.is_direct else None
        reply = reply or self.ask(Lease(PLACE, consumer, count, lease_ms))
        assert isinstance(reply, LeaseReply)
        assert reply.lease != 0
        return reply

    def take(self, count: int = 100, consumer: str = "c") -> list[int]:
        return offsets_of(self.lease(count, consumer).runs)

    def settle(
        self,
        lease: int,
        first: int,
        last: int | None = None,
        how: How = How.ACK,
        delay_ms: int = BACKOFF,
        reason: str = "",
        consumer: str | None = None,
    ) -> Verdict:
        settlement = Settlement(first, first if last is None else last, how, delay_ms, reason, lease)
        (verdict,) = self.settle_all(settlement, consumer=consumer)
        return verdict

    def settle_all(self, *settlements: Settlement, consumer: str | None = None) -> tuple[Verdict, ...]:
        done = self._settle_directly(settlements, consumer) if self.is_direct and are_apart(settlements) else 0
        if done == len(settlements):
            return (Verdict.DONE,) * done
        reply = self.ask(Settle(PLACE, settlements[done:], consumer))
        assert isinstance(reply, SettleReply)
        assert len(reply.verdicts) == len(settlements) - done
        return (Verdict.DONE,) * done + reply.verdicts

    def write_letters(self) -> list[DeadLetter]:
        """Write all dead letters."""
        letters = self.machine.dead_due(PLACE)
        self.ask(DeadLettersWritten(PLACE, tuple(letter.offset for letter in letters)))
        return letters

    def measure(self) -> Measure:
        return self.machine.measure(PLACE)

    def delivery(self, place: Place = PLACE) -> Delivery:
        return self.machine._state.places[place]

    def check(self) -> None:
        """What must hold between any two commands."""
        held: dict[str, int] = {}
        delivery = self.delivery()
        for window in delivery.windows():
            check_window(window)
            for number, first, last in window.leased_runs(window.start, window.end - 1):
                lease = self.machine._state.leases.get(number)
                assert lease is not None
                held[lease.consumer] = held.get(lease.consumer, 0) + last + 1 - first
        assert delivery.unacked == held
        assert sum(lease.left for lease in self.machine._state.leases._held.values()) == sum(held.values())


def check_window(window: Window) -> None:
    assert len(window.kinds) == len(window.attempts) == len(window.lease_of) == window.end - window.base
    assert window.base <= window.start <= window.end
    counted = [0] * len(window.counts)
    for kind in window.kinds:
        counted[kind] += 1
    # What was trimmed was settled.
    assert window.counts[:0x50] == counted[:0x50]
    for lane, hint in enumerate(window.hints):
        assert window.kinds.find(lane, 0, max(0, hint - window.base)) < 0
    assert window.start == window.end or window.kinds[window.start - window.base] < 0x50
    assert window.is_plain == (window.keys is None and window.fair is None)
    if window.fair is not None:
        check_fair(window, window.fair)
