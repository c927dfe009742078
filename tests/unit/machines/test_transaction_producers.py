"""Who a producer is: ids that are never given twice, epochs that only rise, and those who come back after an error."""

import pytest

from goqueue.machines.transactions.commands import AddPartitions, InitProducer, ProducerIdWanted, ProducerReply
from goqueue.machines.transactions.facts import EPOCH_GIVEN_MAX, State
from goqueue.model.codes import Code
from tests.unit.machines.transaction_samples import MINUTE_MS, NOW_MS, Bench

A = ("orders", 0)
OK, BUSY, FENCED = Code.NONE, Code.CONCURRENT_TRANSACTIONS, Code.PRODUCER_FENCED


def aged(epoch: int) -> tuple[Bench, tuple[int, int]]:
    """A producer whose id has been bumped up to `epoch`."""
    bench = Bench()
    producer_id, _ = bench.begin()
    old = bench.known()
    bench.machine.apply(type(old)("tx", producer_id, epoch, old.timeout_ms, State.EMPTY, NOW_MS))
    bench.ledger.append(bench.known())
    return bench, (producer_id, epoch)


def test_a_producer_id_is_asked_for_only_when_one_is_needed_and_nothing_is_stored_before() -> None:
    bench = Bench()
    command = InitProducer("tx", MINUTE_MS)
    assert isinstance(bench.ask_once(command), ProducerIdWanted)
    assert bench.ledger.entries == []
    assert bench.ask_once(InitProducer("tx", MINUTE_MS, new_producer_id=7)) == ProducerReply(OK, 7, 0)
    assert bench.ask_once(command) == ProducerReply(OK, 7, 1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 15 * MINUTE_MS + 1])
def test_a_timeout_out_of_bounds_is_refused(timeout_ms: int) -> None:
    assert Bench().init(timeout_ms=timeout_ms).code is Code.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize(("name", "claimed"), [("", (-1, -1)), ("tx", (5, -1)), ("tx", (-1, 0))])
def test_half_an_identity_is_no_request(name: str, claimed: tuple[int, int]) -> None:
    assert Bench().init(name, claimed=claimed).code is Code.INVALID_REQUEST


def test_an_empty_id_is_no_request() -> None:
    bench = Bench()
    assert bench.ask(AddPartitions("", 0, 0, (A,))).code is Code.INVALID_REQUEST
    assert bench.end((0, 0), commit=True, name="").code is Code.INVALID_REQUEST


def test_every_start_of_a_producer_fences_the_one_before() -> None:
    bench = Bench()
    first, second = bench.begin(), bench.begin()
    assert second == (first[0], first[1] + 1)
    assert bench.ask(AddPartitions("tx", *first, (A,))).code is FENCED
    assert bench.ask(AddPartitions("tx", *second, (A,))).code is OK


def test_a_start_takes_the_new_timeout() -> None:
    bench = Bench()
    bench.begin()
    bench.init(timeout_ms=5)
    assert bench.known().timeout_ms == 5


def test_a_start_during_a_transaction_really_aborts_it_first() -> None:
    bench = Bench()
    producer_id, epoch = bench.begin()
    bench.ask(AddPartitions("tx", producer_id, epoch, (A,)))
    assert [bench.init().code for _ in range(3)] == [BUSY] * 3
    bench.crash()
    assert bench.init().code is BUSY
    (job,) = bench.finish()
    assert (job.commit, job.partitions, job.epoch) == (False, (A,), epoch + 1)
    assert bench.init() == ProducerReply(OK, producer_id, epoch + 2)


def test_kip_360_a_producer_goes_on_with_the_next_epoch() -> None:
    bench = Bench()
    who = bench.begin()
    assert bench.init(claimed=who) == ProducerReply(OK, who[0], 1)
    assert bench.init(claimed=who) == ProducerReply(OK, who[0], 1)  # it did not hear the answer
    assert bench.end(who, commit=True, bumps_epoch=True).code is FENCED
    assert bench.init(claimed=(who[0], 1)) == ProducerReply(OK, who[0], 2)
    assert bench.init(claimed=who).code is FENCED


def test_kip_360_a_producer_goes_on_after_its_own_transaction_was_aborted() -> None:
    bench = Bench()
    who = bench.begin()
    bench.ask(AddPartitions("tx", *who, (A,)))
    assert bench.init(claimed=who).code is BUSY
    bench.finish()
    assert bench.init(claimed=who) == ProducerReply(OK, who[0], 1)


def test_kip_360_nobody_goes_on_once_another_has_started() -> None:
    bench = Bench()
    who = bench.begin()
    bench.init(claimed=who)
    bench.begin()
    for epoch in (0, 1):
        assert bench.init(claimed=(who[0], epoch)).code is FENCED


def test_kip_360_a_request_that_comes_late_aborts_nothing() -> None:
    bench = Bench()
    who = bench.begin()
    bench.init(claimed=who)
    bench.ask(AddPartitions("tx", who[0], 1, (A,)))
    assert bench.init(claimed=who).code is FENCED
    assert bench.known().state is State.ONGOING


def test_kip_360_a_producer_whose_transaction_another_aborted_does_not_go_on() -> None:
    bench = Bench()
    who = bench.begin()
    bench.ask(AddPartitions("tx", *who, (A,)))
    assert bench.init().code is BUSY
    assert bench.init(claimed=who).code is FENCED
    bench.finish()
    assert bench.init(claimed=who).code is FENCED


def test_kip_360_a_zombie_cannot_abort_the_transaction_of_its_successor() -> None:
    bench = Bench()
    zombie, who = bench.begin(), bench.begin()
    bench.ask(AddPartitions("tx", *who, (A,)))
    assert bench.init(claimed=zombie).code is FENCED
    assert bench.end(who, commit=True).code is OK


