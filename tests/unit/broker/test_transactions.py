"""What a transaction's end comes to outside its coordinator: in partitions and in groups, whatever fails meanwhile."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.broker.transactions import markers
from goqueue.broker.transactions.listing import Wanted
from goqueue.machines.groups.commands import EndTransactionOffsets
from goqueue.machines.transactions.commands import AddPartitions, EndTransaction, InitProducer
from goqueue.model.codes import Code
from goqueue.model.errors import DiskFull
from goqueue.model.refusal import Refused
from tests.sim.test_transaction_crash_points import ALL, GROUP, NAME, NOTHING, TIMEOUT_MS, Bank


@pytest.fixture
def bank() -> Bank:
    made = Bank()
    made.create("orders", 2)
    return made


def end(bank: Bank, identity: tuple[int, int], *, commit: bool = True) -> None:
    reply = bank.ask(bank.broker.transactions.submit, EndTransaction(NAME, *identity, commit=commit))
    assert reply.code is Code.NONE


@pytest.mark.parametrize(("commit", "expected"), [(True, ALL), (False, NOTHING)])
def test_the_end_reaches_partitions_and_groups(bank: Bank, commit: bool, expected: tuple[bool, bool, int]) -> None:
    end(bank, bank.begin(), commit=commit)
    assert bank.settled() == expected


@pytest.mark.parametrize("group", ["a", "b", "c", "d", "e", "f", GROUP])
def test_offsets_that_a_full_disk_kept_back_are_committed_when_there_is_room(
    bank: Bank, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    """Wherever the group lives: the others have nothing to store, and succeed."""
    monkeypatch.setattr("tests.sim.test_transaction_crash_points.GROUP", group)
    identity = bank.begin()
    ledger = bank.broker.groups._of(group)._ledger
    append, refused = ledger.append, []

    def is_full(facts: Any, now_ms: int) -> int:
        refused.append(now_ms)
        raise DiskFull("no room")

    ledger.append = is_full  # type: ignore[method-assign]
    with capture_logs() as told:
        end(bank, identity)
        bank.clock.advance(3_500)
        bank.commit()
    assert len(refused) == 4
    assert {event["event"] for event in told} == {"marker not written"}
    assert bank.broker.transactions.peek().describe(NAME).state == "PrepareCommit"  # type: ignore[union-attr]
    ledger.append = append  # type: ignore[method-assign]
    assert bank.settled() == ALL


def test_a_marker_that_met_a_fault_of_ours_is_written_later(bank: Bank) -> None:
    """Else its producer could never begin another transaction."""
    identity = bank.begin()
    writing = bank.broker.transactions.markers
    ends = writing._ends

    def fails(*_arguments: object) -> None:
        raise RuntimeError("a fault of ours")

    writing._ends = ends._replace(schedules=fails)
    with capture_logs() as told:
        end(bank, identity)
    assert {event["event"] for event in told} == {"marker failed"}
    assert bank.broker.transactions.peek().describe(NAME).state == "PrepareCommit"  # type: ignore[union-attr]
    writing._ends = ends
    assert bank.settled() == ALL


def test_a_decision_that_is_not_durable_is_not_carried_out(bank: Bank) -> None:
    identity = bank.begin()
    ends = [bank.broker.topics.replica("orders", number).end_offset for number in range(2)]
    bank.broker.transactions.submit(EndTransaction(NAME, *identity, commit=True), lambda reply: None)
    bank.clock.run()
    assert [bank.broker.topics.replica("orders", number).end_offset for number in range(2)] == ends
    bank.commit()
    assert [bank.broker.topics.replica("orders", number).end_offset for number in range(2)] == [end + 1 for end in ends]


def test_a_group_hears_of_the_end_of_its_own_transactions_only(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = bank.begin()
    heard = []
    for number, coordinator in enumerate(bank.broker.groups._coordinators):
        decide = coordinator.peek().decide

        def note(command: Any, *rest: Any, number: int = number, decide: Any = decide) -> Any:
            if isinstance(command, EndTransactionOffsets):
                heard.append(number)
            return decide(command, *rest)

        monkeypatch.setattr(coordinator.peek(), "decide", note)
    end(bank, identity)
    assert heard == [list(bank.broker.groups._coordinators).index(bank.broker.groups._of(GROUP))]


def test_a_transaction_of_a_deleted_topic_still_ends(bank: Bank) -> None:
    identity = bank.begin()
    bank.broker.topics._replicas.retire("orders", [1])()
    end(bank, identity)
    bank.clock.advance(markers.RETRY_MS)
    bank.commit()
    assert bank.broker.transactions.peek().describe(NAME).state == "CompleteCommit"  # type: ignore[union-attr]


def test_transactions_are_listed_by_a_pattern_in_time_that_does_not_explode(bank: Bank) -> None:
    """A stranger's expression must not stop the node: backtracking would take longer than the universe lasts."""
    names = [NAME, "x" * 60 + "!", "other"]
    for name in names:
        assert bank.ask(bank.broker.transactions.submit, InitProducer(name, TIMEOUT_MS)).code is Code.NONE
    walking = bank.broker.transaction_list.walking

    def listing(pattern: str, *states: str) -> list[str]:
        return [one.transactional_id for page in walking(Wanted(states, pattern=pattern)) for one in page]

    assert listing("(x+x+)+y") == []
    assert listing("pay.*|o.*") == sorted([NAME, "other"])
    assert listing("") == sorted(names)
    assert listing("", "Ongoing") == []
    for pattern in ("(", "a" * 1001):
        with pytest.raises(Refused) as refused:
            walking(Wanted(pattern=pattern))
        assert refused.value.code is Code.INVALID_REGULAR_EXPRESSION


def test_transactions_are_listed_by_state_producer_and_age(bank: Bank) -> None:
    submit = bank.broker.transactions.submit
    old, other, idle = (
        (reply.producer_id, reply.epoch)
        for reply in (bank.ask(submit, InitProducer(name, TIMEOUT_MS)) for name in ("old", "other", "idle"))
    )
    bank.ask(submit, AddPartitions("old", *old, (("orders", 0),)))
    bank.clock.advance(1000)
    bank.ask(submit, AddPartitions("other", *other, (("orders", 0),)))

    def names(**filters: Any) -> list[str]:
        pages = bank.broker.transaction_list.walking(Wanted(**filters))
        return [each.transactional_id for page in pages for each in page]

    assert names() == ["idle", "old", "other"]
    assert names(states=("Empty", "Dead")) == ["idle"]
    assert names(states=("Dead",)) == []
    assert names(producer_ids=(old[0], idle[0], 10**6)) == ["old", "idle"]
    assert names(producer_ids=(old[0], idle[0]), states=("Ongoing",)) == ["old"]
    bank.clock.advance(1)
    assert names(longer_than_ms=0) == ["old", "other"]
    assert names(longer_than_ms=1000) == ["old"]
    assert names(longer_than_ms=1001) == []
