"""Transactions that end together: one decision for all, and a mark that tells a repetition."""

from itertools import product

import pytest

from goqueue.machines.machine import Tick
from goqueue.machines.transactions.commands import AddPartitions, EndTogether, InitProducer, TogetherReply
from goqueue.machines.transactions.facts import State
from goqueue.machines.transactions.machine import TransactionOptions
from goqueue.machines.transactions.together import KEY_CHARS_MAX
from goqueue.model.codes import Code
from tests.unit.machines.transaction_samples import MINUTE_MS, Bench, everything, replayed, restored

A, B = ("orders", 0), ("orders", 1)
DAY_MS = 24 * 60 * MINUTE_MS
Member = tuple[str, int, int]


def opened(bench: Bench, name: str) -> Member:
    who = bench.begin(name)
    assert bench.ask(AddPartitions(name, *who, (A, B))).code is Code.NONE
    return (name, *who)


def states(bench: Bench, *names: str) -> list[State]:
    return [bench.known(name).state for name in names]


def test_all_are_committed_in_one_decision_and_what_was_given_up_is_aborted() -> None:
    bench = Bench()
    members = [opened(bench, f"job/{number}") for number in range(3)]
    opened(bench, "job/0-failed")
    opened(bench, "job-2/0")
    assert bench.ask(EndTogether("job", 7, True, tuple(members))) == TogetherReply(Code.NONE)
    assert states(bench, "job/0", "job/1", "job/2") == [State.PREPARE_COMMIT] * 3
    assert states(bench, "job/0-failed", "job-2/0") == [State.PREPARE_ABORT, State.ONGOING]
    assert bench.known("job/0-failed").epoch == 1, "who is still at it must not go on"
    assert bench.machine.mark("job") == 7
    assert sorted((job.transactional_id, job.commit) for job in bench.finish()) == [
        ("job/0", True),
        ("job/0-failed", False),
        ("job/1", True),
        ("job/2", True),
    ]


def test_a_repetition_is_recognised_and_what_it_sent_is_aborted() -> None:
    bench = Bench()
    for mark, expected in ((3, False), (3, True), (2, True), (4, False)):
        member = opened(bench, "job/0")
        bench.crash()
        assert bench.ask(EndTogether("job", mark, True, (member,))) == TogetherReply(Code.NONE, expected)
        assert states(bench, "job/0") == [State.PREPARE_ABORT if expected else State.PREPARE_COMMIT]
        bench.finish()
    assert bench.machine.mark("job") == 4
    assert bench.ask(EndTogether("job", 4, True)) == TogetherReply(Code.NONE, True)
    assert bench.ask(EndTogether("other", 4, True)) == TogetherReply(Code.NONE)


def test_asked_again_for_want_of_an_answer_it_is_done_already() -> None:
    bench = Bench()
    command = EndTogether("job", 0, True, (opened(bench, "job/0"),))
    bench.ask(command)
    bench.crash()
    before = everything(bench.machine)
    assert bench.ask(command) == TogetherReply(Code.NONE, True)
    assert everything(bench.machine) == before, "what is decided stands"


@pytest.mark.parametrize("commit", [True, False])
def test_ids_of_a_writer_that_is_done_are_forgotten_once_all_markers_are_written(commit: bool) -> None:
    bench = Bench()
    member = opened(bench, "job/0")
    opened(bench, "job/failed")
    command = EndTogether("job", 0, commit, (member,), forgets=True)
    bench.ask(command)
    bench.crash()
    assert {job.transactional_id: job.commit for job in bench.finish()} == {"job/0": commit, "job/failed": False}
    assert bench.machine.page(State, None, 10) == []
    bench.crash()
    assert bench.machine.page(State, None, 10) == []
    assert bench.ask(command) == TogetherReply(Code.NONE, commit), "but not that it was committed"
    assert replayed(bench.ledger.compacted()).mark("job") == (0 if commit else -1)


NOT_OPEN = {
    "unknown": Code.INVALID_PRODUCER_ID_MAPPING,
    "empty": Code.INVALID_TXN_STATE,
    "timed out": Code.PRODUCER_FENCED,
    "taken over": Code.PRODUCER_FENCED,
    "committed": Code.INVALID_TXN_STATE,
    "another id": Code.INVALID_PRODUCER_ID_MAPPING,
}


