"""A follower's machine knows what is committed, and nothing else: so that whoever begins to lead tells no lies."""

from typing import Any

import pytest

from goqueue.model.errors import CoordinatorLoading, NotCoordinator
from goqueue.model.refusal import NotLeader
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Reign
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.ledger import SLICE_COST, Ledger
from goqueue.runtime.standby import Standby
from goqueue.testing import VirtualClock
from tests.brokers import Parts
from tests.unit.runtime.shelf import Drop, Get, Library, Put, Shelf, Stored, WaitFor

LEADER, FOLLOWER = 1, 2


class Pair:
    """A leader with its coordinator and a follower with its standby. Batches and watermarks travel by hand."""

    def __init__(self, parts: Parts | None = None) -> None:
        self.leader = Library()
        self.leader.ledger_replica.lead(Reign(5, LEADER, (LEADER,), 1))
        self.leader.coordinator.unload()
        self.leader.coordinator.load()
        self.leader.commit()
        self.parts = parts or Parts()
        self.copy: Replica = self.parts.replica("@copy", cleanup_policy="compact", segment_bytes="16384")
        self.copy.follow(5, LEADER)
        self.standby = self.follow()

    def follow(self) -> Standby[Shelf]:
        ledger = Ledger(self.copy, "shelf", (Stored,))
        standby = Standby("shelf", Shelf, self.copy, ledger, self.parts.clock)
        self.parts.commit()
        return standby

    def put(self, *names: str, value: int = 1) -> None:
        for name in names:
            self.leader.submit(Put(name, value))
        self.leader.commit()

    def copy_all(self, watermark: int | None = None) -> None:
        """What the follower's fetch brings."""
        source = self.leader.ledger_replica
        batches = [one for one in source.batches_from(source.start_offset) if one.base_offset >= self.copy.end_offset]
        self.copy.append_copied(batches, source.high_watermark if watermark is None else watermark, 0)
        self.copy.sync()
        self.parts.commit()

    @property
    def known(self) -> dict[str, int]:
        machine = self.standby.peek()
        assert machine is not None
        return machine.plain

    def promote(self, reign: Reign) -> Coordinator[Shelf]:
        self.copy.lead(reign)
        coordinator = Coordinator("shelf", Shelf, self.standby.ledger, self.parts.clock)
        coordinator.load(self.standby.take())
        return coordinator


def test_a_standby_knows_what_is_committed() -> None:
    pair = Pair()
    pair.put("a", "b")
    pair.copy_all()
    assert pair.known == {"a": 1, "b": 1}
    pair.leader.submit(Drop("a"))
    pair.put("b", value=7)
    pair.copy_all()
    assert pair.known == {"b": 7}
    assert pair.standby.lag == 0


def test_a_standby_never_applies_above_the_high_watermark() -> None:
    pair = Pair()
    pair.put("a", "b", "c")
    pair.copy_all(watermark=1)
    assert pair.known == {"a": 1}
    pair.copy.append_copied([], 3, 0)
    pair.parts.commit()
    assert pair.known == {"a": 1, "b": 1, "c": 1}


def test_a_standby_is_the_machine_that_a_replay_of_its_log_gives() -> None:
    pair = Pair()
    for number in range(50):
        pair.put(f"{number % 7}", value=number)
        if number % 3 == 0:
            pair.leader.submit(Drop(f"{number % 5}"))
        pair.copy_all()
    replayed = Shelf()
    Ledger(pair.copy, "other", (Stored,)).replay(replayed, 0)
    machine = pair.standby.peek()
    assert machine is not None
    assert (machine.plain, machine.places) == (replayed.plain, replayed.places)


class Counting(Shelf):
    applied = 0

    def apply(self, fact: Any) -> None:
        type(self).applied += 1
        super().apply(fact)


def test_a_standby_takes_turns_with_others() -> None:
    pair = Pair()
    pair.standby.stop()
    for number in range(2000):
        pair.leader.submit(Put(f"{number}", number))
    pair.leader.commit()
    standby = Standby("shelf", Counting, pair.copy, Ledger(pair.copy, "shelf", (Stored,)), pair.parts.clock)
    pair.parts.commit()
    source = pair.leader.ledger_replica
    pair.copy.append_copied(list(source.batches_from(0)), source.high_watermark, 0)
    counts, soon = [], pair.parts.clock._soon
    while soon:
        Counting.applied = 0
        soon.popleft()()
        counts.append(Counting.applied)
    assert max(counts) <= SLICE_COST
    assert sum(counts) == 2000
    assert standby.lag == 0


