"""Three nodes, any of them asked: every kind of operation gives the same answer, whoever leads what it is about."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec
import pytest

from goqueue.client.exchange import Ask
from goqueue.client.http import Http, HttpRefused
from goqueue.testing.simulation import Simulation
from goqueue.wire.rest.operation import Operation
from goqueue.wire.rest.operations.table import OPERATIONS

BY_NAME: dict[str, Operation[Any]] = {each.name: each for each in OPERATIONS}
PARTITIONS = 6


class Caller:
    """A client of one node."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def __call__(self, name: str, /, **given: Any) -> Any:
        return msgspec.to_builtins(await self._http.call(BY_NAME[name], given))

    async def status(self, method: str, target: str, body: bytes) -> int:
        asked = Ask(method, target, {"content-type": "application/json"}, body, 10.0)
        return (await self._http._exchange.ask(asked)).status


@asynccontextmanager
async def callers(sim: Simulation) -> AsyncIterator[list[Caller]]:
    me = sim.process("me")
    made = [Http(node.http, **me.ports) for node in sim.nodes]
    try:
        yield [Caller(each) for each in made]
    finally:
        for each in made:
            await each.close()


def run(scenario: Callable[[Simulation, list[Caller]], Awaitable[None]], seed: int = 1, copies: int = 1) -> None:
    async def inside(sim: Simulation) -> None:
        await sim.let_pass("2s")
        async with callers(sim) as nodes:
            await nodes[0]("create_topic", name="orders", num_partitions=PARTITIONS)
            await sim.let_pass("1s")
            await scenario(sim, nodes)
        assert not sim.loop.exceptions

    Simulation(seed=seed, nodes=3, cluster=True, default_replication_factor=copies).run(inside, limit="5m")


async def publish(node: Caller, count: int = 12, topic: str = "orders", **more: Any) -> list[dict[str, Any]]:
    messages = [{"value": f"m{number}", "key": f"k{number}", **more} for number in range(count)]
    reply = await node("publish", topic=topic, messages=messages)
    assert [each for each in reply["results"] if each.get("error")] == []
    found: list[dict[str, Any]] = reply["results"]
    return found


async def receive_all(node: Caller, group: str = "workers", topic: str = "orders") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while messages := (await node("receive_messages", topic=topic, group=group, max_messages=100))["messages"]:
        found += messages
    return found


def test_what_one_node_is_given_any_other_gives_and_settles() -> None:
    async def scenario(_sim: Simulation, nodes: list[Caller]) -> None:
        sent = await publish(nodes[0])
        assert {each["partition"] for each in sent} == set(range(PARTITIONS))
        got = await receive_all(nodes[1])
        assert sorted(each["value"] for each in got) == sorted(f"m{number}" for number in range(12))
        receipts = [each["receipt_handle"] for each in got]
        settled = await nodes[2]("settle_all", receipt_handles=receipts[1:])
        assert (settled["succeeded"], settled["failed"]) == (11, 0)
        acked = await nodes[2]("ack", receipt_handle=receipts[0])
        assert acked["acknowledged"]
        assert await receive_all(nodes[0]) == []
        for node in nodes:
            with pytest.raises(HttpRefused) as refused:
                await node("ack", receipt_handle=receipts[0])
            assert refused.value.code == "ALREADY_SETTLED"

    run(scenario)


def test_a_long_poll_on_one_node_gets_what_comes_to_another() -> None:
    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        me = sim.process("poller")
        waiting = me.spawn(nodes[0]("receive_messages", topic="orders", group="workers", wait="20s", max_messages=1))
        await sim.let_pass("1s")
        before = sim.now_ms()
        await publish(nodes[2], 1)
        got = await waiting
        assert [each["value"] for each in got["messages"]] == ["m0"]
        assert sim.now_ms() - before < 1000

    run(scenario)


def test_any_node_tells_the_same_of_a_topic_and_reads_any_partition() -> None:
    async def scenario(_sim: Simulation, nodes: list[Caller]) -> None:
        await publish(nodes[1])
        told = [await node("describe_topic", topic="orders") for node in nodes]
        assert told[0]["total_messages"] == 12
        assert told[1] == told[0] == told[2]
        for partition in range(PARTITIONS):
            read = [await node("read_messages", topic="orders", partition=partition) for node in nodes]
            assert read[0]["messages"]
            assert read[1] == read[0] == read[2]
        assert sum([(await node("stats"))["topic_stats"]["orders"]["total_messages"] for node in nodes]) == 36
        where = [await node("where_is", topic="orders", partition=0, offset=0) for node in nodes]
        assert where[0]["state"] == where[1]["state"] == where[2]["state"]

    run(scenario)


