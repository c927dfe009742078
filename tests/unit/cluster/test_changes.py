"""Commands on their way through etcd: races are decided anew, and an answer that was lost does nothing twice."""

from collections.abc import Sequence
from typing import Any

import pytest

from goqueue.cluster.changes import Change, Changes, Reread
from goqueue.cluster.etcd.port import EtcdFault
from goqueue.cluster.mirror import Mirror
from goqueue.machines.controller_commands import (
    CreateTopic,
    DeleteTopic,
    ProducerIdBlock,
    Result,
    SetOptions,
    TakeProducerIds,
)
from goqueue.machines.machine import Command
from goqueue.model.codes import Code
from goqueue.model.metadata import (
    Committed,
    Compare,
    Conflict,
    Event,
    Key,
    LiveKey,
    NodeKey,
    NodeValue,
    PartitionKey,
    Put,
    Step,
    TopicKey,
    TopicValue,
    Value,
)
from goqueue.model.partition_limits import PartitionLimits
from goqueue.model.placements import NodeInfo, Placement

ID = bytes(range(16))


class Parts:
    """Keys as etcd would have them, and a mirror that sees every change."""

    def __init__(self, nodes: Sequence[int] = (1, 2, 3)) -> None:
        self.mirror = Mirror(PartitionLimits(), 0)
        self.changes = Changes(self.mirror)
        self.keys: dict[Key, int] = {}
        self.revision = 0
        self.steps: list[Step] = []
        for node in nodes:
            self.put((NodeKey(node), NodeValue("disk")), (LiveKey(node), NodeInfo(node, 100 + node)))

    def put(self, *puts: tuple[Key, Value | None]) -> None:
        self.revision += 1
        for key, value in puts:
            if value is None:
                self.keys.pop(key, None)
            else:
                self.keys[key] = self.revision
        self.mirror.changed([Event(key, value, self.revision) for key, value in puts])

    def do(self, step: Step) -> bool:
        for compare in step.compares:
            assert isinstance(compare, Compare)
            if self.keys.get(compare.key, 0) != compare.revision:
                return False
        self.put(*((put.key, put.value) for put in step.puts))
        return True

    def run(self, command: Command[Any], *, lose: Sequence[int] = (), before: dict[int, Put] | None = None) -> Any:
        """`lose`: the answers of which steps are lost. `before`: what another node does before a step."""
        change: Change[Any] = self.changes.of(command)
        answer: Any = None
        number = 0
        while True:
            try:
                wanted = change.send(answer)
            except StopIteration as end:
                return end.value
            answer = None
            if isinstance(wanted, Step):
                self.steps.append(wanted)
                if before and number in before:
                    self.put((before[number].key, before[number].value))
                is_done = self.do(wanted)
                answer = Committed(self.revision) if is_done else Conflict(self.revision)
                if number in lose:
                    answer = EtcdFault("lost")
                number += 1
            elif not isinstance(wanted, Reread):
                answer = wanted.is_so()


def test_a_topic_is_made_in_steps_of_a_hundred_partitions_and_shown_last() -> None:
    parts = Parts()
    reply = parts.run(CreateTopic("orders", ID, 250))
    assert (reply.code, reply.topic.partitions, reply.topic.replication_factor) == (Code.NONE, 250, 3)
    assert [len(step.puts) for step in parts.steps] == [1, 100, 100, 50, 1]
    made = [put.value.is_making for step in parts.steps for put in step.puts if isinstance(put.value, TopicValue)]
    assert made == [True, False]
    placements = [one.value for one in parts.mirror.placements(ID).values()]
    assert {one.leader for one in placements if isinstance(one, Placement)} == {1, 2, 3}
    assert all(isinstance(one, Placement) and one.epoch == 0 and len(one.isr) == 3 for one in placements)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_topic_whose_maker_lost_an_answer_is_made_once(lost: int) -> None:
    parts = Parts()
    reply = parts.run(CreateTopic("orders", ID, 3), lose=[lost])
    assert reply.code is Code.NONE
    assert len(parts.mirror.placements(ID)) == 3
    topic = parts.mirror.topic("orders")
    assert topic is not None
    assert not topic.is_making