def not_open(bench: Bench, name: str, how: str) -> Member:
    if how == "unknown":
        return name, 99, 0
    if how == "empty":
        return (name, *bench.begin(name))
    member = opened(bench, name)
    match how:
        case "timed out":
            bench.now_ms += MINUTE_MS
            bench.ask(Tick())
        case "taken over":
            assert bench.init(name).code is Code.CONCURRENT_TRANSACTIONS
        case "committed":
            bench.end(member[1:], commit=True, name=name)
        case "another id":
            return name, member[1] + 1, member[2]
    return member


@pytest.mark.parametrize(("how", "place"), list(product(NOT_OPEN, range(3))))
def test_if_one_is_not_open_nothing_is_committed(how: str, place: int) -> None:
    bench = Bench()
    missing = not_open(bench, "job/gone", how)
    members = [opened(bench, "job/0"), opened(bench, "job/1")]
    members.insert(place, missing)
    before = everything(bench.machine)
    reply = bench.ask(EndTogether("job", 0, True, tuple(members)))
    assert reply.code is NOT_OPEN[how]
    assert reply.message.startswith("nothing is committed: transaction 'job/gone' is not open: ")
    assert everything(bench.machine) == before
    assert bench.machine.mark("job") == -1


@pytest.mark.parametrize("commit", [True, False])
def test_a_task_that_is_late_may_not_begin_once_its_writer_has_ended(commit: bool) -> None:
    bench = Bench()
    member = opened(bench, "job/0")
    early = bench.begin("job/1")
    assert bench.ask(EndTogether("job", 0, commit, (member,) if commit else (), forgets=True)).code is Code.NONE
    bench.crash()
    assert bench.ask(AddPartitions("job/1", *early, (A,))).code is Code.PRODUCER_FENCED
    assert bench.ask(InitProducer("job/2", MINUTE_MS)).code is Code.PRODUCER_FENCED
    assert bench.ask(InitProducer("jobs/2", MINUTE_MS)).code is Code.NONE
    again = bench.ask(EndTogether("job", 0, True, (member,)))
    assert again == (
        TogetherReply(Code.NONE, True)
        if commit
        else TogetherReply(Code.INVALID_TXN_STATE, message="nothing is committed: the writer has ended")
    )


def test_given_up_together_all_are_aborted() -> None:
    bench = Bench()
    members = tuple(opened(bench, f"job/{number}") for number in range(2))
    assert bench.ask(EndTogether("job", 0, False, members[:1])) == TogetherReply(Code.NONE)
    assert states(bench, "job/0", "job/1") == [State.PREPARE_ABORT] * 2
    assert bench.machine.mark("job") == -1


@pytest.mark.parametrize(
    "command",
    [
        EndTogether("", 0, True),
        EndTogether("k" * (KEY_CHARS_MAX + 1), 0, True),
        EndTogether("job", -1, True),
        EndTogether("job", 0, True, (("tx", 0, 0),)),
        EndTogether("job", 0, False, (("job-2/0", 0, 0),)),
    ],
)
def test_what_makes_no_sense_is_refused(command: EndTogether) -> None:
    bench = Bench()
    opened(bench, "tx")
    before = everything(bench.machine)
    reply = bench.ask(command)
    assert reply.code is Code.INVALID_REQUEST
    assert reply.message
    assert everything(bench.machine) == before


def test_a_mark_is_remembered_over_restarts_and_snapshots_until_it_has_been_idle_too_long() -> None:
    bench = Bench(TransactionOptions(expiry_ms=7 * DAY_MS))
    bench.ask(EndTogether("old", 1, True))
    bench.now_ms += DAY_MS
    bench.ask(EndTogether("new", 2, True))
    for machine in (
        restored(bench.machine, bench.options),
        replayed(bench.ledger.entries, bench.options),
        replayed(bench.ledger.compacted(), bench.options),
    ):
        assert everything(machine) == everything(bench.machine)
        assert (machine.mark("old"), machine.mark("new")) == (1, 2)
    bench.now_ms += 6 * DAY_MS
    assert bench.machine.next_deadline_ms() == bench.now_ms
    bench.ask(Tick())
    assert (bench.machine.mark("old"), bench.machine.mark("new")) == (-1, 2)
    bench.crash()
    assert (bench.machine.mark("old"), bench.machine.mark("new")) == (-1, 2)
    assert everything(replayed(bench.ledger.compacted(), bench.options)) == everything(bench.machine)
    bench.now_ms += DAY_MS
    bench.ask(Tick())
    assert bench.machine.next_deadline_ms() is None
