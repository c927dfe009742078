"""Topics of a node of a cluster, whose copies come and go while others of the same topic are being opened."""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest

from goqueue.broker.topics.topics import OnResult, TopicCommand, Topics
from goqueue.model.placements import Placement
from goqueue.model.refusal import NotLeader
from goqueue.model.topics import Image, Topic
from goqueue.records.batch import check_batch
from goqueue.replica.replicas import Seat
from tests.brokers import TOPIC_ID, Parts, data
from tests.unit.broker.test_topic_jobs import Hand

HERE, ELSEWHERE = (1, 2), (2, 3)


class Metadata:
    """`MetadataStore`, as the test says."""

    def __init__(self) -> None:
        self.image = Image()
        self.deleting: dict[str, Any] = {}
        self.on_change: Callable[[Iterable[str]], None] = lambda names: None

    def place(self, *placed: tuple[int, ...], leader: int = -1, epoch: int = 0) -> None:
        """The partitions of `orders`, each on these nodes, led by one of them: the last, if nothing is said."""
        placements = tuple(
            Placement(replicas=nodes, isr=nodes, leader=nodes[leader], incarnation=1, epoch=epoch) for nodes in placed
        )
        topic = Topic("orders", TOPIC_ID, len(placed), {}, placements)
        self.image = self.image.replaced(self.image.revision + 1, {"orders": topic})
        self.on_change(["orders"])

    def removed(self, name: str) -> None:
        raise AssertionError(name)

    def submit(self, command: TopicCommand, on_reply: OnResult) -> None:
        raise AssertionError(command)


def test_a_topic_that_was_shown_stays_shown_while_a_copy_that_has_moved_is_put_aside() -> None:
    """Whoever sees it vanish takes it for deleted: groups forget what they committed."""
    parts, store, hand = Parts(), Metadata(), Hand()
    parts.replicas.seat = Seat(1, 1)
    topics = Topics(store, parts.replicas, parts.clock, Random(1))
    topics.work_aside(hand)
    gone: list[Topic] = []
    topics.on_change.append(lambda change: gone.extend(change.gone))
    store.place(HERE, HERE)
    assert topics.exists("orders", 1)
    store.place(ELSEWHERE, HERE)
    hand.step()  # both were opened, and one of them has moved meanwhile
    assert hand.waiting
    assert gone == []
    assert topics.exists("orders", 1)
    store.place(ELSEWHERE, HERE, HERE)
    assert topics.exists("orders", 2), "a partition that the metadata has is unknown here"
    while hand.waiting:
        hand.step()
    assert gone == []
    assert [topics.has("orders", number) for number in range(3)] == [False, True, True]


def test_a_leader_whose_copy_has_moved_takes_no_writes_while_something_else_is_being_opened() -> None:
    """It is told of both at once, as after a cut: acks=1 would be given for what is put aside a moment later."""
    parts, store, hand = Parts(), Metadata(), Hand()
    parts.replicas.seat = Seat(1, 1)
    topics = Topics(store, parts.replicas, parts.clock, Random(1))
    topics.work_aside(hand)
    store.place(HERE, leader=0)
    hand.step()
    replica = parts.replicas.get("orders", 0)
    assert replica is not None
    assert replica.role.is_leader
    store.place(HERE, HERE, leader=0)
    assert hand.waiting, "the second partition is being opened"
    told: list[type] = []
    replica.append(check_batch(data(b"a")), 1000)
    replica.when_reached(1, lambda: told.append(type(replica.failure)))
    store.place(ELSEWHERE, HERE, leader=0, epoch=1)
    assert parts.replicas.get("orders", 0) is replica
    assert told == [NotLeader], "who waits is told at once"
    with pytest.raises(NotLeader):
        replica.append(check_batch(data(b"b")), 1000)
    while hand.waiting:
        hand.step()
    assert [topics.has("orders", number) for number in range(2)] == [False, True]
