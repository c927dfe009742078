"""Groups and transactions in shards: each is made when it is first needed, and what belongs together is in one."""

import errno
from typing import Any
from zlib import crc32

from structlog.testing import capture_logs

from goqueue.broker.shards import SHARDS, shard_of_group, shard_of_transaction
from goqueue.machines.controller_commands import DeleteTopic
from goqueue.machines.groups import commands
from goqueue.machines.groups.consumer import facts as consumer_commands
from goqueue.machines.transactions.commands import AddPartitions, EndTogether, EndTransaction, InitProducer
from goqueue.machines.transactions.facts import State
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.records.control import decode_control
from goqueue.testing import VirtualClock
from tests.brokers import TestBroker

TIMEOUT_MS = 60_000
NAMES = [f"tx-{number}" for number in range(40)]


def shards(node: TestBroker, kind: str) -> set[int]:
    """Those that have a directory."""
    return {int(name) for name in node.disk.list(f"logs/@{kind}")}


def init(node: TestBroker, name: str) -> tuple[int, int]:
    code, producer_id, epoch = node.ask(node.broker.transactions.submit, InitProducer(name, TIMEOUT_MS))
    assert code is Code.NONE
    return producer_id, epoch


def add(node: TestBroker, name: str, who: tuple[int, int]) -> None:
    added = node.ask(node.broker.transactions.submit, AddPartitions(name, *who, (("orders", 0),)))
    assert added.code is Code.NONE


def commit(node: TestBroker, group: str, offset: int) -> Any:
    wanted = commands.CommitOffsets(group, (commands.OffsetToCommit("orders", 0, offset),))
    return node.ask(node.broker.groups.submit, wanted)


def crashed(node: TestBroker) -> TestBroker:
    return TestBroker(node.disk.crashed(), VirtualClock(node.clock.now_ms()))


def marker_epochs(node: TestBroker) -> list[int]:
    batches = node.broker.topics.replica("orders", 0).batches_from(0)
    marks = [decode_control(batch) for batch in batches if batch.is_control]
    return [mark.coordinator_epoch for mark in marks if mark is not None]


def test_a_node_that_nobody_uses_has_no_shards() -> None:
    node = TestBroker()
    node.create("orders")
    node.publish("orders", b"x")
    assert node.broker.groups.page(None, 10) == []
    assert node.broker.groups.kind_of("g") is None
    assert node.broker.transactions.describe("tx") is None
    assert (shards(node, "groups"), shards(node, "transactions")) == (set(), set())
    idle = node.clock.timers
    commit(node, "g", 1)
    init(node, "tx")
    assert shards(node, "groups") == {crc32(b"g") % SHARDS}
    assert shards(node, "transactions") == {crc32(b"tx") % SHARDS}
    assert node.clock.timers <= idle + 2, "one for each: what it keeps expires one day"


def test_groups_and_transactional_ids_are_found_again_wherever_they_are() -> None:
    node = TestBroker()
    node.create("orders")
    for number, name in enumerate(NAMES):
        commit(node, name, number)
        init(node, name)
    assert len(shards(node, "groups")) == len(shards(node, "transactions")) == SHARDS
    again = crashed(node)
    assert again.broker.groups.page(None, 100) == sorted(NAMES)
    found = {group.group_id: offsets for group, offsets in again.broker.groups.measured()}
    assert {name: [each.offset for each in found[name].values()] for name in NAMES} == {
        name: [number] for number, name in enumerate(NAMES)
    }
    known = again.broker.transactions.peek()
    assert known.page([State.EMPTY], None, 7) == sorted(NAMES)[:7]
    assert known.page([State.EMPTY], sorted(NAMES)[6], 100) == sorted(NAMES)[7:]
    assert known.count(State.EMPTY) == len(NAMES)
    for name in NAMES:
        of_name = known.get(name)
        assert of_name is not None
        assert known.of_producer(of_name.producer_id) == of_name


def test_producers_of_all_shards_have_ids_of_their_own() -> None:
    node = TestBroker()
    given = [init(node, name)[0] for name in NAMES]
    given += [init(crashed(node), name)[0] for name in ("a", "b")]
    assert len(set(given[:-2])) == len(NAMES)
    assert not set(given[:-2]) & set(given[-2:])


def test_all_transactions_of_a_writer_end_together() -> None:
    node = TestBroker()
    node.create("orders")
    writer = "job/with/slashes"
    names = [f"{writer}/{task}" for task in range(30)]
    assert {shard_of_transaction(name) for name in (*names, writer)} == {crc32(b"job") % SHARDS}
    members = []
    for name in names:
        who = init(node, name)
        add(node, name, who)
        members.append((name, *who))
    reply = node.ask(node.broker.transactions.end_together, EndTogether(writer, 1, True, tuple(members)))
    assert reply.code is Code.NONE
    assert node.broker.transactions.peek().mark(writer) == 1
    again = crashed(node).broker.transactions.peek()
    assert again.mark(writer) == 1
    assert {again.get(name).state for name in names} == {State.COMPLETE_COMMIT}  # type: ignore[union-attr]


def test_markers_carry_the_epoch_of_their_shard_which_rises_with_every_start() -> None:
    node = TestBroker()
    node.create("orders")
    for _ in range(3):
        who = init(node, "tx")
        add(node, "tx", who)
        node.ask(node.broker.transactions.submit, EndTransaction("tx", *who, commit=True))
        node = crashed(node)
    epochs = marker_epochs(node)
    assert len(epochs) == 3
    assert epochs == sorted(set(epochs))


def test_a_shard_that_cannot_be_made_is_refused_and_costs_the_others_nothing() -> None:
    node = TestBroker()
    node.create("orders")
    other = next(name for name in NAMES if shard_of_group(name) != shard_of_group("g"))
    node.disk.faults.add("make_directory", errno.EIO, prefix=f"logs/@groups/{shard_of_group('g')}")
    with capture_logs():
        assert isinstance(commit(node, "g", 1), GoQueueError)
    assert commit(node, other, 2).codes == (Code.NONE,)
    assert commit(node, "g", 1).codes == (Code.NONE,), "the disk is fine again"


def test_a_shard_that_is_made_later_knows_the_topics_and_hears_of_those_that_go() -> None:
    node = TestBroker()
    node.create("orders", 3)
    joined = consumer_commands.ConsumerHeartbeat(
        "late", "m", 0, rebalance_timeout_ms=1000, subscribed_topic_names=("orders",), owned=()
    )
    reply = node.ask(node.broker.groups.submit, joined)
    assert sorted(each for one in reply.assignment for each in one.partitions) == [0, 1, 2]
    commit(node, "other", 5)
    assert node.broker.groups.readers("orders") >= {"other"}
    assert node.ask(node.broker.topics.submit, DeleteTopic("orders")).code is Code.NONE
    assert "other" not in node.broker.groups.readers("orders")
