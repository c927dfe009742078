"""A node on a disk in memory: what it finds, what it looks after, and that it leaves nothing behind."""

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from goqueue.broker.topics import topics
from goqueue.machines.controller_commands import CreateTopic
from goqueue.model.errors import DataDirectoryLocked, DiskFull, LogPoisoned
from goqueue.node.compactions import RunPlan
from goqueue.node.doors import DoorStaysShut
from goqueue.node.node import Node
from goqueue.node.settings import Settings
from goqueue.node.values import Address, Switch
from goqueue.storage import compaction
from goqueue.storage.compaction import Plan
from goqueue.storage.data_directory import OpeningStopped
from goqueue.storage.swap import Manifest
from goqueue.testing import MemoryDisk
from tests.brokers import TestBroker
from tests.directories import open_directory
from tests.logs import stored_batches

ANY_PORT = Address("127.0.0.1", 0)
QUIET = Settings(dev=Switch.ON, kafka=ANY_PORT, http=ANY_PORT, grpc=ANY_PORT)
RESTLESS = replace(QUIET, maintenance_interval_ms=1)


async def never(plan: Plan) -> Manifest | None:
    raise AssertionError(f"{plan.directory} should not be compacted")


def filled(partitions: int = 2, **overrides: str) -> MemoryDisk:
    """A disk that a node has left: a topic `orders`, with three messages in its first partition."""
    broker = TestBroker()
    broker.create("orders", partitions, **overrides)
    for value in (b"1", b"2", b"3"):
        broker.publish("orders", value, key=b"k", timestamp=broker.clock.now_ms())
        broker.broker.topics.replica("orders", 0).log.roll(broker.clock.now_ms())
    broker.stop()
    return broker.disk


def live(node: Node, act: Callable[[Node], Awaitable[None]]) -> None:
    async def whole_life() -> None:
        await node.open()
        try:
            async with asyncio.timeout(30):
                await act(node)
        finally:
            await node.close()

    asyncio.run(whole_life())


def test_a_start_counts_what_is_there_and_a_stop_gives_it_back() -> None:
    disk = filled()

    async def open_and_close() -> None:
        node = Node(QUIET, disk, compact=never)
        opened = await node.open()
        assert (opened.topics, opened.partitions, opened.failed) == (1, 2, 0)
        assert opened.kafka[1] > 0
        await node.close()
        await node.close()

    asyncio.run(open_and_close())
    directory = open_directory(disk, 0)
    assert directory.report == []
    directory.close()


@pytest.mark.parametrize("logs", [0, 1, 7, 60])
def test_a_node_that_is_stopped_while_it_opens_its_logs_opens_no_more_and_leaves_them_clean(logs: int) -> None:
    disk = filled(partitions=100)
    asked: list[bool] = []

    def is_stopping() -> bool:
        asked.append(len(asked) >= logs)
        return asked[-1]

    async def start_twice() -> None:
        with pytest.raises(OpeningStopped):
            await Node(QUIET, disk, compact=never).open(is_stopping=is_stopping)
        assert asked.count(False) == logs
        assert asked.count(True) <= topics.PARTITIONS_PER_STEP, "those that were opened with it, and no others"
        node = Node(QUIET, disk, compact=never)
        opened = await node.open()
        assert (opened.topics, opened.partitions, opened.failed, opened.messages) == (1, 100, 0, 3)
        assert node._directory is not None
        assert node._directory.report == []
        await node.close()

    asyncio.run(start_twice())


def test_a_second_node_is_refused_and_leaves_the_first_and_no_thread_behind() -> None:
    disk = MemoryDisk()

    async def open_both() -> None:
        first = Node(QUIET, disk, compact=never)
        await first.open()
        threads = set(threading.enumerate())
        with pytest.raises(DataDirectoryLocked):
            await Node(QUIET, disk, compact=never).open()
        assert {
            thread for thread in set(threading.enumerate()) - threads if thread.name.startswith("goqueue-commit")
        } == set()
        with pytest.raises(DataDirectoryLocked):
            disk.lock("lock")
        await first.close()
        disk.lock("lock").release()

    asyncio.run(open_both())


def test_an_address_that_is_taken_stops_the_start_and_gives_the_directory_back() -> None:
    async def open_both() -> None:
        first = Node(QUIET, MemoryDisk(), compact=never)
        opened = await first.open()
        disk = MemoryDisk()
        with pytest.raises(DoorStaysShut, match=r"kafka door at .*: Address already in use"):
            await Node(replace(QUIET, kafka=opened.kafka), disk, compact=never).open()
        disk.lock("lock").release()
        await first.close()

    asyncio.run(open_both())


