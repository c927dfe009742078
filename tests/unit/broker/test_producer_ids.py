"""Producer ids: never given twice, and at the price of one sync for a thousand."""

from collections.abc import Callable
from typing import Any

import pytest

from goqueue.broker.transactions.producer_ids import BLOCK_IDS, ProducerIds
from goqueue.machines.controller_commands import ProducerIdBlock, TakeProducerIds
from goqueue.model.errors import DiskFull
from goqueue.testing import VirtualClock
from tests.brokers import TestBroker


class Store:
    """A controller that answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[Callable[[Any], None]] = []
        self.end = 0
        self.ids = ProducerIds(self.submit, lambda: self.end)
        self.given: list[Any] = []

    def submit(self, command: TakeProducerIds, on_reply: Callable[[Any], None]) -> None:
        assert command.count == BLOCK_IDS
        self.asked.append(on_reply)

    def answer(self) -> None:
        first, self.end = self.end, self.end + BLOCK_IDS
        self.asked.pop(0)(ProducerIdBlock(first, self.end))

    def take(self, count: int = 1) -> None:
        for _ in range(count):
            self.ids.take(self.given.append)


def take(node: TestBroker, count: int) -> list[Any]:
    given: list[Any] = []
    for _ in range(count):
        node.broker.transactions.ids.take(given.append)
    node.commit()
    return given


def test_whoever_asks_while_a_block_is_asked_for_waits_for_that_one() -> None:
    store = Store()
    store.take(3)
    assert (store.given, len(store.asked)) == ([], 1)
    store.answer()
    store.take(BLOCK_IDS - 3)
    assert (store.given, store.asked) == (list(range(BLOCK_IDS)), [])
    store.take(2)
    store.answer()
    assert store.given[-2:] == [BLOCK_IDS, BLOCK_IDS + 1]


def test_a_fault_of_whoever_is_asked_for_a_block_lets_nobody_wait_for_ever() -> None:
    store = Store()
    ask, store.ids._submit = store.ids._submit, _fails
    with pytest.raises(RuntimeError):
        store.take()
    store.ids._submit = ask
    store.take()
    store.answer()
    assert store.given == [0]


def _fails(_command: TakeProducerIds, _on_reply: object) -> None:
    raise RuntimeError("a fault of ours")


def test_whoever_waits_is_told_that_there_are_none_and_the_next_asks_again() -> None:
    store, full = Store(), DiskFull("full")
    store.take(2)
    store.asked.pop(0)(full)
    assert store.given == [full, full]
    store.take()
    store.answer()
    assert store.given[2:] == [0]


def test_an_id_counts_as_given_once_it_is() -> None:
    store = Store()
    store.take(2)
    store.answer()
    assert [number for number in (-1, 0, 1, 2, BLOCK_IDS - 1, BLOCK_IDS) if store.ids.was_given(number)] == [0, 1]


def test_a_thousand_ids_are_stored_as_one_fact() -> None:
    node = TestBroker()
    (metadata,) = [each for each in node.replicas.ledgers if each.name == "@metadata/0"]
    before = metadata.end_offset
    assert take(node, BLOCK_IDS + 1) == list(range(BLOCK_IDS + 1))
    assert metadata.end_offset == before + 2


def test_an_id_is_never_given_twice_whatever_restarts() -> None:
    node, given = TestBroker(), []
    for is_crash in (True, False, True):
        given += take(node, 3)
        disk = node.disk.crashed(node.disk.op_count, lost=node.disk.unsynced(node.disk.op_count))
        if not is_crash:
            node.stop()
            disk = node.disk
        node = TestBroker(disk, VirtualClock(node.clock.now_ms()))
    assert given == sorted(set(given)), given
    assert [node.broker.transactions.ids.was_given(each) for each in given] == [True] * len(given)
