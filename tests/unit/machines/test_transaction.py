"""Every command in every state, and the promises about one transaction at a time."""

from collections.abc import Callable
from typing import Any

import pytest

from goqueue.machines.machine import Tick
from goqueue.machines.transactions.commands import (
    AddGroup,
    AddPartitions,
    EndTransaction,
    InitProducer,
    MarkerJob,
    ProducerReply,
)
from goqueue.machines.transactions.facts import State
from goqueue.model.codes import Code
from tests.unit.machines.transaction_samples import MINUTE_MS, NOW_MS, Bench

A, B = ("orders", 0), ("orders", 1)
DAY_MS = 24 * 60 * MINUTE_MS

OK = Code.NONE
STATE, MAPPING, BUSY = Code.INVALID_TXN_STATE, Code.INVALID_PRODUCER_ID_MAPPING, Code.CONCURRENT_TRANSACTIONS
FENCED = Code.PRODUCER_FENCED


def bench_in(state: State) -> tuple[Bench, tuple[int, int]]:
    """A coordinator whose id "tx" is in `state`, and the producer that may act for it."""
    bench = Bench()
    who = bench.begin()
    if state is State.EMPTY:
        return bench, who
    if state is State.DEAD:
        bench.now_ms += 8 * DAY_MS
        bench.ask(Tick())
        assert bench.machine.get("tx") is None
        return bench, who
    bench.ask(AddPartitions("tx", *who, (A,)))
    if state is not State.ONGOING:
        bench.end(who, commit=state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT))
    if state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT):
        bench.finish()
    assert bench.known().state is state
    return bench, who


COMMANDS: dict[str, Callable[[int, int], Any]] = {
    "init": lambda number, epoch: InitProducer("tx", MINUTE_MS),
    "init as": lambda number, epoch: InitProducer("tx", MINUTE_MS, number, epoch, new_producer_id=77),
    "partitions": lambda number, epoch: AddPartitions("tx", number, epoch, (B,)),
    "group": lambda number, epoch: AddGroup("tx", number, epoch, "billing"),
    "commit": lambda number, epoch: EndTransaction("tx", number, epoch, True),
    "abort": lambda number, epoch: EndTransaction("tx", number, epoch, False),
    "commit 2": lambda number, epoch: EndTransaction("tx", number, epoch, True, True),
    "abort 2": lambda number, epoch: EndTransaction("tx", number, epoch, False, True),
}
STATES = list(State)
#               Empty  Ongoing PrepareC PrepareA CompleteC CompleteA Dead
CODES = {
    "init": (OK, BUSY, BUSY, BUSY, OK, OK, OK),
    "init as": (OK, BUSY, BUSY, BUSY, OK, OK, OK),
    "partitions": (OK, OK, BUSY, BUSY, OK, OK, MAPPING),
    "group": (OK, OK, BUSY, BUSY, OK, OK, MAPPING),
    "commit": (STATE, OK, BUSY, BUSY, OK, STATE, MAPPING),
    "abort": (STATE, OK, BUSY, BUSY, STATE, OK, MAPPING),
    "commit 2": (STATE, OK, BUSY, BUSY, STATE, STATE, MAPPING),
    "abort 2": (OK, OK, BUSY, BUSY, OK, OK, MAPPING),
}
_E, _O, _PC, _PA, _CC, _CA, _D = STATES
BECOMES = {
    "init": (_E, _PA, _PC, _PA, _E, _E, _E),
    "init as": (_E, _PA, _PC, _PA, _E, _E, _E),
    "partitions": (_O, _O, _PC, _PA, _O, _O, _D),
    "group": (_O, _O, _PC, _PA, _O, _O, _D),
    "commit": (_E, _PC, _PC, _PA, _CC, _CA, _D),
    "abort": (_E, _PA, _PC, _PA, _CC, _CA, _D),
    "commit 2": (_E, _PC, _PC, _PA, _CC, _CA, _D),
    "abort 2": (_CA, _PA, _PC, _PA, _CA, _CA, _D),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_in_every_state(command: str, state: State) -> None:
    bench, who = bench_in(state)
    assert bench.ask(COMMANDS[command](*who)).code is CODES[command][STATES.index(state)]
    known = bench.machine.get("tx")
    assert (known.state if known else State.DEAD) is BECOMES[command][STATES.index(state)]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "init"])
