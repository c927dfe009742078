"""A leader remembers what the coordinator of a transaction has told it, until the marker, and not a moment longer."""

from collections.abc import Callable
from typing import Any

from goqueue.broker.transactions.verified import Verified
from goqueue.machines.transactions.commands import AddGroup, AddPartitions, CodeReply, MarkerJob, Partition
from goqueue.model.codes import Code
from goqueue.model.errors import Indeterminate
from goqueue.model.transactions import Hanging, Writer
from tests.brokers import TestBroker

PLACE = ("orders", 0)
WRITER = Writer("writer", 7, 3)


class FakeElsewhere:
    """The coordinator of every transaction, on another node; it is answered for by hand."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, bool, Callable[[Any], None]]] = []

    def enlist(self, command: AddPartitions | AddGroup, joins: bool, on_reply: Callable[[Any], None]) -> None:
        self.asked.append((command, joins, on_reply))

    def end_in_partition(self, job: MarkerJob, place: Partition, done: Callable[[Any], None]) -> None:
        raise AssertionError("nothing is decided here")


def node() -> tuple[TestBroker, FakeElsewhere]:
    broker, elsewhere = TestBroker(), FakeElsewhere()
    broker.create("orders")
    broker.broker.transactions.markers.elsewhere = elsewhere
    return broker, elsewhere


def ask(broker: TestBroker, *, joins: bool = True) -> list[Code]:
    verdicts: list[Code] = []
    broker.broker.transactions.enlisting.add_partitions(WRITER, (PLACE,), 0, verdicts.append, joins=joins)
    return verdicts


def marker(broker: TestBroker, epoch: int = 3, coordinator_epoch: int = 1) -> list[Any]:

    done: list[Any] = []
    job = Hanging(WRITER.producer_id, epoch, coordinator_epoch, commit=False)
    broker.broker.transactions.markers.end_here(job, PLACE, done.append)
    broker.commit()
    return done


def test_a_batch_of_a_transaction_waits_until_the_coordinator_was_asked() -> None:
    """Without it a late batch would open a transaction that nobody ends (KAFKA-12671)."""
    broker, elsewhere = node()
    transactions = broker.broker.transactions
    assert transactions.verify_writer(WRITER, PLACE) is Code.CONCURRENT_TRANSACTIONS
    assert transactions.may_write(7, 3, PLACE) is not Code.NONE
    verdicts = ask(broker, joins=False)
    ((command, joins, on_reply),) = elsewhere.asked
    assert (command, joins, verdicts) == (AddPartitions("writer", 7, 3, (PLACE,)), False, [])
    on_reply(CodeReply(Code.NONE))
    assert verdicts == [Code.NONE]
    assert transactions.verify_writer(WRITER, PLACE) is Code.NONE
    assert transactions.may_write(7, 3, PLACE) is Code.NONE


def test_the_answer_is_for_one_producer_epoch_and_place() -> None:
    broker, elsewhere = node()
    ask(broker)
    elsewhere.asked[0][2](CodeReply(Code.NONE))
    transactions = broker.broker.transactions
    for producer_id, epoch, place in ((7, 4, PLACE), (8, 3, PLACE), (7, 3, ("orders", 1)), (7, 3, "orders")):
        assert not transactions.verified.has(producer_id, epoch, place)


def test_what_the_coordinator_refuses_is_refused_and_not_remembered() -> None:
    for reply, told in (
        (CodeReply(Code.INVALID_TXN_STATE), Code.INVALID_TXN_STATE),
        (Indeterminate("lost"), Code.COORDINATOR_NOT_AVAILABLE),
    ):
        broker, elsewhere = node()
        verdicts = ask(broker)
        elsewhere.asked[0][2](reply)
        assert verdicts == [told]
        assert not broker.broker.transactions.verified.has(7, 3, PLACE)


def test_the_marker_ends_it() -> None:
    broker, elsewhere = node()
    ask(broker)
    elsewhere.asked[0][2](CodeReply(Code.NONE))
    assert marker(broker) == [None]
    assert broker.broker.transactions.verify_writer(WRITER, PLACE) is Code.CONCURRENT_TRANSACTIONS, "it is asked again"


def test_a_marker_that_comes_meanwhile_makes_the_answer_void() -> None:
    """The batch would stand behind the marker, and open the next transaction of the same epoch."""
    broker, elsewhere = node()
    verdicts = ask(broker)
    assert marker(broker) == [None]
    elsewhere.asked[0][2](CodeReply(Code.NONE))
    assert verdicts == []
    assert not broker.broker.transactions.verified.has(7, 3, PLACE)
    broker.clock.advance(100)
    broker.commit()
    assert len(elsewhere.asked) == 2, "the coordinator is asked again"
    elsewhere.asked[1][2](CodeReply(Code.INVALID_TXN_STATE))
    assert verdicts == [Code.INVALID_TXN_STATE]


def test_another_reign_of_the_partition_knows_nothing_of_it() -> None:
    """Markers may have come to the leader in between."""
    verified = Verified()
    verified.note(7, 3, (PLACE, ("orders", 1)))
    question = verified.ask(8, (PLACE,))
    verified.forget_place(PLACE)
    assert not verified.has(7, 3, PLACE)
    assert verified.has(7, 3, ("orders", 1))
    assert not verified.end(question)


def test_offsets_that_count_or_are_forgotten_end_it_in_their_groups() -> None:
    verified = Verified()
    verified.note(7, 3, ("flock", "crew"))
    question = verified.ask(7, ("flock",))
    verified.ended_in_groups(7, lambda group_id: group_id == "flock")
    assert (verified.has(7, 3, "flock"), verified.has(7, 3, "crew")) == (False, True)
    assert not verified.end(question)


def test_a_coordinator_of_an_older_reign_cannot_end_a_transaction() -> None:
    """Markers carry the epoch of the ledger that decided: a deposed coordinator's are refused."""
    broker, elsewhere = node()
    ask(broker)
    elsewhere.asked[0][2](CodeReply(Code.NONE))
    broker.publish("orders", b"x", producer_id=7, producer_epoch=3, base_sequence=0, transactional=True)
    assert marker(broker, coordinator_epoch=5) == [None]
    ask(broker)
    elsewhere.asked[1][2](CodeReply(Code.NONE))
    broker.publish("orders", b"y", producer_id=7, producer_epoch=3, base_sequence=1, transactional=True)
    (refused,) = marker(broker, coordinator_epoch=4)
    assert refused.code is Code.TRANSACTION_COORDINATOR_FENCED
    assert marker(broker, coordinator_epoch=6) == [None]
