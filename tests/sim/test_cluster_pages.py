"""Lists of which each node has a part, page by page: nothing is left out, nothing comes twice, and it is sorted."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from goqueue.doors.http import merging_pages
from goqueue.testing.simulation import Simulation
from tests.sim.cluster_walk import Asked

COUNT = 23
PARTITIONS = 6
LIMITS = (1, 4, 10)
WHOLE = 1000


def run(scenario: Callable[[Asked], Awaitable[None]]) -> None:
    """Each question goes to another node."""

    async def inside(sim: Simulation) -> None:
        await sim.let_pass("2s")
        ask = Asked(sim, [0, 1, 2])
        await ask("create_topic", name="orders", num_partitions=PARTITIONS)
        await sim.let_pass("1s")
        await scenario(ask)
        await ask.close()
        assert sim.loop.exceptions == []

    Simulation(seed=12, nodes=3, cluster=True, default_replication_factor=1).run(inside, limit="1h")


async def publish(ask: Asked, **more: Any) -> None:
    messages = [{"key": f"k{number}", "value": f"v{number}", **more} for number in range(COUNT)]
    results = (await ask("publish", topic="orders", messages=messages))["results"]
    assert {each["partition"] for each in results} == set(range(PARTITIONS))


async def by_cursor(ask: Asked, name: str, field: str, limit: int, **given: Any) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = given.pop("cursor", None)
    while True:
        page = await ask.quietly(name, limit=limit, cursor=cursor, **given)
        assert len(page[field]) <= limit
        found += page[field]
        cursor = page["next"]
        if cursor is None:
            return found


async def by_number(ask: Asked, name: str, field: str, limit: int, **given: Any) -> list[Any]:
    found: list[Any] = []
    while True:
        page = await ask.quietly(name, limit=limit, skip=len(found), **given)
        assert page["total"] == COUNT
        if not page[field]:
            return found
        assert page["count"] == len(page[field]) <= limit
        found += page[field]


async def check_cursors(ask: Asked, name: str, field: str, count: int, key: str | None = None, **given: Any) -> None:
    def named(items: list[Any]) -> list[Any]:
        return items if key is None else [one[key] for one in items]

    whole = await by_cursor(ask, name, field, WHOLE, **given)
    assert len(whole) == count
    for limit in LIMITS:
        assert named(await by_cursor(ask, name, field, limit, **given)) == named(whole), (name, limit)


def test_delayed_messages_are_listed_by_cursor_and_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging_pages, "PAGE_ITEMS_MAX", 5)

    async def scenario(ask: Asked) -> None:
        await publish(ask, delay="1h")
        for limit in (*LIMITS, WHOLE):
            found = await by_cursor(ask, "list_delayed", "messages", limit, topic="orders", cursor="0/0")
            assert len(found) == COUNT
            assert [(one["partition"], one["offset"]) for one in found] == sorted(
                {(one["partition"], one["offset"]) for one in found}
            )
        whole = (await ask("list_delayed", topic="orders", limit=WHOLE))["messages"]
        places = [(one["partition"], one["offset"]) for one in whole]
        assert len(set(places)) == COUNT
        for limit in LIMITS:
            found = await by_number(ask, "list_delayed", "messages", limit, topic="orders")
            assert [(one["partition"], one["offset"]) for one in found] == places

    run(scenario)


def test_recurring_schedules_are_listed_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging_pages, "PAGE_ITEMS_MAX", 5)

    async def scenario(ask: Asked) -> None:
        names = sorted(f"s{number}" for number in range(COUNT))
        for name in names:
            await ask("store_schedule", name=name, topic="orders", cron="0 0 * * *", value="x", key=name)
        await ask.sim.let_pass("1s")
        for limit in (*LIMITS, WHOLE):
            found = await by_number(ask, "list_schedules", "schedules", limit)
            assert [one["name"] for one in found] == names

    run(scenario)


def test_transactions_are_listed_by_cursor_and_by_number_and_in_one_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging_pages, "PAGE_ITEMS_MAX", 5)

    async def scenario(ask: Asked) -> None:
        names = sorted(f"writer-{number}" for number in range(COUNT))
        for name in names:
            made = await ask("init_producer", transactional_id=name)
            await ask("begin_transaction", transactional_id=name, producer_id=made["producer_id"], epoch=made["epoch"])
        await ask("init_producer", transactional_id="idle")
        for limit in (*LIMITS, WHOLE):
            for state in (None, "Begun"):
                listed = ("list_transactions", "transactions", limit)
                for found in (await by_cursor(ask, *listed, state=state), await by_number(ask, *listed, state=state)):
                    assert [one["transactional_id"] for one in found] == names, (limit, state)
            idle = await by_cursor(ask, "list_transactions", "transactions", limit, state="Empty")
            assert [one["transactional_id"] for one in idle] == ["idle"]

    run(scenario)


def test_leases_and_dead_letters_are_listed_page_by_page() -> None:
    async def scenario(ask: Asked) -> None:
        await publish(ask)
        got = await ask.gather("receive_messages", "messages", COUNT, topic="orders", group="workers", max_messages=1)
        leases = await by_cursor(ask, "list_leases", "leases", WHOLE)
        await check_cursors(ask, "list_leases", "leases", len(leases), "first_offset")
        assert sum(one["messages"] for one in leases) == COUNT
        for each in got:
            await ask("reject", receipt_handle=each["receipt_handle"], reason="bad")
        await ask.sim.let_pass("5s")
        await check_cursors(ask, "list_dead_letters", "messages", COUNT, "value", topic="orders")
        for limit in (*LIMITS, WHOLE):
            found = await by_cursor(ask, "list_dead_letters", "messages", limit, topic="orders", contains="v2")
            assert sorted(one["value"] for one in found) == sorted(one["value"] for one in got if "v2" in one["value"])

    run(scenario)


def test_groups_and_their_lags_are_listed_page_by_page() -> None:
    async def scenario(ask: Asked) -> None:
        await publish(ask)
        for number in range(COUNT):
            if number % 2:
                positions = {"orders": {str(each): 0 for each in range(PARTITIONS)}}
                await ask("commit_offsets", group=f"g{number}", offsets=positions)
            else:
                await ask.gather("receive_messages", "messages", 1, topic="orders", group=f"g{number}", max_messages=1)
        await check_cursors(ask, "list_groups", "groups", COUNT)
        await check_cursors(ask, "list_groups", "details", COUNT, "id")
        await check_cursors(ask, "all_lags", "groups", COUNT, "group")
        for lag in await by_cursor(ask, "all_lags", "groups", 4):
            if lag["type"] != "share":
                assert lag["total_lag"] == COUNT, lag

    run(scenario)


def test_what_was_noted_on_all_nodes_is_read_in_ranges_from_any_of_them() -> None:
    async def scenario(ask: Asked) -> None:
        for _ in range(5):
            await publish(ask)
            await ask.sim.let_pass("2s")

        def happened(page: dict[str, Any]) -> list[tuple[str, int, int]]:
            return [
                (step["event_type"], step["partition"], offset)
                for step in page["steps"]
                for offset in range(step["first_offset"], step["last_offset"] + 1)
            ]

        whole = await ask.quietly("stored_steps")
        assert whole["next"] is None
        persisted = [each for each in happened(whole) if each[0] == "publish.persisted"]
        assert len(set(persisted)) == len(persisted) == 5 * COUNT
        assert [step["timestamp"] for step in whole["steps"]] == sorted(step["timestamp"] for step in whole["steps"])
        in_ranges: list[tuple[str, int, int]] = []
        for cursor in range(whole["first"], whole["end"]):
            in_ranges += happened(await ask.quietly("stored_steps", cursor=cursor, until=cursor + 1))
        assert sorted(in_ranges) == sorted(happened(whole))

    run(scenario)
