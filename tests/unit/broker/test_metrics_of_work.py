"""Metrics of what happens behind the messages: segments, commits, and why groups rebalance."""

from typing import Any

from goqueue.machines.groups import commands
from goqueue.testing import MemoryBroker
from tests.unit.broker.test_metrics import in_memory, numbers, value
from tests.unit.doors.http.door_client import Client, served


@in_memory
async def test_segments_come_and_go(b: MemoryBroker) -> None:
    await b.create_topic("orders", cleanup_policy="compact")
    log = b.broker.topics.replica("orders", 0).log
    for _ in range(2):
        await b.publish_many("orders", [{"value": b"x", "key": b"same"}] * 10)
        log.roll(b.now_ms)
    assert value(b, "goqueue_storage_segments_created_total", topic="orders") == 2
    before = value(b, "goqueue_storage_log_size_bytes", topic="orders")
    await b.broker.compact("orders", 0, False)
    assert value(b, "goqueue_storage_compaction_runs_total", topic="orders") == 1
    gone = value(b, "goqueue_storage_compaction_bytes_reclaimed_total", topic="orders")
    assert gone == before - value(b, "goqueue_storage_log_size_bytes", topic="orders") > 0
    await b.publish("orders", b"x", key=b"other")
    log.roll(b.now_ms)
    b.broker.topics.replica("orders", 0).delete_before(log.end_offset)
    assert value(b, "goqueue_storage_segments_deleted_total", topic="orders") > 0


@served
async def test_offsets_that_are_not_committed_are_counted(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.post("/groups/g/join", client_id="a", topics=["orders"])
    wanted = (commands.OffsetToCommit("orders", 0, 0), commands.OffsetToCommit("none", 0, 0))
    replies: list[Any] = []
    client.b.broker.groups.submit(commands.CommitOffsets("g", wanted, 99, "nobody"), replies.append)
    code = replies[0].codes[0].name
    errors = numbers(client.b.broker.metrics, "goqueue_consumer_offset_commit_errors_total")
    assert errors == {("orders", "g", code): 1, ("_unknown", "g", code): 1}


# -- why groups rebalance


async def rebalances(client: Client, group: str) -> dict[str, float]:
    found = numbers(client.b.broker.metrics, "goqueue_consumer_rebalances_total")
    return {trigger: count for (name, trigger), count in found.items() if name == group and count}


@served
async def test_a_rebalance_says_what_made_it(client: Client) -> None:
    await client.b.create_topic("orders", partitions=2)
    one = await client.post("/groups/g/join", client_id="a", topics=["orders"], session_timeout="10s")
    assert await rebalances(client, "g") == {"join": 1}
    await client.post("/groups/g/join", client_id="b", topics=["orders"], session_timeout="10s")
    assert await rebalances(client, "g") == {"join": 2}
    await client.post("/groups/g/leave", member_id=one["member_id"])
    assert await rebalances(client, "g") == {"join": 2, "leave": 1}
    await client.b.create_topic("other")
    await client.b.advance("15s")
    assert await rebalances(client, "g") == {"join": 2, "leave": 1, "timeout": 1}
    joins = numbers(client.b.broker.metrics, "goqueue_consumer_group_joins_total")
    leaves = numbers(client.b.broker.metrics, "goqueue_consumer_group_leaves_total")
    assert joins["g",] == 2
    assert (leaves["g", "leave"], leaves["g", "timeout"]) == (1, 1)
