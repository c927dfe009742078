"""Transactions step by step: what is begun and never used costs little, and only for a while."""

from typing import Any

import pytest

from goqueue.broker.shards import shard_of_transaction
from goqueue.broker.transactions import steps as module
from goqueue.model.codes import Code
from goqueue.model.errors import NotCoordinator
from goqueue.model.refusal import Refused
from goqueue.model.transactions import Placed, Producer
from goqueue.records.messages import NewMessage
from tests.unit.broker.queue_node import QueueNode, queue_node


def init(node: QueueNode, name: str, timeout_ms: int = 60_000) -> Producer:
    reply = node.reply(lambda done: node.broker.transaction_steps.init(name, timeout_ms, done))
    assert reply.code is Code.NONE
    return Producer(reply.producer_id, reply.epoch, name)


def begin(node: QueueNode, producer: Producer) -> Any:
    return node.reply(lambda done: node.broker.transaction_steps.begin(producer, done))


def publish(node: QueueNode, producer: Producer, value: bytes = b"x", sequence: int | None = None) -> Any:
    message = NewMessage(value)
    return node.reply(lambda done: node.broker.transaction_steps.publish(producer, "orders", message, sequence, done))


def end(node: QueueNode, producer: Producer, commit: bool = True) -> Any:
    return node.reply(lambda done: node.broker.transaction_steps.end(producer, commit=commit, on_ended=done))


def code(reply: Any) -> Code:
    assert isinstance(reply, Refused)
    return reply.code


def test_begun_and_not_used_is_bounded_and_makes_room_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEGUN_MAX", 2)
    node = queue_node()
    first, second, third = (init(node, name, 5000) for name in ("a", "b", "c"))
    assert [begin(node, each) for each in (first, second)] == [f"txn-{each.producer_id}-1" for each in (first, second)]
    assert code(begin(node, third)) is Code.CONCURRENT_TRANSACTIONS
    node.pass_ms(5000)
    assert begin(node, third) == f"txn-{third.producer_id}-1"


def test_what_was_begun_is_forgotten_with_its_first_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEGUN_MAX", 1)
    node = queue_node()
    first, second = (init(node, name) for name in ("a", "b"))
    begin(node, first)
    assert publish(node, first) == Placed(0, 0, is_duplicate=False)
    assert begin(node, second) == f"txn-{second.producer_id}-1"


@pytest.mark.parametrize("how", ["stop", "kill", "power"])
def test_a_restart_forgets_what_was_begun_and_nothing_else(how: str) -> None:
    node = queue_node()
    used, unused = (init(node, name) for name in ("a", "b"))
    begin(node, used)
    begin(node, unused)
    publish(node, used, b"kept")
    node = node.restarted(how)
    assert code(publish(node, unused)) is Code.INVALID_TXN_STATE
    assert publish(node, used, b"kept", sequence=0) == Placed(0, 0, is_duplicate=True)
    assert end(node, used) is None
    assert node.values("orders") == [b"kept"]
    assert begin(node, unused) == f"txn-{unused.producer_id}-1"


def test_the_next_transaction_may_begin_at_once() -> None:
    node = queue_node()
    producer = init(node, "a")
    for number in range(3):
        assert begin(node, producer) == f"txn-{producer.producer_id}-{number + 1}"
        publish(node, producer, b"%d" % number)
        assert end(node, producer, commit=number != 1) is None
    assert node.values("orders") == [b"0", b"2"]
    transactions = node.broker.transactions
    assert (transactions.committed, transactions.aborted) == (2, 1)


def test_whoever_is_initialized_anew_waits_until_the_old_transaction_is_aborted() -> None:
    node = queue_node()
    old = init(node, "a")
    begin(node, old)
    publish(node, old, b"old")
    new = init(node, "a")
    assert new.epoch > old.epoch
    assert code(publish(node, old)) is Code.PRODUCER_FENCED
    node.put("orders", b"other")
    assert node.values("orders") == [b"other"]


def test_a_shard_that_is_out_of_service_costs_the_transactions_of_others_nothing() -> None:
    node = queue_node()
    names = {shard_of_transaction(name): name for name in ("a", "b", "c", "d")}
    (failed, lost), *others = names.items()
    assert others
    producers = {name: init(node, name) for name in names.values()}
    node.broker.transactions._coordinators.here(failed).unload()
    for _, name in others:
        assert begin(node, producers[name]) == f"txn-{producers[name].producer_id}-1"
        assert isinstance(publish(node, producers[name], name.encode()), Placed)
        assert end(node, producers[name]) is None
    assert node.values("orders") == [name.encode() for _, name in others]
    assert isinstance(begin(node, producers[lost]), NotCoordinator)


def test_who_waits_for_the_end_of_a_transaction_is_answered_though_its_ledger_fails_for_good() -> None:
    """What was decided is durable: it will be seen after a restart. Nobody waits that long."""
    node = queue_node()
    producer = init(node, "a")
    begin(node, producer)
    publish(node, producer, b"x")
    name = f"@transactions/{shard_of_transaction('a')}"
    (ledger,) = [each for each in node.replicas.ledgers if each.name == name]
    told: list[Any] = []
    markers = node.broker.transactions.markers
    wanted: list[Any] = []
    markers.end_here = lambda *asked: wanted.append(asked)  # type: ignore[method-assign]  # of a slow partition
    node.broker.transaction_steps.end(producer, commit=True, on_ended=told.append)
    node.commit()
    assert (len(wanted), told) == (1, [])
    ledger.log.poison("sync", OSError(5, "Input/output error"))
    type(markers).end_here(markers, *wanted[0])
    node.commit()
    assert told == [None]
    again = node.restarted("kill")
    assert again.values("orders") == [b"x"]
