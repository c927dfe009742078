"""A node that joins refuses to go on with an etcd that has forgotten what it knows, and with no other."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from goqueue.cluster.registration import KnownEpoch, Registration
from goqueue.model.metadata import (
    ClusterKey,
    ClusterValue,
    Committed,
    Event,
    Key,
    Listing,
    NodeKey,
    NodeValue,
    PartitionKey,
    Put,
    Step,
)
from goqueue.model.placements import NodeInfo, Placement

TOPIC_ID = bytes(16)
PARTITION = PartitionKey(TOPIC_ID, 0)


class Book:
    """What is stored, and what is known of it in a directory."""

    directory, cluster_id, recoveries = "here", "one", 0

    def __init__(self) -> None:
        self.revision = 0
        self.stored = 0
        self.epoch = 0
        self.entries: dict[Key, Event] = {}
        self.after_list: Callable[[], None] = lambda: None
        self.put(ClusterKey(), ClusterValue("one", b"secret", 1, 1))
        self.put(NodeKey(1), NodeValue("here"))
        self.elect(5)

    def put(self, key: Key, value: Any) -> None:
        self.stored += 1
        self.entries[key] = Event(key, value, self.stored)

    def elect(self, epoch: int) -> None:
        self.put(PARTITION, Placement(2, 9, epoch, (1, 2, 3), (1, 2, 3)))

    def copy(self) -> None:
        """The node hears of all that is stored, and copies under the epoch of the partition."""
        placed = self.entries[PARTITION].value
        assert isinstance(placed, Placement)
        self.revision, self.epoch = self.stored, placed.epoch

    @property
    def halted(self) -> str:
        cluster = self.entries[ClusterKey()].value
        assert isinstance(cluster, ClusterValue)
        return cluster.halted

    # -- the directory

    def belong_to(self, cluster_id: str) -> None:
        raise NotImplementedError

    def epochs(self) -> list[KnownEpoch]:
        return [KnownEpoch(TOPIC_ID, 0, self.epoch)]

    # -- the store

    def list(self, on_listed: Callable[[Listing], None]) -> None:
        listing = Listing(self.stored, list(self.entries.values()))
        self.after_list()
        on_listed(listing)

    def txn(self, step: Step, on_done: Callable[[Committed], None]) -> None:
        for put in step.puts:
            assert isinstance(put, Put)
            self.put(put.key, put.value)
        on_done(Committed(self.stored))

    def grant(self, _ttl_s: int, on_done: Callable[[int], None]) -> None:
        on_done(7)

    def revoke(self, _lease: int, on_done: Callable[[None], None]) -> None:
        raise NotImplementedError


def register(book: Book) -> NodeInfo:
    about: Any = book
    me = NodeInfo(1, 0, kafka=("127.0.0.1", 9092))
    return asyncio.run(Registration(about, me, about, ClusterValue("two", b"", 1, 1), 3).register())


def test_a_node_that_learns_more_while_etcd_answers_halts_nobody() -> None:
    """It has lost its session, not its watch: it follows the next leader before it looks at the answer."""
    book = Book()
    book.copy()

    def next_leader() -> None:
        book.elect(6)
        book.copy()

    book.after_list = next_leader
    assert register(book).incarnation > 0
    assert book.halted == ""


@pytest.mark.parametrize("forgets", ["an epoch", "a revision"])
def test_an_etcd_that_knows_less_than_the_node_halts_all(forgets: str) -> None:
    book = Book()
    book.copy()
    if forgets == "an epoch":
        book.elect(4)
    else:
        book.revision += 10
    register(book)
    assert "node 1 has seen" in book.halted
