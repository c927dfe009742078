"""A walk through all operations of the HTTP API, in an order in which each has something to tell. It is walked on one
node, and on each node of a cluster: whoever is asked gives the same answers, but for what is drawn by dice or clocks.
"""

import re
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from goqueue.client.http import Http, HttpRefused
from goqueue.client.security import Security
from goqueue.testing.simulation import Simulation
from goqueue.wire.rest.operation import Operation
from goqueue.wire.rest.operations.table import OPERATIONS
from tests.sim.access_walk import accounts, quotas, rules, tenants

BY_NAME: dict[str, Operation[Any]] = {each.name: each for each in OPERATIONS}
PARTITIONS = 6
READY = 17
"""Messages of `orders` for a new group: 12, and five that were redriven."""
BELOW = "_below_schemas"

DRAWN = {
    *("receipt_handle", "receipt", "receipts", "member_id", "members", "producer_id", "epoch", "trace_id", "span_id"),
    "transaction_id",
    *("id", "leader", "leader_id", "memberId", "uptime", "node_id", "node", "first", "end", "next", "cursor"),
    *("bytes", "size_bytes", "log_bytes", "lease_id", "consumer", "consumer_id", "avg_delay", "message_id"),
    *("duration", "duration_ns", "parent_span_id", "traces_indexed", "buffer_capacity", "spans_in_buffer"),
    *("notes_total", "notes_stored", "time_remaining", "current_tick", "since"),
}
"""Names of values that are not the same twice: ids, and what tells how long something took."""
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
OF_THE_NODE = {
    *("cluster_state", "cluster_health", "cluster_nodes", "cluster_partitions", "cluster_partition", "cluster_events"),
    *("elect_unclean", "recover_cluster", "health", "livez", "healthz", "readyz", "metrics", "list_partitions"),
    *("list_coordinators", "find_coordinator", "console_reading"),
}
"""What they tell is about nodes, of which one alone has others."""


