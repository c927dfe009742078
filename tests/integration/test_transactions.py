"""Transactions of each client: all of it or nothing, to every reader."""

import pytest
from confluent_kafka import KafkaError

from goqueue.model.codes import Code
from tests.integration.clients import Client, ClientFailure, Message
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import ALL_CLIENTS, CreateTopic
from tests.integration.process import Node, wait_until
from tests.integration.topics import end_offsets, group_offsets

Places = set[tuple[int, int, bytes | None]]
FENCED = {Code.PRODUCER_FENCED, Code.INVALID_PRODUCER_EPOCH, KafkaError._FENCED}


def visible(node: Node, topic: str, *, committed_only: bool = True) -> Places:
    """What every client reads, which is the same for all."""
    ends = {(topic, number): end for number, end in end_offsets(node, topic, committed_only=committed_only).items()}
    found = []
    for reader in ALL_CLIENTS:
        records = reader.read(node.address, ends, committed_only=committed_only)
        places = {record.place for record in records}
        assert len(places) == len(records), reader.name
        found.append(places)
    assert found[0] == found[1] == found[2]
    return found[0]


def to_all(value: bytes, partitions: int = 3) -> list[Message]:
    return [Message(number, value) for number in range(partitions)]


def at(offset: int, value: bytes, partitions: int = 3) -> Places:
    return {(number, offset, value) for number in range(partitions)}


def test_read_committed_shows_neither_aborted_nor_open_records(
    node: Node, make_topic: CreateTopic, client: type[Client]
) -> None:
    """One marker per partition takes one offset, and no reader ever gets one."""
    topic = make_topic()
    producer = client.producer(node.address, transactional_id=f"{topic}-producer")
    producer.begin()
    assert producer.send(topic, to_all(b"committed")) == [0, 0, 0]
    assert visible(node, topic) == set()
    producer.commit()
    wait_until(lambda: end_offsets(node, topic) == {0: 2, 1: 2, 2: 2}, "the markers")
    producer.begin()
    assert producer.send(topic, to_all(b"aborted")) == [2, 2, 2]
    producer.abort()
    wait_until(lambda: end_offsets(node, topic) == {0: 4, 1: 4, 2: 4}, "the markers")
    producer.begin()
    assert producer.send(topic, to_all(b"open")) == [4, 4, 4]
    Confluent.producer(node.address).send(topic, to_all(b"behind the open one"))
    committed = at(0, b"committed")
    assert visible(node, topic) == committed
    data = committed | at(2, b"aborted") | at(4, b"open") | at(5, b"behind the open one")
    assert visible(node, topic, committed_only=False) == data
    producer.commit()
    wait_until(lambda: end_offsets(node, topic) == {0: 7, 1: 7, 2: 7}, "the markers")
    assert visible(node, topic) == data - at(2, b"aborted")
    producer.close()


def test_offsets_in_a_transaction_count_only_if_it_commits(
    node: Node, make_topic: CreateTopic, group: str, client: type[Client]
) -> None:
    source, target = make_topic(), make_topic()
    Confluent.producer(node.address).send(source, [Message(0, b"%d" % number) for number in range(10)])
    producer = client.producer(node.address, transactional_id=f"{target}-producer")
    producer.begin()
    producer.send(target, to_all(b"first"))
    producer.send_offsets({(source, 0): 4}, group)
    producer.commit()
    wait_until(lambda: group_offsets(node, group) == {0: 4}, "the commit of the offset")
    producer.begin()
    producer.send(target, to_all(b"second"))
    producer.send_offsets({(source, 0): 8}, group)
    producer.abort()
    wait_until(lambda: set(end_offsets(node, target).values()) == {4}, "the markers")
    assert group_offsets(node, group) == {0: 4}
    assert visible(node, target) == at(0, b"first")
    producer.close()


def test_a_zombie_can_neither_write_nor_commit(node: Node, make_topic: CreateTopic, client: type[Client]) -> None:
    """Its open transaction is aborted, and the heir's first message is not taken for a duplicate."""
    topic = make_topic()
    zombie = client.producer(node.address, transactional_id=f"{topic}-producer")
    zombie.begin()
    zombie.send(topic, to_all(b"zombie"))
    heir = client.producer(node.address, transactional_id=f"{topic}-producer")
    heir.begin()
    heir.send(topic, to_all(b"heir"))
    with pytest.raises(ClientFailure) as refused:  # noqa: PT012  which of the two notices first is the library's choice
        zombie.send(topic, to_all(b"zombie again"))
        zombie.commit()
    assert refused.value.code in FENCED
    heir.commit()
    wait_until(lambda: set(end_offsets(node, topic).values()) == {4}, "the markers")
    assert visible(node, topic) == at(2, b"heir")
    assert visible(node, topic, committed_only=False) == at(0, b"zombie") | at(2, b"heir")
    heir.close()
    zombie.close()


def test_a_transaction_that_takes_too_long_is_aborted(
    node: Node, make_topic: CreateTopic, client: type[Client]
) -> None:
    """By the broker alone; what stands behind it becomes readable, and its late commit fails."""
    topic = make_topic()
    producer = client.producer(node.address, transactional_id=f"{topic}-producer", transaction_timeout_ms=1000)
    producer.begin()
    producer.send(topic, to_all(b"late"))
    Confluent.producer(node.address).send(topic, to_all(b"behind"))
    wait_until(lambda: end_offsets(node, topic, committed_only=True) == {0: 3, 1: 3, 2: 3}, "the abort")
    assert visible(node, topic) == at(1, b"behind")
    with pytest.raises(ClientFailure):
        producer.commit()
    assert visible(node, topic) == at(1, b"behind")
    producer.close()


def test_many_transactions_of_all_clients_interleave_and_none_leaks(node: Node, make_topic: CreateTopic) -> None:
    """Every second one aborts; the rest is read exactly."""
    topic = make_topic()
    producers = [kind.producer(node.address, transactional_id=f"{topic}-{kind.name}") for kind in ALL_CLIENTS]
    expected: Places = set()
    for round_number in range(6):
        for producer in producers:
            producer.begin()
        sent = []
        for number, producer in enumerate(producers):
            messages = to_all(b"%d of %d" % (round_number, number))
            sent.append([(one.partition, at, one.value) for one, at in zip(messages, producer.send(topic, messages))])
        for number, producer in enumerate(producers):
            if (round_number + number) % 2:
                producer.commit()
                expected |= set(sent[number])
            else:
                producer.abort()
    whole = dict.fromkeys(range(3), 6 * 3 * 2)
    wait_until(lambda: end_offsets(node, topic, committed_only=True) == whole, "the markers")
    assert visible(node, topic) == expected
    for producer in producers:
        producer.close()