def test_whoever_is_not_the_producer_changes_nothing(command: str, state: State) -> None:
    bench, (producer_id, epoch) = bench_in(state)
    is_known = state is not State.DEAD
    if command == "init as":
        codes = (FENCED, FENCED) if is_known else (OK, OK)  # an id that was forgotten starts anew
    else:
        codes = (FENCED if is_known else MAPPING, MAPPING)
    claims = [(producer_id, epoch + 5), (producer_id + 1, epoch)]
    for claimed, code in zip(claims, codes):
        outcome = bench.machine.decide(COMMANDS[command](*claimed), 1, NOW_MS)
        assert outcome.replies[0][1].code is code
        assert code is OK or not outcome.facts


@pytest.mark.parametrize("state", STATES)
def test_publishing_needs_an_open_transaction_with_this_partition(state: State) -> None:
    bench, who = bench_in(state)
    expected = {State.ONGOING: OK, State.DEAD: MAPPING}.get(state, STATE)
    assert bench.machine.verify(*who, A) is expected
    assert bench.machine.is_open(*who, *A) is (state is State.ONGOING)
    assert not bench.machine.is_open(*who, *B)


def test_publishing_with_an_old_epoch_is_refused() -> None:
    bench, (producer_id, epoch) = bench_in(State.ONGOING)
    assert bench.machine.verify(producer_id, epoch + 1, A) is Code.INVALID_PRODUCER_EPOCH
    bench.init()
    assert bench.machine.verify(producer_id, epoch, A) is Code.INVALID_PRODUCER_EPOCH


def test_offsets_of_a_group_go_in_only_with_the_group() -> None:
    bench, who = bench_in(State.ONGOING)
    assert bench.machine.verify(*who, "billing") is STATE
    assert bench.ask(AddGroup("tx", *who, "billing")).code is OK
    assert bench.machine.verify(*who, "billing") is OK


@pytest.mark.parametrize("commit", [True, False])
def test_every_partition_and_group_gets_one_marker_job(commit: bool) -> None:
    bench = Bench()
    who = bench.begin()
    bench.ask(AddPartitions("tx", *who, (B, A)))
    bench.ask(AddPartitions("tx", *who, (A, ("audit", 0))))
    bench.ask(AddGroup("tx", *who, "billing"))
    assert bench.machine.markers_due() == []
    assert bench.end(who, commit=commit) == ProducerReply(OK, *who)
    job = MarkerJob("tx", *who, who[1], 0, 1, commit, (B, A, ("audit", 0)), ("billing",))
    assert bench.machine.markers_due() == [job]
    assert bench.finish() == [job]
    assert bench.machine.markers_due() == []


def test_a_second_commit_is_a_success() -> None:
    bench, who = bench_in(State.COMPLETE_COMMIT)
    assert bench.end(who, commit=True) == ProducerReply(OK, *who)


def test_enlisting_again_stores_nothing() -> None:
    bench, who = bench_in(State.ONGOING)
    assert bench.machine.decide(AddPartitions("tx", *who, (A,)), 1, NOW_MS).facts == []
    assert bench.machine.decide(AddPartitions("tx", *who, ()), 1, NOW_MS).facts == []


def test_after_a_failed_commit_the_transaction_ends_aborted() -> None:
    bench, who = bench_in(State.ONGOING)
    lost = bench.machine.decide(EndTransaction("tx", *who, True), 1, NOW_MS)
    assert lost.facts
    bench.crash()  # they could not be stored, so the coordinator starts again from what was
    bench.now_ms += MINUTE_MS
    bench.ask(Tick())
    assert [job.commit for job in bench.finish()] == [False]
    assert bench.known().state is State.COMPLETE_ABORT
    assert bench.end(who, commit=True).code is FENCED