def comparable(value: Any, name: str = "") -> Any:
    """Without what dice and clocks have made."""
    if name in DRAWN or name.endswith(("_ms", "_at", "_time", "timestamp", "_seconds")):
        return "drawn" if value is not None else None
    if isinstance(value, dict):
        return {key: comparable(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [comparable(one, name) for one in value]
    if isinstance(value, str) and MOMENT.search(value):
        return "a moment"
    return value


class Asked:
    """A client that keeps what it was told."""

    def __init__(self, sim: Simulation, asked: Sequence[int], tenant: str | None = None) -> None:
        """`asked`: the numbers of the nodes that are asked, one after the other. `tenant`: whom they are asked for."""
        me = sim.process("walker")
        self.sim = sim
        security = Security(tenant=tenant)
        self._https = [Http(sim.nodes[number].http, security=security, **me.ports) for number in asked]
        self._count = 0
        self.told: list[tuple[str, Any]] = []

    async def __call__(self, name: str, /, **given: Any) -> Any:
        answer = await self.quietly(name, **given)
        self.tell(name, answer)
        return answer

    async def quietly(self, name: str, /, **given: Any) -> Any:
        """Not to be compared as it is."""
        self._count += 1
        http = self._https[self._count % len(self._https)]
        try:
            return msgspec.to_builtins(await http.call(BY_NAME[name], given))
        except HttpRefused as refused:
            return {"refused": refused.status, "code": refused.code}

    def tell(self, name: str, answer: Any) -> None:
        self.told.append((name, comparable(answer)))

    async def follow(self, topic: str, count: int) -> None:
        found: list[Any] = []
        self._count += 1
        http = self._https[self._count % len(self._https)]
        async with aclosing(http.events(BY_NAME["follow_topic"], {"topic": topic, "start": "earliest"})) as events:
            async for event in events:
                if event.name == "message":
                    found.append(msgspec.json.decode(event.data))
                if len(found) == count:
                    break
        self.tell("follow_topic", by_place(found))

    async def gather(self, name: str, field: str, count: int, **given: Any) -> list[dict[str, Any]]:
        """Asks until it has so many: leaders answer one after the other."""
        found: list[dict[str, Any]] = []
        for _ in range(10 * count):
            if len(found) >= count:
                break
            found += (await self.quietly(name, **given))[field]
        self.tell(name, by_place(found))
        return by_place(found)

    async def close(self) -> None:
        for each in self._https:
            await each.close()


def by_place(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda one: (one["partition"], one.get("offset", one.get("first_offset"))))


async def walk(ask: Asked) -> None:
    for part in (*PARTS_OF_TENANTS, stored_steps, accounts, rules, quotas, tenants, node, away):
        await part(ask)


async def walk_as_tenant(ask: Asked) -> None:
    """All that is about names."""
    for part in (*PARTS_OF_TENANTS, away):
        await part(ask)


async def topics(ask: Asked) -> None:
    await ask("create_topic", name="orders", num_partitions=PARTITIONS)
    await ask("create_topic", name="orders", num_partitions=PARTITIONS)
    await ask("create_topic", name="other", num_partitions=1, options={"cleanup.policy": "compact"})
    await ask.sim.let_pass("1s")
    await ask("list_topics")
    await ask("add_partitions", topic="other", count=2)
    await ask.sim.let_pass("1s")
    await ask("scaling_status", topic="other")
    await ask("configure_topic", topic="orders", options={"retention.ms": "90000000"})
    await ask.sim.let_pass("1s")
    for topic in ("orders", "other"):
        messages = [{"key": f"k{number}", "value": f"v{number}"} for number in range(2 * PARTITIONS)]
        await ask("publish", topic=topic, messages=messages)
    await ask("publish", topic="nowhere", messages=[{"value": "x"}])
    for number in range(PARTITIONS + 1):
        await ask("read_messages", topic="orders", partition=number)
    await ask("describe_topic", topic="orders")
    await ask("describe_topic", topic="nowhere")
    await ask("list_partitions", topic="orders")
    await ask.follow("orders", 2 * PARTITIONS)
    await ask("compact_topic", topic="other")
    await ask("trim_topic", topic="other", before="latest", dry_run=True)
    await ask("trim_topic", topic="other", before="latest", partition=1)
    await ask("stats")


async def queues(ask: Asked) -> None:
    workers = {"topic": "orders", "group": "workers", "max_messages": 100}
    got = await ask.gather("receive_messages", "messages", 2 * PARTITIONS, **workers)
    receipts = [one["receipt_handle"] for one in got]
    await ask("list_leases")
    await ask("topic_lanes", topic="orders", group="workers")
    await ask("priority_stats")
    await ask("group_lag", group="workers")
    await ask("extend_visibility", receipt_handle=receipts[0], timeout="2m")
    await ask("ack", receipt_handle=receipts[0])
    await ask("ack", receipt_handle=receipts[0])
    await ask("nack", receipt_handle=receipts[1], delay="5m", reason="later")
    for receipt in receipts[2:8]:
        await ask("reject", receipt_handle=receipt, reason="bad")
    await ask("settle_all", receipt_handles=receipts[8:])
    await ask.sim.let_pass("5s")
    await ask("reliability_stats")
    letters = (await ask("list_dead_letters", topic="orders"))["messages"]
    place = {"topic": "orders", "partition": letters[0]["partition"], "offset": letters[0]["offset"]}
    await ask("look_at_dead_letter", **place)
    await ask("discard_dead_letter", **place)
    await ask("redrive", topic="orders", dry_run=True, wait="10s")
    await ask("redrive", topic="orders", wait="10s")
    await ask("look_at_redrive", topic="orders")
    await ask("stop_redrive", topic="orders")
    await ask("purge_dead_letters", topic="orders")
    leases = await ask.gather("take_leases", "leases", PARTITIONS, group="lessees", topics=["orders"])
    await ask("extend_leases", receipts=[one["receipt"] for one in leases], timeout="1m")
    await ask("finish_leases", leases=[{"receipt": one["receipt"]} for one in leases])


async def delays(ask: Asked) -> None:
    messages = [{"key": f"k{number}", "value": "later", "delay": f"{10 + number}m"} for number in range(PARTITIONS)]
    sent = (await ask("publish", topic="orders", messages=messages))["results"]
    await ask("list_delayed", topic="orders")
    await ask("list_delayed", topic="orders", skip=2, limit=3)
    for number, name in enumerate(("look_at_delayed", "reschedule_delayed", "cancel_delayed", "look_at_delayed")):
        place = {"topic": "orders", "partition": sent[number % 3]["partition"], "offset": sent[number % 3]["offset"]}
        await ask(name, **place, **({"delay": "1h"} if name == "reschedule_delayed" else {}))
    await ask("find_delayed", topic="orders", offset=sent[3]["offset"], partition=sent[3]["partition"])
    await ask("find_delayed", topic="orders", offset=99_999)
    await ask("delay_stats")
    for name in ("daily", "hourly", "weekly"):
        await ask("store_schedule", name=name, topic="orders", cron="0 0 * * *", value="x", key=name)
    await ask.sim.let_pass("1s")
    await ask("describe_schedule", name="daily")
    await ask("describe_schedule", name="never")
    await ask("list_schedules")
    await ask("list_schedules", skip=1, limit=1)
    await ask("delete_schedule", name="daily")
    await ask("delete_schedule", name="daily")


async def groups(ask: Asked) -> None:
    await ask("configure_group", group="workers", options={"attempts.max": "7"})
    await ask.sim.let_pass("1s")
    await ask("group_options", group="workers")
    positions = {"orders": {str(number): 1 for number in range(PARTITIONS)}}
    await ask("commit_offsets", group="readers", offsets=positions)
    await ask("group_offsets", group="readers")
    await ask("group_offsets", group="workers")
    await ask("group_lag", group="readers")
    await ask("all_lags")
    await ask("list_groups")
    await ask("list_groups", limit=1)
    await ask("describe_group", group="readers")
    await ask("describe_group", group="nobody")
    await ask("reset_offsets", group="readers", topic="orders", strategy="earliest")
    await ask("group_offsets", group="readers")
    await ask("list_coordinators")
    await ask("find_coordinator", group="readers")


async def members(ask: Asked) -> None:
    me = {"group": "team", "client_id": "walker", "topics": ["orders"]}
    joined = await ask("join_group", **me)
    member = {"group": "team", "member_id": joined["member_id"]}
    await ask("heartbeat", **member, generation=joined["generation"])
    got = await ask.gather("poll_group", "messages", READY, **member, timeout="1s")
    await ask("settle_all", receipt_handles=[one["receipt_handle"] for one in got])
    await ask("describe_group", group="team")
    await ask("leave_group", **member)
    joined = await ask("join_cooperatively", group="mates", client_id="walker", topics=["orders"])
    member = {"group": "mates", "member_id": joined["member_id"]}
    await ask("heartbeat_cooperatively", **member)
    await ask("member_assignment", **member)
    await ask("revoke_partitions", **member, revoked_partitions=[])
    described = await ask.quietly("describe_cooperatively", group="mates")
    described["member_assignments"] = list(described["member_assignments"].values())
    ask.tell("describe_cooperatively", described)
    await ask("rebalance_stats", group="mates")
    await ask("all_rebalance_stats")
    await ask("leave_cooperatively", **member)


async def replays(ask: Asked) -> None:
    await ask("replay", group="workers", topic="orders", start="earliest", dry_run=True)
    await ask("seek", group="workers", topic="orders", to="earliest", dry_run=True)
    await ask("fork", group="workers", name="copy")
    await ask.sim.let_pass("1s")
    await ask("list_forks", group="workers")
    await ask("compare", group="workers", other="copy")
    await ask("promote", group="workers", fork="copy")
    await ask("fork", group="workers", name="second")
    await ask.sim.let_pass("1s")
    await ask("drop_fork", group="workers", fork="second")


async def transactions(ask: Asked) -> None:
    made = await ask("init_producer", transactional_id="writer")
    nameless = {"producer_id": made["producer_id"], "epoch": made["epoch"]}
    writer = {**nameless, "transactional_id": "writer"}
    for form, ending in ((writer, "commit_transaction"), (nameless, "abort_transaction")):
        await ask("begin_transaction", **form)
        for number in range(PARTITIONS):
            await ask("publish_in_transaction", **form, topic="orders", partition=number, value="in")
        await ask("add_partition", **form, topic="other", partition=0)
        await ask("producer_heartbeat", **form)
        await ask("list_transactions")
        await ask(ending, **form)
    await ask("transaction_stats")
    for number in range(PARTITIONS):
        await ask("read_messages", topic="orders", partition=number)


async def journeys(ask: Asked) -> None:
    await ask.sim.let_pass("5s")
    found = (await ask("search_traces", topic="orders", key="k1"))["traces"]
    ask.tell("list_traces", by_place((await ask.quietly("list_traces", topic="other"))["traces"]))
    await ask("search_traces", topic="orders", partition=1, limit=2)
    await ask("describe_trace", id=found[0]["trace_id"])
    await ask("trace_stats")
    await ask("where_is", topic="orders", partition=0, offset=0)
    await ask("where_is_key", topic="orders", key="k1")


async def stored_steps(ask: Asked) -> None:
    steps: list[dict[str, Any]] = []
    cursor: int | None = 0
    while cursor is not None:
        page = await ask.quietly("stored_steps", topic="orders", cursor=cursor)
        steps += page["steps"]
        cursor = page["next"]
    happened = [
        (step["event_type"], step["partition"], offset)
        for step in steps
        for offset in range(step["first_offset"], step["last_offset"] + 1)
    ]
    ask.tell("stored_steps", sorted(happened))


async def by_hand(ask: Asked) -> None:
    """What an operator does from the console."""
    for number in range(PARTITIONS):
        found = (await ask.quietly("read_messages", topic="orders", partition=number))["messages"]
        place = {"topic": "orders", "partition": number, "offset": found[-1]["offset"]}
        for _ in range(2):
            await ask("settle_place", group="workers", **place, action="ack")
    for name in ("hourly", "never"):
        await ask("run_schedule", name=name)
        await ask("pause_schedule", name=name)
        await ask("resume_schedule", name=name)


async def schemas(ask: Asked) -> None:
    text = '{"type":"string"}'
    for below in ("", BELOW):
        subject = f"s{below}"
        await ask(f"set_config{below}", compatibility="FULL")
        await ask(f"set_subject_config{below}", subject=subject, compatibility="NONE")
        await ask(f"set_mode{below}", mode="READWRITE")
        await ask(f"set_subject_mode{below}", subject=subject, mode="READWRITE")
        for name in ("get_config", "get_mode", "list_contexts", "list_schema_types"):
            await ask(f"{name}{below}")
        for name in ("get_subject_config", "get_subject_mode"):
            await ask(f"{name}{below}", subject=subject)
        made = await ask(f"register_schema{below}", subject=subject, schema=text)
        await ask(f"look_up_schema{below}", subject=subject, schema=text)
        await ask(f"check_compatibility{below}", subject=subject, schema=text)
        await ask(f"check_compatibility_with{below}", subject=subject, version="1", schema=text)
        for name in ("list_subjects", "list_versions", "get_version", "get_version_text", "list_referencing"):
            given = {"list_subjects": {}, "list_versions": {"subject": subject}}
            await ask(f"{name}{below}", **given.get(name, {"subject": subject, "version": "1"}))
        for name in ("get_schema", "get_schema_text", "list_schema_subjects", "list_schema_versions"):
            await ask(f"{name}{below}", id=made["id"])
        await ask("list_schemas")
        await ask("schema_stats")
        await ask(f"delete_version{below}", subject=subject, version="1")
        await ask(f"delete_subject{below}", subject=subject)
        for name in ("reset_subject_config", "reset_subject_mode"):
            await ask(f"{name}{below}", subject=subject)
        for name in ("reset_config", "reset_mode"):
            await ask(f"{name}{below}")


async def node(ask: Asked) -> None:
    for name in ("cluster_state", "cluster_health", "cluster_nodes", "cluster_partitions", "cluster_events"):
        await ask(name)
    await ask("cluster_partition", topic="orders", partition=0)
    await ask("elect_unclean", topic="orders", partition=0, unclean=True)
    await ask("recover_cluster")
    await ask("console_reading")
    for name in ("health", "livez", "healthz", "readyz", "version", "metrics", "root", "openapi", "postman", "docs"):
        await ask(name)


async def away(ask: Asked) -> None:
    await ask("delete_group", group="workers")
    await ask.sim.let_pass("1s")
    await ask("describe_group", group="workers")
    await ask("delete_topic", topic="orders")
    await ask.sim.let_pass("2s")
    await ask("list_topics")
    await ask("publish", topic="orders", messages=[{"value": "x"}])


ASKED_AT_THE_END = 5
PARTS_OF_TENANTS = (topics, queues, delays, groups, members, replays, transactions, journeys, by_hand, schemas)