def test_epochs_that_are_used_up_lead_to_a_new_producer_id() -> None:
    bench, (producer_id, _) = aged(EPOCH_GIVEN_MAX - 2)
    given = [bench.begin() for _ in range(4)]
    new_id = given[-1][0]
    assert given == [(producer_id, EPOCH_GIVEN_MAX - 1), (producer_id, EPOCH_GIVEN_MAX), (new_id, 0), (new_id, 1)]
    assert new_id > producer_id
    assert bench.machine.verify(producer_id, EPOCH_GIVEN_MAX, A) is Code.INVALID_PRODUCER_ID_MAPPING


def test_the_last_epoch_is_left_for_fencing() -> None:
    bench, who = aged(EPOCH_GIVEN_MAX)
    bench.ask(AddPartitions("tx", *who, (A,)))
    assert bench.init().code is BUSY
    (job,) = bench.finish()
    assert (job.producer_id, job.epoch) == (who[0], 32767)
    producer_id, epoch = bench.begin()
    assert producer_id > who[0]
    assert epoch == 0


@pytest.mark.parametrize("is_ongoing", [True, False])
def test_a_producer_goes_on_over_the_last_epoch(is_ongoing: bool) -> None:
    bench, who = aged(EPOCH_GIVEN_MAX)
    if is_ongoing:
        bench.ask(AddPartitions("tx", *who, (A,)))
        assert bench.init(claimed=who).code is BUSY
        bench.finish()
    reply = bench.init(claimed=who)
    assert (reply.code, reply.epoch) == (OK, 0)
    assert reply.producer_id > who[0]
    assert bench.init(claimed=who) == reply  # it did not hear the answer


def test_the_epoch_left_for_fencing_is_given_to_nobody() -> None:
    bench, who = aged(EPOCH_GIVEN_MAX)
    bench.ask(AddPartitions("tx", *who, (A,)))
    bench.init(claimed=who)
    bench.finish()
    assert bench.end(who, commit=False, bumps_epoch=True).code is FENCED
    assert bench.init(claimed=who).epoch == 0


def test_kip_890_every_transaction_of_version_2_has_its_own_epoch() -> None:
    bench = Bench()
    producer_id, epoch = bench.begin()
    for commit in (True, False, True):
        bench.ask(AddPartitions("tx", producer_id, epoch, (A,)))
        assert bench.end((producer_id, epoch), commit=commit, bumps_epoch=True) == ProducerReply(
            OK, producer_id, epoch + 1
        )
        (job,) = bench.machine.markers_due()
        assert (job.epoch, job.commit) == (epoch + 1, commit)
        assert bench.ask(AddPartitions("tx", producer_id, epoch + 1, (A,))).code is BUSY
        assert bench.ask(AddPartitions("tx", producer_id, epoch, (A,))).code is FENCED
        bench.finish()
        epoch += 1


@pytest.mark.parametrize("commit", [True, False])
def test_kip_890_a_repeated_end_is_told_from_the_end_of_the_next_transaction(commit: bool) -> None:
    bench = Bench()
    who = bench.begin()
    bench.ask(AddPartitions("tx", *who, (A,)))
    reply = bench.end(who, commit=commit, bumps_epoch=True)
    assert bench.end(who, commit=commit, bumps_epoch=True).code is BUSY
    bench.finish()
    assert bench.end(who, commit=commit, bumps_epoch=True) == reply
    assert bench.end(who, commit=not commit, bumps_epoch=True).code is Code.INVALID_TXN_STATE
    now = reply.producer_id, reply.epoch
    bench.ask(AddPartitions("tx", *now, (A,)))
    assert bench.end(who, commit=commit, bumps_epoch=True).code is FENCED
    assert bench.known().state is State.ONGOING


def test_kip_890_an_abort_of_nothing_gives_a_new_epoch_too() -> None:
    bench = Bench()
    who = bench.begin()
    assert bench.end(who, commit=False, bumps_epoch=True) == ProducerReply(OK, who[0], 1)
    assert bench.end((who[0], 1), commit=False, bumps_epoch=True) == ProducerReply(OK, who[0], 2)
    assert bench.machine.markers_due() == []


def test_kip_890_b31_a_transaction_may_end_on_the_last_epoch() -> None:
    bench, who = aged(EPOCH_GIVEN_MAX)
    bench.ask(AddPartitions("tx", *who, (A,)))
    reply = bench.end(who, commit=True, bumps_epoch=True)
    now = reply.producer_id, reply.epoch
    assert now[0] > who[0]
    assert now[1] == 0
    bench.crash()
    assert bench.ask(AddPartitions("tx", *now, (A,))).code is BUSY
    assert bench.init(claimed=now).code is BUSY
    (job,) = bench.finish()
    assert (job.producer_id, job.epoch, job.commit) == (who[0], 32767, True)
    assert bench.end(who, commit=True, bumps_epoch=True) == reply
    assert bench.machine.verify(*who, A) is Code.INVALID_PRODUCER_ID_MAPPING
    assert bench.ask(AddPartitions("tx", *now, (A,))).code is OK
    assert bench.machine.is_open(*now, *A)


def test_kip_890_b31_an_abort_of_nothing_on_the_last_epoch_gives_a_new_id() -> None:
    bench, who = aged(EPOCH_GIVEN_MAX)
    reply = bench.end(who, commit=False, bumps_epoch=True)
    assert (reply.code, reply.epoch) == (OK, 0)
    assert reply.producer_id > who[0]
    assert bench.end(who, commit=False, bumps_epoch=True) == reply