def test_a_name_that_another_node_took_first_is_taken() -> None:
    parts = Parts()
    other = Put(TopicKey("orders"), TopicValue(bytes(16), 1, {}, is_making=True))
    reply = parts.run(CreateTopic("orders", ID, 3), before={0: other})
    assert reply.code is Code.TOPIC_ALREADY_EXISTS


def test_a_second_maker_does_not_set_back_what_leads_already() -> None:
    parts = Parts()
    key = PartitionKey(ID, 1)
    led = Placement(2, 102, 7, (2, 3), (2, 3, 1))
    reply = parts.run(CreateTopic("orders", ID, 3), before={1: Put(key, led)})
    assert reply.code is Code.NONE
    assert parts.mirror.find(key) == led


def test_more_copies_than_nodes_are_refused_and_so_are_too_few_that_live() -> None:
    assert Parts([1, 2]).run(CreateTopic("a", ID, 1, replication_factor=3)).code is Code.INVALID_REPLICATION_FACTOR
    parts = Parts()
    parts.put((LiveKey(2), None), (LiveKey(3), None))
    assert parts.run(CreateTopic("a", ID, 1, replication_factor=3)).code is Code.INVALID_REPLICATION_FACTOR
    one = parts.run(CreateTopic("b", ID, 1, {"min.insync.replicas": "1"}, replication_factor=3))
    assert one.code is Code.NONE
    (placed,) = parts.mirror.placements(ID).values()
    assert isinstance(placed.value, Placement)
    assert (placed.value.isr, len(placed.value.replicas)) == ((1,), 3)


def test_copies_are_where_they_were_asked_for() -> None:
    parts = Parts()
    reply = parts.run(CreateTopic("orders", ID, 2, assignments=((3, 1), (2, 3))))
    assert reply.topic.replication_factor == 2
    placed = [parts.mirror.placements(ID)[number].value for number in range(2)]
    assert [one.replicas for one in placed if isinstance(one, Placement)] == [(3, 1), (2, 3)]
    refused = parts.run(CreateTopic("other", ID, 1, assignments=((9,),)))
    assert refused.code is Code.INVALID_REPLICA_ASSIGNMENT


def test_a_block_of_producer_ids_is_given_once_though_its_answer_was_lost() -> None:
    parts = Parts()
    assert parts.run(TakeProducerIds(1000), lose=[0]) == ProducerIdBlock(1000, 2000)
    assert parts.run(TakeProducerIds(1000)) == ProducerIdBlock(2000, 3000)


def test_options_are_decided_anew_when_another_node_changed_the_topic_meanwhile() -> None:
    parts = Parts()
    parts.run(CreateTopic("orders", ID, 1))
    topic = parts.mirror.topic("orders")
    assert topic is not None
    other = Put(TopicKey("orders"), topic._replace(overrides={"retention.ms": "5"}))
    assert parts.run(SetOptions("orders", {"segment.ms": "7"}), before={0: other}).code is Code.NONE
    topic = parts.mirror.topic("orders")
    assert topic is not None
    assert dict(topic.overrides) == {"retention.ms": "5", "segment.ms": "7"}
    refused = parts.run(SetOptions("orders", {"min.insync.replicas": "4"}))
    assert refused.code is Code.INVALID_CONFIG


def test_a_deletion_whose_answer_was_lost_is_done() -> None:
    parts = Parts()
    parts.run(CreateTopic("orders", ID, 1))
    assert parts.run(DeleteTopic("orders"), lose=[0]) == Result()
    topic = parts.mirror.topic("orders")
    assert topic is not None
    assert topic.is_deleting