def test_a_truncation_below_what_a_standby_applied_builds_it_anew() -> None:
    """Only an unclean election takes back what was committed; a standby must not remember it."""
    pair = Pair()
    pair.put("a", "b", "c")
    pair.copy_all()
    pair.copy.truncate(1)
    other = Pair()
    other.put("a", "z", "y")
    source = other.leader.ledger_replica
    pair.copy.append_copied([one for one in source.batches_from(0) if one.base_offset >= 1], 3, 0)
    pair.parts.commit()
    assert pair.known == {"a": 1, "z": 1, "y": 1}


def test_a_truncation_above_what_a_standby_applied_costs_it_nothing() -> None:
    pair = Pair()
    pair.put("a", "b", "c")
    pair.copy_all(watermark=1)
    machine = pair.standby.peek()
    pair.copy.truncate(1)
    other = Pair()
    other.put("a", "z")
    pair.copy.append_copied([one for one in other.leader.ledger_replica.batches_from(0) if one.base_offset >= 1], 2, 0)
    pair.parts.commit()
    assert pair.standby.peek() is machine
    assert pair.known == {"a": 1, "z": 1}


def test_a_log_that_begins_anew_builds_its_standby_anew() -> None:
    pair = Pair()
    pair.put("a", "b")
    pair.copy_all()
    pair.copy.restart(0)
    pair.parts.commit()
    assert pair.known == {}
    pair.copy_all()
    assert pair.known == {"a": 1, "b": 1}


def test_a_standbys_snapshot_knows_no_more_than_the_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goqueue.runtime.ledger.SNAPSHOT_EVERY_RECORDS", 1)
    pair = Pair()
    pair.put("a", "b", "c")
    pair.copy_all(watermark=2)
    found = pair.copy.snapshots("shelf").latest(up_to=3)
    assert found is not None
    assert (found.offset, len(found.entries)) == (2, 2)
    pair.standby.stop()
    pair.copy.truncate(2)
    pair.standby = pair.follow()
    assert pair.known == {"a": 1, "b": 1}


# -- promotion


def test_who_begins_to_lead_applies_the_rest_of_the_log_and_serves() -> None:
    pair = Pair()
    pair.put("a", "b", "c")
    pair.copy_all(watermark=1)
    coordinator = pair.promote(Reign(6, FOLLOWER, (FOLLOWER,), 1))
    replies: list[Any] = []
    coordinator.submit(Get("c"), replies.append)
    pair.parts.commit()
    assert replies == [1]
    assert coordinator.peek().plain == {"a": 1, "b": 1, "c": 1}


def test_promotion_reads_no_more_than_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair()
    pair.put(*(f"{number}" for number in range(100)))
    pair.copy_all(watermark=97)
    applied: list[str] = []
    machine = pair.standby.peek()
    assert machine is not None
    before = machine.apply

    def noted(fact: Any) -> None:
        applied.append(fact.name)
        before(fact)

    monkeypatch.setattr(machine, "apply", noted)
    pair.promote(Reign(6, FOLLOWER, (FOLLOWER,), 1))
    pair.parts.commit()
    assert applied == ["97", "98", "99"]


def test_a_coordinator_serves_nothing_before_the_start_of_its_reign_is_committed() -> None:
    """What it read above the watermark may be lost still: an election may go to one that does not have it."""
    pair = Pair()
    pair.put("a", "b")
    pair.copy_all(watermark=1)
    coordinator = pair.promote(Reign(6, FOLLOWER, (FOLLOWER, LEADER), 2))
    replies: list[Any] = []
    coordinator.submit(Get("b"), replies.append)
    pair.parts.commit()
    assert (replies, coordinator.is_active) == ([], False)
    pair.parts.clock.advance(2000)
    assert [type(one) for one in replies] == [CoordinatorLoading]
    role = pair.copy.role
    view = role.view  # type: ignore[union-attr]
    view.set_isr((FOLLOWER,))
    pair.copy._synced()
    pair.parts.commit()
    coordinator.submit(Get("b"), replies.append)
    pair.parts.commit()
    assert replies[1:] == [1]


