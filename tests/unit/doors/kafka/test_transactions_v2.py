"""KIP-890, part 2: partitions and groups join a transaction with the first write, every transaction has an epoch of its
own, and administrators can end one that hangs.
"""

from typing import Any

import pytest

from goqueue.broker.transactions import enlisting
from goqueue.broker.transactions.enlisting import SETTLE_MS_MAX
from goqueue.machines.transactions.facts import State
from goqueue.model.codes import Code
from goqueue.records.batch import check_batch
from goqueue.records.control import ControlKind
from goqueue.records.decode import decode
from goqueue.wire.kafka.frames import request_frame
from goqueue.wire.kafka.messages import produce
from goqueue.wire.kafka.messages import transactions as wire
from tests.brokers import TestBroker, data
from tests.unit.doors.kafka.share_members import Guest, House
from tests.unit.doors.kafka.transactional import (
    ADD,
    END,
    NAME,
    PRODUCE,
    Producer,
    commit_offset,
    committed_offset,
    outcome,
    result,
)
from tests.unit.doors.kafka.transports import feed


@pytest.fixture
def house() -> House:
    return House(partitions=2)


def test_the_first_write_to_a_partition_makes_it_part_of_the_transaction(house: House) -> None:
    producer = Producer(house).init()
    assert producer.write(b"a", b"b") == (Code.NONE, 0)
    assert producer.write(b"c", partition=1) == (Code.NONE, 0)
    assert producer.write(b"d") == (Code.NONE, 2)
    assert (outcome(house.broker), outcome(house.broker, 1)) == ({None: [b"a", b"b", b"d"]}, {None: [b"c"]})
    assert producer.end() is Code.NONE
    assert outcome(house.broker) == {ControlKind.COMMIT: [b"a", b"b", b"d"]}
    assert outcome(house.broker, 1) == {ControlKind.COMMIT: [b"c"]}


def test_every_transaction_has_an_epoch_of_its_own(house: House) -> None:
    producer = Producer(house).init()
    producer.write(b"a")
    late = producer.request(b"late")
    first = producer.epoch
    assert producer.end(commit=False) is Code.NONE
    assert producer.epoch == first + 1
    assert producer.write(b"b") == (Code.NONE, 2)
    assert result(producer.call(late, PRODUCE, produce.ProduceResponse))[0] is Code.INVALID_PRODUCER_EPOCH
    assert producer.end() is Code.NONE
    assert outcome(house.broker) == {ControlKind.ABORT: [b"a"], ControlKind.COMMIT: [b"b"]}


def test_nothing_is_written_before_the_coordinator_knows_of_it_for_good(house: House) -> None:
    producer = Producer(house).init()
    producer.feed(producer.request(b"a"))
    assert house.broker.broker.topics.replica("orders", 0).end_offset == 0
    disk = house.broker.disk
    again = TestBroker(disk.crashed(lost=disk.unsynced()))
    found = again.broker.transactions.peek().get(NAME)
    assert found is not None
    assert (found.state, again.broker.topics.replica("orders", 0).end_offset) == (State.EMPTY, 0)


def test_what_is_sent_meanwhile_waits_its_turn(house: House) -> None:
    producer = Producer(house).init()
    producer.feed(producer.request(b"a"), producer.request(b"b"), producer.request(b"c", partition=1))
    producer.feed(producer.request(b"d"))
    assert producer.replies(produce.ProduceResponse, PRODUCE) == []
    house.broker.commit()
    answers = [result(each) for each in producer.replies(produce.ProduceResponse, PRODUCE)]
    assert answers == [(Code.NONE, 0), (Code.NONE, 1), (Code.NONE, 0), (Code.NONE, 2)]
    assert outcome(house.broker) == {None: [b"a", b"b", b"d"]}


def test_a_write_right_after_the_end_waits_for_the_markers(house: House) -> None:
    producer = Producer(house).init()
    producer.write(b"a")
    end: Any = request_frame(wire.EndTxnRequest(NAME, producer.id, producer.epoch, True), END, 99, "test")
    feed(producer._connection, b"".join(end))
    producer.epoch, producer.sequences = producer.epoch + 1, [0, 0]
    producer.feed(producer.request(b"b"))
    house.broker.commit()
    assert outcome(house.broker) == {ControlKind.COMMIT: [b"a"], None: [b"b"]}