def test_a_transaction_over_its_timeout_is_aborted_and_its_producer_fenced() -> None:
    bench, (producer_id, epoch) = bench_in(State.ONGOING)
    assert bench.machine.next_deadline_ms() == NOW_MS + MINUTE_MS
    bench.now_ms += MINUTE_MS - 1
    bench.ask(AddPartitions("tx", producer_id, epoch, (B,)))  # does not give it more time
    bench.ask(Tick())
    assert bench.known().state is State.ONGOING
    bench.now_ms += 1
    bench.ask(Tick())
    assert bench.machine.markers_due() == [MarkerJob("tx", producer_id, epoch + 1, epoch + 1, 0, 1, False, (A, B), ())]
    assert bench.machine.next_deadline_ms() is None
    assert bench.end((producer_id, epoch), commit=True).code is FENCED
    assert bench.init(claimed=(producer_id, epoch)).code is FENCED
    bench.finish()
    assert bench.init() == ProducerReply(OK, producer_id, epoch + 2)


def test_a_timeout_counts_from_the_start_whatever_restarts() -> None:
    bench, _ = bench_in(State.ONGOING)
    bench.now_ms += MINUTE_MS // 2
    bench.crash()
    assert bench.machine.next_deadline_ms() == NOW_MS + MINUTE_MS
    bench.now_ms += 10 * MINUTE_MS
    bench.ask(Tick())
    assert bench.known().state is State.PREPARE_ABORT


def test_an_idle_id_is_forgotten_after_seven_days_in_the_ledger_too() -> None:
    bench, who = bench_in(State.COMPLETE_COMMIT)
    assert bench.machine.next_deadline_ms() == NOW_MS + 7 * DAY_MS
    bench.now_ms += 7 * DAY_MS
    bench.ask(Tick())
    assert bench.ledger.compacted()[-1][1] is None
    bench.crash()
    assert bench.machine.get("tx") is None
    assert bench.machine.next_deadline_ms() is None
    assert bench.ask(AddPartitions("tx", *who, (A,))).code is MAPPING
    reply = bench.init(claimed=who)
    assert reply.code is OK
    assert reply.producer_id != who[0]


def test_many_deadlines_pass_in_bounded_steps() -> None:
    bench = Bench()
    for number in range(1500):
        name = f"tx-{number}"
        who = bench.begin(name)
        bench.ask(AddPartitions(name, *who, (A,)))
    bench.now_ms += MINUTE_MS
    assert len(bench.machine.decide(Tick(), 0, bench.now_ms).facts) == 1000
    bench.ask(Tick())
    assert bench.machine.next_deadline_ms() == NOW_MS + MINUTE_MS
    bench.ask(Tick())
    assert bench.machine.next_deadline_ms() is None
    assert len(bench.finish()) == 1500


def test_a_transaction_is_described_with_what_still_waits_for_its_marker() -> None:
    bench = Bench()
    who = bench.begin()
    bench.ask(AddPartitions("tx", *who, (A, B)))
    assert bench.machine.describe("nobody") is None
    shown = bench.machine.describe("tx")
    assert shown is not None
    assert (shown.state, shown.start_ms, shown.timeout_ms) == ("Ongoing", NOW_MS, MINUTE_MS)
    assert shown.partitions == (A, B)


def test_pages_and_counts_of_transactions_follow_their_states() -> None:
    bench = Bench()
    old = bench.begin("old")
    bench.ask(AddPartitions("old", *old, (A,)))
    new = bench.begin("new")
    bench.ask(AddGroup("new", *new, "billing"))
    bench.begin("idle")

    def page(*states: State, after: str | None = None, count: int = 10) -> list[str]:
        return bench.machine.page(states or State, after, count)

    for _ in range(2):  # also after a crash
        assert page() == ["idle", "new", "old"]
        assert page(count=2) == ["idle", "new"]
        assert page(after="idle", count=1) == ["new"]
        assert page(State.EMPTY) == ["idle"]
        assert page(State.ONGOING) == ["new", "old"]
        assert [bench.machine.count(state) for state in (State.EMPTY, State.ONGOING)] == [1, 2]
        bench.crash()
    bench.ask(EndTransaction("old", *old, commit=True))
    bench.finish()
    assert page(State.ONGOING) == ["new"]
    assert page(State.COMPLETE_COMMIT) == ["old"]
    assert sum(bench.machine.count(state) for state in State) == 3


def test_what_is_no_command_is_a_bug() -> None:
    bench = Bench()
    with pytest.raises(TypeError):
        bench.machine.decide("commit", 1, NOW_MS)
    with pytest.raises(TypeError):
        bench.machine.apply("committed")