def test_a_queue_group_looks_the_same_from_everywhere() -> None:
    async def scenario(_sim: Simulation, nodes: list[Caller]) -> None:
        await publish(nodes[0])
        await receive_all(nodes[0])
        for name, given in (
            ("list_groups", {}),
            ("describe_group", {"group": "workers"}),
            ("topic_lanes", {"topic": "orders", "group": "workers"}),
            ("list_leases", {}),
            ("group_offsets", {"group": "workers"}),
        ):
            told = [await node(name, **given) for node in nodes]
            assert told[1] == told[0] == told[2], name
        lags = [await node("group_lag", group="workers") for node in nodes]
        assert [each["total_lag"] for each in lags] == [12, 12, 12]
        assert len((await nodes[1]("list_leases"))["leases"]) >= PARTITIONS
        await nodes[2]("delete_group", group="workers")
        assert len(await receive_all(nodes[1])) == 12

    run(scenario)


def test_what_waits_for_its_time_is_found_and_cancelled_anywhere() -> None:
    async def scenario(_sim: Simulation, nodes: list[Caller]) -> None:
        sent = await publish(nodes[0], 6, delay="10m")
        assert all(each["delayed"] for each in sent)
        for node in nodes:
            listed = await node("list_delayed", topic="orders")
            assert (listed["total"], len(listed["messages"])) == (6, 6)
            assert (await node("delay_stats"))["total_pending"] == 6
            for each in sent:
                place = {"topic": "orders", "partition": each["partition"], "offset": each["offset"]}
                found = await node("look_at_delayed", **place)
                assert found["partition"] == each["partition"]
        for node, each in zip(nodes, sent):
            await node("cancel_delayed", topic="orders", partition=each["partition"], offset=each["offset"])
        assert (await nodes[0]("list_delayed", topic="orders"))["total"] == 3

    run(scenario)


def test_a_member_reads_all_partitions_whoever_leads_them() -> None:
    async def scenario(_sim: Simulation, nodes: list[Caller]) -> None:
        await publish(nodes[0])
        joined = await nodes[1]("join_group", group="team", client_id="me", topics=["orders"])
        member = {"group": "team", "member_id": joined["member_id"]}
        got: list[dict[str, Any]] = []
        for number in range(40):
            polled = await nodes[number % 3]("poll_group", **member, generation=0, timeout="1s")
            got += polled["messages"]
            if len(got) == 12:
                break
        assert sorted(each["value"] for each in got) == sorted(f"m{number}" for number in range(12))
        receipts = [each["receipt_handle"] for each in got]
        assert (await nodes[2]("settle_all", receipt_handles=receipts))["failed"] == 0
        left = await nodes[0]("leave_group", **member, generation=0)
        assert left["left"]

    run(scenario)


def test_dead_letters_are_listed_and_sent_back_from_anywhere() -> None:
    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        await publish(nodes[0], 6)
        for each in await receive_all(nodes[0]):
            await nodes[1]("reject", receipt_handle=each["receipt_handle"], reason="bad")
        await sim.let_pass("5s")
        for node in nodes:
            assert len((await node("list_dead_letters", topic="orders"))["messages"]) == 6
        redriven = await nodes[2]("redrive", topic="orders", wait="10s")
        assert (redriven["state"], redriven["redriven"]) == ("done", 6)
        assert (await nodes[0]("look_at_redrive", topic="orders"))["redriven"] == 6
        assert len(await receive_all(nodes[0])) == 6

    run(scenario)


