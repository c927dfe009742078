"""What the protocol allows a producer and what not, seen without a library that would never try."""

from collections.abc import Iterator

import pytest

from goqueue.model.codes import Code
from tests.integration.bare_producer import BareProducer
from tests.integration.conftest import CreateTopic
from tests.integration.process import Node, wait_until
from tests.integration.test_transactions import visible
from tests.integration.topics import end_offsets
from tests.integration.wire import Wire


@pytest.fixture
def wire(node: Node) -> Iterator[Wire]:
    with Wire(node) as connection:
        yield connection


@pytest.fixture
def topic(make_topic: CreateTopic) -> str:
    return make_topic()


def transactional(wire: Wire, topic: str) -> BareProducer:
    producer = BareProducer(wire, f"{topic}-producer")
    producer.init()
    return producer


def test_a_repeated_batch_is_answered_with_its_first_offset_and_stored_once(node: Node, wire: Wire, topic: str) -> None:
    """For each of the last five batches."""
    producer = BareProducer(wire)
    producer.init()
    batches = [(b"%d a" % number, b"%d b" % number) for number in range(5)]
    for number, values in enumerate(batches):
        assert producer.send(topic, *values) == (Code.NONE, number * 2)
    for number, values in reversed(list(enumerate(batches))):
        assert producer.send(topic, *values, sequence=number * 2) == (Code.NONE, number * 2)
    stored = [value for values in batches for value in values]
    assert visible(node, topic) == {(0, offset, value) for offset, value in enumerate(stored)}


def test_a_gap_in_the_sequence_and_an_old_epoch_are_refused(node: Node, wire: Wire, topic: str) -> None:
    producer = BareProducer(wire)
    producer.init()
    assert producer.send(topic, b"first") == (Code.NONE, 0)
    assert producer.send(topic, b"gap", sequence=2)[0] is Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.epoch += 1
    assert producer.send(topic, b"new epoch", sequence=0) == (Code.NONE, 1)
    producer.epoch -= 1
    assert producer.send(topic, b"old epoch", sequence=1)[0] is Code.INVALID_PRODUCER_EPOCH
    assert visible(node, topic) == {(0, 0, b"first"), (0, 1, b"new epoch")}


def test_a_transactional_batch_without_an_open_transaction_is_refused(node: Node, wire: Wire, topic: str) -> None:
    """Also into a partition that is not part of the open one."""
    producer = transactional(wire, topic)
    assert producer.send(topic, b"nothing open")[0] is Code.INVALID_TXN_STATE
    assert producer.enlist(topic, 0) is Code.NONE
    assert producer.send(topic, b"not enlisted", partition=1)[0] is Code.INVALID_TXN_STATE
    assert producer.send(topic, b"enlisted") == (Code.NONE, 0)
    assert producer.end(commit=True) is Code.NONE
    assert producer.send(topic, b"over")[0] is Code.INVALID_TXN_STATE
    wait_until(lambda: end_offsets(node, topic) == {0: 2, 1: 0, 2: 0}, "the marker")
    assert visible(node, topic) == {(0, 0, b"enlisted")}


def test_a_second_commit_changes_nothing_and_the_other_end_is_refused(node: Node, wire: Wire, topic: str) -> None:
    """What is decided stands, and asking again is no error."""
    producer = transactional(wire, topic)
    for commit in (True, False):
        assert producer.enlist(topic, 0) is Code.NONE
        assert producer.send(topic, b"committed %d" % commit)[0] is Code.NONE
        assert producer.end(commit=commit) is Code.NONE

        def is_over(commit: bool = commit) -> bool:
            code = producer.end(commit=commit)
            assert code in (Code.NONE, Code.CONCURRENT_TRANSACTIONS)
            return code is Code.NONE

        wait_until(is_over, "the end")
        assert producer.end(commit=not commit) is Code.INVALID_TXN_STATE
    assert end_offsets(node, topic) == {0: 4, 1: 0, 2: 0}
    assert visible(node, topic) == {(0, 0, b"committed 1")}


def test_a_fenced_producer_is_refused_in_all_it_does(node: Node, wire: Wire, topic: str, group: str) -> None:
    old = transactional(wire, topic)
    assert old.enlist(topic, 0) is Code.NONE
    new = transactional(wire, topic)
    assert (new.id, new.epoch > old.epoch) == (old.id, True)
    fenced = (Code.PRODUCER_FENCED, Code.INVALID_PRODUCER_EPOCH)
    assert old.send(topic, b"zombie")[0] in fenced
    assert old.enlist(topic, 1) in fenced
    assert old.send_offset(group, topic, 0) in fenced
    assert old.end(commit=True) in fenced
    assert new.enlist(topic, 0) is Code.NONE
    assert new.send(topic, b"heir")[0] is Code.NONE
    assert old.end(commit=False) in fenced
    assert new.end(commit=True) is Code.NONE
    wait_until(lambda: {place[2] for place in visible(node, topic)} == {b"heir"}, "the commit")