def test_a_standby_that_is_being_built_is_not_taken_for_a_machine() -> None:
    parts = Parts()
    copy = parts.replica("@copy")
    copy.follow(copy.leader_epoch + 1, LEADER)
    standby = Standby("shelf", Shelf, copy, Ledger(copy, "shelf", (Stored,)), parts.clock)
    assert standby.take() is None
    parts.commit()
    assert not standby.is_built


def test_a_part_of_a_batch_is_not_applied_twice_by_a_promotion() -> None:
    """A slice may end within a batch; whoever leads goes on behind it."""
    library = Library(clock=VirtualClock())
    facts = [Stored(f"{number}", number) for number in range(SLICE_COST * 3)]
    library.ledger.append(facts, 0)
    library.commit()
    parts = Parts()
    copy = parts.replica("@copy")
    copy.follow(copy.leader_epoch + 1, LEADER)
    standby = Standby("shelf", Counting, copy, Ledger(copy, "shelf", (Stored,)), parts.clock)
    parts.commit()
    source = library.ledger_replica
    copy.append_copied(list(source.batches_from(0)), source.high_watermark, 0)
    Counting.applied = 0
    for _ in range(2):  # the watcher, and one slice
        parts.clock._soon.popleft()()
    assert 0 < Counting.applied < len(facts)
    copy.lead(Reign(copy.leader_epoch + 1, FOLLOWER, (FOLLOWER,), 1))
    coordinator = Coordinator("shelf", Shelf, standby.ledger, parts.clock)
    coordinator.load(standby.take())
    parts.commit()
    assert len(coordinator.peek().plain) == len(facts)
    assert Counting.applied == len(facts)


# -- demotion


def test_who_waits_for_a_leader_that_is_deposed_is_failed_and_hears_nothing_of_the_next_reign() -> None:
    """KAFKA-20634: the watermark of the next reign must not complete what the last one decided."""
    pair = Pair()
    library = pair.leader
    library.ledger_replica.lead(Reign(6, LEADER, (LEADER, FOLLOWER), 2))
    library.coordinator.unload()
    library.coordinator.load()
    library.ledger_replica.role.view.set_isr((LEADER,))  # type: ignore[union-attr]
    library.commit()
    library.ledger_replica.role.view.set_isr((LEADER, FOLLOWER))  # type: ignore[union-attr]
    written, waiting = library.submit(Put("x", 1)), library.submit(WaitFor("never"))
    library.commit()
    assert (written, waiting) == ([], [])
    library.ledger_replica.follow(7, FOLLOWER)
    library.coordinator.unload()
    assert [type(one) for one in (*written, *waiting)] == [NotLeader, NotLeader]
    assert len(written) == len(waiting) == 1
    library.ledger_replica.append_copied([], library.ledger_replica.end_offset, 0)
    library.commit()
    assert len(written) == 1, "told once"


def test_a_deposed_leaders_machine_is_not_the_next_standbys() -> None:
    """It has applied facts that may never be committed."""
    pair = Pair()
    library, replica = pair.leader, pair.leader.ledger_replica
    pair.put("a")
    replica.lead(Reign(6, LEADER, (LEADER,), 1))
    library.coordinator.unload()
    library.coordinator.load()
    library.commit()
    replica.role.view.set_isr((LEADER, FOLLOWER))  # type: ignore[union-attr]
    library.submit(Put("lost", 1))
    library.commit()
    assert library.shelf.plain == {"a": 1, "lost": 1}
    replica.follow(7, FOLLOWER)
    library.coordinator.unload()
    standby = Standby("shelf", Shelf, replica, Ledger(replica, "shelf", (Stored,)), library.clock)
    library.commit()
    machine = standby.peek()
    assert machine is not None
    assert machine.plain == {"a": 1}


# -- freshness


def test_what_no_committed_write_stands_for_is_not_answered_while_another_may_lead() -> None:
    """A leader that was cut off may have been replaced: its reads and heartbeats would be lies."""
    library = Library()
    library.submit(Put("a", 1))
    library.commit()
    library.ledger_replica.freshness = lambda replica: False
    read, waited = library.submit(Get("a")), library.submit(Put("b", 2))
    confirmed: list[Any] = []
    library.coordinator.confirm(confirmed.append)
    library.commit()
    assert [type(one) for one in (*read, *confirmed)] == [NotCoordinator, NotCoordinator]
    assert waited == [2], "a write that was committed speaks for itself"
    library.ledger_replica.freshness = lambda replica: True
    assert library.submit(Get("a")) == [1]