def test_markers_that_do_not_come_are_not_waited_for_for_ever(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Producer(house).init()
    producer.write(b"a")
    monkeypatch.setattr(house.broker.broker.transactions.markers, "write", lambda coordinator, names: None)
    assert producer.end() is Code.NONE
    producer.feed(producer.request(b"b"))
    house.advance(SETTLE_MS_MAX)
    (answer,) = producer.replies(produce.ProduceResponse, PRODUCE)
    assert result(answer)[0] is Code.CONCURRENT_TRANSACTIONS


def test_a_fenced_producer_is_told_so(house: House) -> None:
    old = Producer(house).init()
    Producer(house).init()
    assert old.write(b"a") == (Code.INVALID_PRODUCER_EPOCH, -1)
    assert outcome(house.broker) == {}


def test_what_waits_is_bounded(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enlisting, "WAITING_BYTES_MAX", 100)
    producer = Producer(house).init()
    first, second = producer.request(b"a"), producer.request(b"b")
    producer.feed(first, second)
    house.broker.commit()
    assert [result(each) for each in producer.replies(produce.ProduceResponse, PRODUCE)] == [
        (Code.NONE, 0),
        (Code.CONCURRENT_TRANSACTIONS, -1),
    ]
    assert result(producer.call(second, PRODUCE, produce.ProduceResponse)) == (Code.NONE, 1)


@pytest.mark.parametrize(("version", "expected"), [(10, Code.INVALID_TXN_STATE), (11, Code.TRANSACTION_ABORTABLE)])
def test_an_older_client_has_to_add_its_partitions(house: House, version: int, expected: Code) -> None:
    producer = Producer(house).init()
    assert producer.write(b"a", version=version) == (expected, -1)


def test_a_group_joins_with_its_first_commit(house: House) -> None:
    house.publish(b"x", b"y", b"z")
    producer = Producer(house).init()
    assert commit_offset(producer, 2, version=4) is Code.TRANSACTION_ABORTABLE
    assert commit_offset(producer, 2) is Code.NONE
    assert committed_offset(producer) == -1
    assert producer.end() is Code.NONE
    assert committed_offset(producer) == 2
    assert commit_offset(producer, 3) is Code.NONE
    assert producer.end(commit=False) is Code.NONE
    assert committed_offset(producer) == 2


def add(guest: Guest, *transactions: wire.AddPartitionsToTxnTransaction, version: int = ADD) -> list[list[Code]]:
    answer = guest.call(wire.AddPartitionsToTxnRequest(list(transactions)), version, wire.AddPartitionsToTxnResponse)
    return [
        [Code(one.partition_error_code) for topic in each.topic_results for one in topic.results_by_partition]
        for each in answer.results_by_transaction
    ]


def transaction(producer: Producer, *partitions: int, verify_only: bool = False) -> wire.AddPartitionsToTxnTransaction:
    topic = wire.AddPartitionsToTxnTopic("orders", list(partitions))
    return wire.AddPartitionsToTxnTransaction(producer.name, producer.id, producer.epoch, verify_only, [topic])


def test_several_transactions_are_added_to_or_asked_about_at_once(house: House) -> None:
    one, other = Producer(house).init(), Producer(house, "refunds").init()
    none, outside, older = Code.NONE, Code.TRANSACTION_ABORTABLE, Code.INVALID_TXN_STATE
    assert add(one, transaction(one, 0, 1), transaction(other, 1)) == [[none, none], [none]]
    asked = [transaction(one, 0, 1, verify_only=True), transaction(other, 0, 1, verify_only=True)]
    assert add(one, *asked) == [[none, none], [outside, none]]
    assert add(one, *asked, version=4) == [[none, none], [older, none]]
    unknown = add(one, transaction(one, 0, 7))
    assert unknown == [[Code.OPERATION_NOT_ATTEMPTED, Code.UNKNOWN_TOPIC_OR_PARTITION]]
    assert add(one) == []


def write_marker(
    guest: Guest, producer_id: int, epoch: int, *partitions: int, commit: bool = False, coordinator_epoch: int = 0
) -> list[Code]:
    """As `kafka-transactions abort` does."""
    marker = wire.WritableTxnMarker(
        producer_id,
        epoch,
        commit,
        [wire.WritableTxnMarkerTopic("orders", list(partitions))],
        coordinator_epoch,
    )
    answer = guest.call(wire.WriteTxnMarkersRequest([marker]), 1, wire.WriteTxnMarkersResponse)
    return [Code(one.error_code) for one in answer.markers[0].topics[0].partitions]


def test_a_transaction_that_hangs_can_be_aborted(house: House) -> None:
    stray = data(b"stray", producer_id=77, producer_epoch=3, base_sequence=0, transactional=True)
    replica = house.broker.broker.topics.replica("orders", 0)
    replica.append(check_batch(stray), 1000)
    house.publish(b"after")
    assert replica.last_stable_offset == 0
    assert write_marker(Guest(house), 77, 3, 0, 9) == [Code.NONE, Code.UNKNOWN_TOPIC_OR_PARTITION]
    assert replica.last_stable_offset == replica.high_watermark == 3
    assert outcome(house.broker)[ControlKind.ABORT] == [b"stray"]
    assert write_marker(Guest(house), -1, -1, 0) == [Code.INVALID_REQUEST]


def test_a_transaction_that_its_coordinator_knows_is_aborted_as_a_whole(house: House) -> None:
    producer = Producer(house).init()
    producer.write(b"a")
    producer.write(b"b", partition=1)
    assert write_marker(Guest(house), producer.id, producer.epoch, 0) == [Code.NONE]
    assert outcome(house.broker) == {ControlKind.ABORT: [b"a"]}
    assert outcome(house.broker, 1) == {ControlKind.ABORT: [b"b"]}
    assert producer.write(b"c")[0] is Code.INVALID_PRODUCER_EPOCH
    assert producer.end() is Code.INVALID_TXN_STATE


def test_a_foreign_marker_commits_nothing_that_its_coordinator_knows(house: House) -> None:
    producer = Producer(house).init()
    producer.write(b"a")
    assert write_marker(Guest(house), producer.id, producer.epoch, 0, commit=True) == [Code.INVALID_TXN_STATE]
    assert producer.end(commit=False) is Code.NONE
    assert outcome(house.broker) == {ControlKind.ABORT: [b"a"]}


def test_any_number_of_requests_may_wait_in_one_row(house: House) -> None:
    producer = Producer(house).init()
    values = [b"%d" % number for number in range(300)]
    producer.feed(*(producer.request(value) for value in values))
    house.broker.commit()
    answers = [result(each) for each in producer.replies(produce.ProduceResponse, PRODUCE)]
    assert answers == [(Code.NONE, offset) for offset in range(300)]
    assert outcome(house.broker) == {None: values}


def test_a_producer_that_wants_no_answer_gets_none_if_it_is_refused(house: House) -> None:
    old = Producer(house).init()
    Producer(house).init()
    request = old.request(b"a")
    request.acks = 0
    old.send(request, PRODUCE)
    assert old.replies(produce.ProduceResponse, PRODUCE) == []


def test_requests_that_were_given_up_are_not_kept(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the markers of a partition do not come its producer asks again and again."""
    producer = Producer(house).init()
    producer.write(b"a")
    transactions = house.broker.broker.transactions
    monkeypatch.setattr(transactions.markers, "write", lambda coordinator, names: None)
    assert producer.end() is Code.NONE
    for _ in range(3):
        producer.sequences = [0, 0]
        producer.feed(producer.request(b"b"))
        house.advance(SETTLE_MS_MAX)
    answers = [result(each)[0] for each in producer.replies(produce.ProduceResponse, PRODUCE)]
    assert answers == [Code.CONCURRENT_TRANSACTIONS] * 3
    assert sum(map(len, transactions._settled.values())) <= 1


def test_a_batch_is_not_written_before_the_one_that_was_turned_away(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer(house).init()
    first, second = producer.request(b"a" * 200), producer.request(b"b")
    monkeypatch.setattr(enlisting, "WAITING_BYTES_MAX", 200)
    producer.feed(first, second)
    house.broker.commit()
    codes = [result(each)[0] for each in producer.replies(produce.ProduceResponse, PRODUCE)]
    assert codes == [Code.CONCURRENT_TRANSACTIONS, Code.OUT_OF_ORDER_SEQUENCE_NUMBER]
    monkeypatch.undo()
    producer.feed(first, second)
    house.broker.commit()
    answers = [result(each) for each in producer.replies(produce.ProduceResponse, PRODUCE)]
    assert answers == [(Code.NONE, 0), (Code.NONE, 1)]
    assert outcome(house.broker) == {None: [b"a" * 200, b"b"]}


def test_nor_is_one_of_an_older_client_that_does_not_wait_until_its_partitions_have_joined(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told to send it again, as the one before."""
    old, producer = 11, Producer(house).init()
    requests = producer.request(b"a" * 200), producer.request(b"b")
    for request in requests:
        request.topic_data[0].name = "orders"

    def send() -> list[tuple[Code, int]]:
        for request in requests:
            producer.post(request, old)
        house.broker.commit()
        return [result(each) for each in producer.replies(produce.ProduceResponse, old)]

    monkeypatch.setattr(enlisting, "WAITING_BYTES_MAX", 200)
    Guest(house).post(wire.AddPartitionsToTxnRequest([transaction(producer, 0)]), ADD)
    assert send() == [(Code.NOT_ENOUGH_REPLICAS, -1)] * 2
    monkeypatch.undo()
    assert send() == [(Code.NONE, 0), (Code.NONE, 1)]


@pytest.mark.parametrize("commits", [True, False])
def test_what_is_delayed_in_a_transaction_is_published_if_that_is_committed(house: House, commits: bool) -> None:
    producer = Producer(house).init()
    for commit, value in ((commits, b"first"), (not commits, b"second")):
        request = producer.request(value, delay_ms=60_000)
        assert result(producer.call(request, PRODUCE, produce.ProduceResponse))[0] is Code.NONE
        assert producer.end(commit=commit) is Code.NONE
    house.advance(60_000)
    replica = house.broker.broker.topics.replica("orders", 0)
    found = [record.value for batch in replica.batches_from(0) if not batch.is_control for record in decode(batch)]
    assert found == [b"first" if commits else b"second"]


def test_a_marker_that_would_shut_out_the_coordinator_is_refused(house: House) -> None:
    producer = Producer(house).init()
    id_, epoch = producer.id, producer.epoch
    fenced = [Code.TRANSACTION_COORDINATOR_FENCED]
    assert write_marker(Guest(house), id_, epoch, 0, coordinator_epoch=2**31 - 1) == fenced
    assert write_marker(Guest(house), id_, 32767, 0) == [Code.INVALID_PRODUCER_EPOCH]
    assert producer.write(b"a") == (Code.NONE, 0)
    assert producer.end() is Code.NONE
    assert producer.write(b"b") == (Code.NONE, 2)
