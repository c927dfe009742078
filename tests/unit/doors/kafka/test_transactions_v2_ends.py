"""KIP-890, part 2: how a transaction ends when power fails, time runs out or epochs are used up."""

import pytest

from goqueue.broker.gate import Gate
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.model.codes import Code
from goqueue.records.control import ControlKind
from goqueue.wire.kafka.messages import produce
from tests.brokers import TestBroker
from tests.unit.doors.kafka.share_members import House
from tests.unit.doors.kafka.transactional import PRODUCE, Producer, commit_offset, committed_offset, outcome, result


@pytest.fixture
def house() -> House:
    return House()


@pytest.mark.parametrize("commit", [True, False])
def test_a_decision_outlives_a_loss_of_power_before_its_markers(
    house: House, monkeypatch: pytest.MonkeyPatch, commit: bool
) -> None:
    producer = Producer(house).init()
    producer.write(b"a")
    delayed = producer.request(b"later", delay_ms=60_000)
    assert result(producer.call(delayed, PRODUCE, produce.ProduceResponse))[0] is Code.NONE
    assert commit_offset(producer, 1) is Code.NONE
    monkeypatch.setattr(house.broker.broker.transactions.markers, "write", lambda coordinator, names: None)
    before = producer.id, producer.epoch
    assert producer.end(commit=commit) is Code.NONE
    after = producer.id, producer.epoch
    house.broker = TestBroker(house.broker.disk.crashed(lost=house.broker.disk.unsynced()), house.broker.clock)
    house.door = KafkaDoor(Gate(house.broker.broker))
    again = Producer(house)
    again.id, again.epoch = before
    assert again.end(commit=commit) is Code.NONE
    assert (again.id, again.epoch) == after
    assert again.write(b"next")[0] is Code.NONE
    assert again.end() is Code.NONE
    house.advance(60_000)
    kind = ControlKind.COMMIT if commit else ControlKind.ABORT
    ended = outcome(house.broker)
    assert ended.pop(None, []) == ([b"later"] if commit else [])  # published by the broker, not in a transaction
    assert ended == ({kind: [b"a", b"next"]} if commit else {kind: [b"a"], ControlKind.COMMIT: [b"next"]})
    assert committed_offset(again) == (1 if commit else -1)


def test_a_transaction_that_took_too_long_is_aborted_and_its_producer_fenced(house: House) -> None:
    producer = Producer(house).init()
    producer.write(b"a")
    house.advance(60_000)
    assert outcome(house.broker) == {ControlKind.ABORT: [b"a"]}
    assert producer.write(b"b") == (Code.INVALID_PRODUCER_EPOCH, -1)
    assert producer.end() is Code.PRODUCER_FENCED
    assert Producer(house).init().write(b"c")[0] is Code.NONE


def test_a_producer_goes_on_under_another_id_when_its_epochs_are_used_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goqueue.machines.transactions.machine.EPOCH_GIVEN_MAX", 1)
    producer = Producer(house).init()
    first = producer.id
    for value in (b"a", b"b"):
        assert producer.write(value)[0] is Code.NONE
        assert producer.end() is Code.NONE
    assert (producer.id == first, producer.epoch) == (False, 0)
    assert producer.write(b"c")[0] is Code.NONE
    assert producer.end(commit=False) is Code.NONE
    assert outcome(house.broker) == {ControlKind.COMMIT: [b"a", b"b"], ControlKind.ABORT: [b"c"]}