def test_a_first_start_on_a_full_disk_is_refused_and_the_next_one_with_room_is_not() -> None:
    disk = MemoryDisk()
    full = replace(QUIET, disk_reserve_bytes=1 << 60)

    async def open_both() -> None:
        with pytest.raises(DiskFull, match=r"new and cannot store the id of its cluster: .*held in reserve"):
            await Node(full, disk, compact=never).open()
        node = Node(QUIET, disk, compact=never)
        await node.open()
        assert node._assembly is not None
        name = node._assembly.broker.identity.cluster_id
        assert len(name) == 22
        await node.close()
        again = Node(full, disk, compact=never)  # one that has a name needs no room for it
        await again.open()
        assert again._assembly is not None
        assert again._assembly.broker.identity.cluster_id == name
        await again.close()

    with capture_logs():
        asyncio.run(open_both())


def test_a_topic_that_was_made_is_there_after_a_restart() -> None:
    disk = MemoryDisk()

    async def create(node: Node) -> None:
        assert node._assembly is not None
        made = asyncio.Event()
        node._assembly.broker.topics.submit(CreateTopic("orders", b"i" * 16, 2), lambda reply: made.set())
        await made.wait()

    async def look(node: Node) -> None:
        assert node._assembly is not None
        assert list(node._assembly.broker.topics.image.topics) == ["orders"]

    live(Node(QUIET, disk, compact=never), create)
    live(Node(QUIET, disk, compact=never), look)


def test_old_records_go_while_the_node_runs() -> None:
    """They are from the year 2001."""
    disk = filled()

    async def run_until_gone(node: Node) -> None:
        stop = asyncio.Event()
        assert node._assembly is not None
        replica = node._assembly.broker.topics.replica("orders", 0)
        advance_start = replica.log.advance_start

        def gone(offset: int) -> None:
            advance_start(offset)
            stop.set()

        replica.log.advance_start = gone  # type: ignore[method-assign, assignment]
        await node.run(stop)
        assert replica.start_offset == 3

    live(Node(RESTLESS, disk, compact=never), run_until_gone)


def compacted_offsets(compact: Callable[[MemoryDisk, asyncio.Event], RunPlan]) -> list[int]:
    """Three appends of one key in three segments, then a node that looks after them. The offsets that are left."""
    disk = filled(1, cleanup_policy="compact")
    stop = asyncio.Event()
    live(Node(RESTLESS, disk, compact=compact(disk, stop)), lambda node: node.run(stop))
    directory = open_directory(disk, 0)
    left = [each.base_offset for each in stored_batches(directory.logs["orders", 0])]
    directory.close()
    return left


def test_logs_that_ask_for_it_are_compacted() -> None:
    def compact_once(disk: MemoryDisk, stop: asyncio.Event) -> RunPlan:
        async def compact(plan: Plan) -> Manifest | None:
            if plan.directory == "logs/orders/0":
                stop.set()
            return compaction.compact(disk, plan)

        return compact

    assert compacted_offsets(compact_once) == [2]


def test_a_compaction_that_fails_is_told_and_changes_nothing() -> None:
    def fail_twice(disk: MemoryDisk, stop: asyncio.Event) -> RunPlan:
        calls = []

        async def compact(plan: Plan) -> Manifest | None:
            calls.append(plan)
            if len(calls) == 2:
                stop.set()
            raise LogPoisoned("no luck")

        return compact

    with capture_logs() as events:
        assert compacted_offsets(fail_twice) == [0, 1, 2]
    assert [event["log"] for event in events if event["event"] == "compaction failed"] == ["logs/orders/0"] * 2


def test_a_crash_is_told_with_what_it_cost() -> None:
    broker = TestBroker()
    broker.create("orders")
    broker.publish("orders", b"x")
    broker.commit()
    disk = broker.disk.crashed(lost=broker.disk.unsynced())

    async def nothing(node: Node) -> None:
        pass

    with capture_logs() as events:
        live(Node(QUIET, disk, compact=never), nothing)
    told = {event["log"]: event for event in events if event["event"] == "recovered log"}
    assert (told["logs/orders/0"]["log_level"], told["logs/orders/0"]["damaged_batches"]) == ("info", 0)
    assert told["logs/orders/0"]["scanned_bytes"] > 0


def test_a_partition_that_cannot_be_opened_is_counted_and_the_others_are_served() -> None:
    disk = filled()
    disk.faults.add("open", errno.EIO, prefix="logs/orders/1", suffix=".log", forever=True)

    async def open_and_close() -> None:
        node = Node(QUIET, disk, compact=never)
        opened = await node.open()
        assert (opened.partitions, opened.failed) == (2, 1)
        await node.close()

    with capture_logs():
        asyncio.run(open_and_close())
