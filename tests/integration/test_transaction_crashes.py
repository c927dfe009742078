"""kill -9 in the middle of transactions: all or nothing, and never undecided for long."""

import pytest

from goqueue.model.codes import Code
from tests.integration.bare_producer import BareProducer
from tests.integration.clients import Client, ClientFailure, Message
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.process import Node, wait_until
from tests.integration.test_transactions import at, to_all, visible
from tests.integration.topics import end_offsets, group_offsets
from tests.integration.wire import Wire


def crash(node: Node) -> None:
    node.kill()
    node.start()


def wait_decided(node: Node, topic: str) -> None:
    """Until no transaction holds readers back."""
    wait_until(lambda: end_offsets(node, topic, committed_only=True) == end_offsets(node, topic), "a decision")


def test_a_crash_in_the_middle_and_one_after_the_end_change_nothing(
    own_node: Node, make_topic: CreateTopic, group: str, client: type[Client]
) -> None:
    """Open stays invisible and can be committed later; aborted and committed stay what they are."""
    source, topic = make_topic(), make_topic()
    Confluent.producer(own_node.address).send(source, [Message(0, b"%d" % number) for number in range(10)])
    producer = client.producer(own_node.address, transactional_id="producer")
    producer.begin()
    producer.send(topic, to_all(b"aborted"))
    producer.abort()
    producer.begin()
    producer.send(topic, to_all(b"open"))
    producer.send_offsets({(source, 0): 7}, group)
    crash(own_node)
    assert visible(own_node, topic) == set()
    assert group_offsets(own_node, group) == {}
    producer.commit()
    wait_decided(own_node, topic)
    committed = at(2, b"open")
    assert visible(own_node, topic) == committed
    crash(own_node)
    wait_decided(own_node, topic)
    assert visible(own_node, topic) == committed
    wait_until(lambda: group_offsets(own_node, group) == {0: 7}, "the commit of the offset")
    data = committed | at(0, b"aborted")
    assert visible(own_node, topic, committed_only=False) == data
    producer.close()


def test_an_orphan_of_a_crash_is_aborted_by_its_heir(
    own_node: Node, make_topic: CreateTopic, client: type[Client]
) -> None:
    """Both producer and broker have gone; the next producer of that name clears up."""
    topic = make_topic()
    with Wire(own_node) as wire:
        orphan = BareProducer(wire, "producer")
        orphan.init()
        assert orphan.enlist(topic, 0, 1, 2) is Code.NONE
        for number in range(3):
            assert orphan.send(topic, b"orphan", partition=number) == (Code.NONE, 0)
        crash(own_node)
    heir = client.producer(own_node.address, transactional_id="producer")
    heir.begin()
    heir.send(topic, to_all(b"heir"))
    heir.commit()
    wait_decided(own_node, topic)
    assert visible(own_node, topic) == at(2, b"heir")
    heir.close()


@pytest.mark.parametrize("waits", [False, True], ids=["before the answer", "after the answer"])
def test_a_crash_at_the_end_leaves_all_or_nothing(
    own_node: Node, make_topic: CreateTopic, group: str, waits: bool
) -> None:
    """Commit is asked for and the node is killed, at once or when it has answered (prepared, no marker yet)."""
    source, topic = make_topic(), make_topic()
    Confluent.producer(own_node.address).send(source, [Message(0, b"%d" % number) for number in range(10)])
    committed: set[bytes] = set()
    offset = None
    for number in range(3):
        value = b"%d" % number
        with Wire(own_node) as wire:
            producer = BareProducer(wire, "producer")
            producer.init()
            assert producer.enlist(topic, 0, 1, 2) is Code.NONE
            for partition in range(3):
                assert producer.send(topic, value, partition=partition)[0] is Code.NONE
            assert producer.send_offset(group, source, number + 1) is Code.NONE
            if waits:
                assert producer.end(commit=True) is Code.NONE
            else:
                producer.ask_to_end(commit=True)
            crash(own_node)
        with Wire(own_node) as wire:
            BareProducer(wire, "producer").init()  # comes back when all is decided
        wait_decided(own_node, topic)
        found = {
            partition: {place[2] for place in visible(own_node, topic) if place[0] == partition}
            for partition in range(3)
        }
        assert found[0] == found[1] == found[2]
        assert found[0] in (committed, committed | {value})
        if found[0] != committed:
            committed.add(value)
            offset = number + 1
        assert value in committed or not waits
        expected = {} if offset is None else {0: offset}
        wait_until(lambda expected=expected: group_offsets(own_node, group) == expected, "the same for the offset")  # type: ignore[misc]


def test_a_commit_under_way_when_the_node_dies_tells_the_truth(
    own_node: Node, make_topic: CreateTopic, client: type[Client]
) -> None:
    """A client that hears of success finds everything, one that hears of failure finds all or nothing."""
    topic = make_topic()
    producer = client.producer(own_node.address, transactional_id="producer")
    producer.begin()
    producer.send(topic, to_all(b"x"))
    own_node.kill()
    own_node.start()
    try:
        producer.commit()
        allowed = [at(0, b"x")]
    except ClientFailure:
        allowed = [at(0, b"x"), set()]
    producer.close()
    with Wire(own_node) as wire:
        BareProducer(wire, "producer").init()
    wait_decided(own_node, topic)
    assert visible(own_node, topic) in allowed