def test_a_group_is_set_back_and_forked_from_anywhere() -> None:
    async def scenario(_sim: Simulation, nodes: list[Caller]) -> None:
        await publish(nodes[0])
        receipts = [each["receipt_handle"] for each in await receive_all(nodes[0])]
        await nodes[0]("settle_all", receipt_handles=receipts)
        await nodes[1]("fork", group="workers", name="copy")
        assert await receive_all(nodes[2], "copy") == []
        moved = await nodes[2]("seek", group="copy", topic="orders", to="earliest", mode="queue")
        assert len(moved["partitions"]) == PARTITIONS
        assert len(await receive_all(nodes[0], "copy")) == 12
        assert not (await nodes[1]("compare", group="workers", other="copy"))["is_equal"]
        told = await nodes[2]("list_forks", group="workers")
        assert told["forks"] == [{"fork": "copy", "only_group": 12, "only_fork": 0}]
        assert (await nodes[1]("replay", group="workers", topic="orders", start="earliest"))["messages"] == 12

    run(scenario)


def test_what_was_made_is_answered_with_the_same_status_wherever_it_is() -> None:
    """The group has one place: one node does it, and two pass it on."""

    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        await nodes[0]("create_topic", name="lone", num_partitions=1)
        await sim.let_pass("1s")
        await publish(nodes[0], 1, "lone")
        assert len(await receive_all(nodes[0], "crew", "lone")) == 1
        for number, node in enumerate(nodes):
            body = b'{"name": "copy-%d"}' % number
            assert await node.status("POST", "/groups/crew/fork", body) == BY_NAME["fork"].status

    run(scenario)


def test_a_schema_that_one_node_registered_is_known_to_all() -> None:
    async def scenario(_sim: Simulation, nodes: list[Caller]) -> None:
        schema = '{"type":"string"}'
        ids = [(await node("register_schema", subject="orders-value", schema=schema))["id"] for node in nodes]
        assert len(set(ids)) == 1
        for node in nodes:
            assert (await node("get_schema", id=ids[0]))["schema"] == schema
            assert await node("list_subjects") == ["orders-value"]

    run(scenario)


def test_a_recurring_schedule_is_the_same_everywhere() -> None:
    async def scenario(_sim: Simulation, nodes: list[Caller]) -> None:
        await nodes[0]("store_schedule", name="daily", topic="orders", cron="0 0 * * *", value="x", key="k")
        told = [await node("describe_schedule", name="daily") for node in nodes]
        assert told[1] == told[0] == told[2]
        assert [(await node("list_schedules"))["total"] for node in nodes] == [1, 1, 1]
        await nodes[2]("delete_schedule", name="daily")
        assert (await nodes[1]("list_schedules"))["total"] == 0

    run(scenario)


def test_a_transaction_goes_on_whichever_node_hears_of_it() -> None:
    async def scenario(_sim: Simulation, nodes: list[Caller]) -> None:
        made = await nodes[0]("init_producer", transactional_id="writer")
        producer = {**made, "transactional_id": "writer"}
        await nodes[1]("begin_transaction", **producer)
        for number in range(PARTITIONS):
            node = nodes[number % 3]
            await node("publish_in_transaction", **producer, topic="orders", value="x", partition=number)
        assert len((await nodes[2]("list_transactions"))["transactions"]) == 1
        await nodes[2]("commit_transaction", **producer)
        for partition in range(PARTITIONS):
            assert len((await nodes[0]("read_messages", topic="orders", partition=partition))["messages"]) == 1

    run(scenario)


def test_a_topic_is_followed_whoever_leads_its_partitions() -> None:
    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        await publish(nodes[0], 6)
        me = sim.process("follower")
        http = Http(sim.nodes[1].http, **me.ports)
        found: list[str] = []
        last_id = ""

        async def follow(count: int, **given: Any) -> None:
            nonlocal last_id
            async with aclosing(http.events(BY_NAME["follow_topic"], {"topic": "orders", **given})) as events:
                async for event in events:
                    if event.name == "message":
                        found.append(msgspec.json.decode(event.data)["value"])
                        last_id = event.id or last_id
                    if len(found) == count:
                        return

        following = me.spawn(follow(12, start="earliest"))
        await sim.let_pass("2s")
        assert len(found) == 6
        await publish(nodes[2], 6)
        await following
        assert sorted(found) == sorted([f"m{number}" for number in range(6)] * 2)
        await publish(nodes[0], 3)
        await me.spawn(follow(15, last_event_id=last_id))
        assert sorted(found[12:]) == ["m0", "m1", "m2"]
        await http.close()

    run(scenario)
