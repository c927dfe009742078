"""Power fails while a client writes to what it has asked to add to its transaction, without waiting for the answer: the
coordinator's ledger may lose that it was added, and the log must then not have what was written.
"""

from collections.abc import Callable, Sequence

import pytest
from structlog.testing import capture_logs

from goqueue.machines.groups import commands
from goqueue.machines.groups.commands import NO_OFFSET
from goqueue.model.codes import Code
from goqueue.model.topic_partition import TopicPartition
from goqueue.testing import MemoryDisk
from goqueue.wire.kafka.messages import produce
from goqueue.wire.kafka.messages import transactions as wire
from goqueue.wire.kafka.notation import Message
from tests.brokers import TestBroker
from tests.layers import in_layers
from tests.sim.crashes import images_by_file
from tests.unit.doors.kafka.share_members import House, topic_id
from tests.unit.doors.kafka.transactional import Producer

ADD, PRODUCE, ADD_GROUP, COMMIT, END = 1, 9, 1, 3, 1
OLD_ADD, NEW_ADD = 1, 4
TIMEOUT_MS = 60_000


def add(producer: Producer, version: int = OLD_ADD) -> tuple[Message, int]:
    topics = [wire.AddPartitionsToTxnTopic("orders", [0])]
    if version >= NEW_ADD:
        one = wire.AddPartitionsToTxnTransaction(producer.name, producer.id, producer.epoch, topics=topics)
        return wire.AddPartitionsToTxnRequest(transactions=[one]), version
    return wire.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.name,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=topics,
    ), version


def write(producer: Producer, *values: bytes) -> tuple[Message, int]:
    request = producer.request(*values)
    request.topic_data[0].name = "orders"
    return request, PRODUCE


def add_group(producer: Producer) -> tuple[Message, int]:
    return wire.AddOffsetsToTxnRequest(producer.name, producer.id, producer.epoch, "readers"), ADD_GROUP


def commit_offset(producer: Producer) -> tuple[Message, int]:
    place = wire.TxnOffsetCommitRequestPartition(0, 1)
    topic = wire.TxnOffsetCommitRequestTopic("orders", topic_id("orders"), [place])
    request = wire.TxnOffsetCommitRequest(producer.name, "readers", producer.id, producer.epoch, topics=[topic])
    return request, COMMIT


def sync(house: House, *names: str) -> None:
    """These logs, and no other: the commit thread takes one after the other."""
    for replica in (*house.broker.replicas, *house.broker.replicas.ledgers):
        if replica.name.startswith(names):
            replica.sync()
    house.broker.clock.run()


def pipelined(*requests: Callable[[Producer], tuple[Message, int]]) -> tuple[House, Producer, int]:
    """All sent at once; of what that writes, the log and the groups are synced first."""
    house = House()
    producer = Producer(house).init()
    house.broker.replicas.sync()
    since = house.broker.disk.op_count
    for request in requests:
        producer.post(*request(producer))
    sync(house, "orders", "@groups")
    house.broker.commit()
    return house, producer, since


def states(image: MemoryDisk) -> tuple[bool, Code, int]:
    """After the time-out of every transaction: whether the log has an end to its transactions, and the group to its
    offsets.
    """
    with capture_logs():
        node = TestBroker(image)
    node.clock.advance(2 * TIMEOUT_MS)
    node.commit()
    replica = node.broker.topics.replica("orders", 0)
    question = commands.FetchOffsets("readers", (TopicPartition("orders", 0),), require_stable=True)
    (fetched,) = node.ask(node.broker.groups.submit, question).offsets
    return replica.last_stable_offset == replica.end_offset, fetched.code, fetched.offset


PIPELINES: Sequence[tuple[Callable[[Producer], tuple[Message, int]], ...]] = [
    (add, lambda one: write(one, b"a"), lambda one: write(one, b"b")),
    (lambda one: add(one, NEW_ADD), lambda one: write(one, b"a")),
    (add_group, commit_offset),
    (add, lambda one: write(one, b"a"), add_group, commit_offset, lambda one: write(one, b"b")),
]


@pytest.mark.parametrize("pipeline", in_layers(PIPELINES, first=2))
def test_no_transaction_hangs_whatever_each_log_kept(
    pipeline: tuple[Callable[[Producer], tuple[Message, int]], ...],
) -> None:
    house, _, since = pipelined(*pipeline)
    disk = house.broker.disk
    for upto in range(since, disk.op_count + 1):
        for label, image in images_by_file(disk, upto):
            assert states(image) == (True, Code.NONE, NO_OFFSET), label


def test_a_client_that_does_not_wait_is_answered_in_order_and_may_commit() -> None:
    house = House()
    producer = Producer(house).init()
    producer.post(*add(producer))
    for value in (b"a", b"b", b"c"):
        producer.post(*write(producer, value))
    assert house.broker.broker.topics.replica("orders", 0).end_offset == 0
    house.broker.commit()
    (added,) = producer.next_reply(wire.AddPartitionsToTxnResponse).results_by_topic_v3_and_below
    assert [each.partition_error_code for each in added.results_by_partition] == [Code.NONE]
    answers = producer.replies(produce.ProduceResponse, PRODUCE)
    parts = [answer.responses[0].partition_responses[0] for answer in answers]
    assert [(each.error_code, each.base_offset) for each in parts] == [(0, 0), (0, 1), (0, 2)]
    end = wire.EndTxnRequest(producer.name, producer.id, producer.epoch, True)
    assert producer.call(end, END, wire.EndTxnResponse).error_code == Code.NONE
    house.broker.commit()
    replica = house.broker.broker.topics.replica("orders", 0)
    assert (replica.end_offset, replica.last_stable_offset) == (4, 4)


def test_what_has_joined_for_good_does_not_wait_for_what_has_not() -> None:
    house = House(partitions=2)
    producer = Producer(house).init()
    producer.post(*add(producer))
    house.broker.commit()
    producer.post(*write(producer, b"a"))
    house.broker.commit()
    producer.post(*add_group(producer))
    producer.post(*write(producer, b"b"))
    assert house.broker.broker.topics.replica("orders", 0).end_offset == 2


def test_an_older_client_that_added_nothing_is_refused_though_another_waits() -> None:
    house = House(partitions=2)
    first, second = Producer(house, "first").init(), Producer(house, "second").init()
    first.post(*add(first))
    second.post(*write(second, b"a"))
    house.broker.commit()
    (answer,) = second.replies(produce.ProduceResponse, PRODUCE)
    assert answer.responses[0].partition_responses[0].error_code == Code.INVALID_TXN_STATE
