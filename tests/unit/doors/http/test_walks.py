"""What an operation costs does not grow with the number of groups and transactional ids, unless it lists them; then it
lists a page, or takes turns with others.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from goqueue.broker.queues import reliability
from goqueue.doors.sqs.handlers.table import ACTIONS
from goqueue.testing import broker
from goqueue.wire.rest.operations.table import OPERATIONS
from tests.steps import Steps
from tests.unit.doors.http.bare import TOPIC, Answered, Asked, Bare, samples
from tests.unit.doors.http.test_garbage import sqs
from tests.unit.testing.loops import turn

FEW, MANY = 30, 90
"""Few are so many that each of the 16 ledgers of groups has some: a topic that goes is told to those that have."""
MORE_AT_MOST = 1.2
SOME_LINES = 200
OTHER = "other"
TURNS = 60

LISTS = {
    "list_groups",  # a page of them
    "all_lags",  # likewise
    "list_transactions",  # likewise
    "priority_stats",  # in turns
    "all_rebalance_stats",  # in turns
    "metrics",  # in turns
    "reliability_stats",  # in turns
    "list_coordinators",  # in turns
    "console_reading",  # in turns, once a second at most
}


async def world(count: int) -> Bare:
    """Few groups of every kind that read `orders`, and `count` that read something else."""
    b = broker()
    await b.__aenter__()
    bare = Bare(b)
    await b.create_topic(TOPIC)
    await b.create_topic(OTHER)
    await b.publish(TOPIC, b"x", key=b"text")
    for number in range(count):
        topic = TOPIC if number < 2 else OTHER
        await b.receive(topic, f"queue-{number}")
        for asked in (
            Asked("POST", f"/groups/members-{number}/join", {"client_id": "c", "topics": [topic]}),
            Asked("POST", f"/groups/stream-{number}/offsets", {"offsets": {topic: {"0": 0}}}),
            Asked("POST", "/producers/init", {"transactional_id": f"id-{number}"}),
        ):
            assert (await bare.ask(asked)).status < 300
    return bare


async def lines(bare: Bare, ask: Callable[[Bare], Awaitable[Answered]]) -> int:
    """Of the second time: the first may have to get ready."""
    counted = 0
    for _ in range(2):
        if TOPIC not in bare.b.broker.topics.image.topics:
            await bare.b.create_topic(TOPIC)
            await bare.b.publish(TOPIC, b"x", key=b"text")
        with Steps() as steps:
            waiting = asyncio.ensure_future(ask(bare))
            for _ in range(TURNS):
                await turn()
            if not waiting.done():
                waiting.cancel()
            await waiting
        counted = steps.count
    return counted


def walks(asks: dict[str, Callable[[Bare], Awaitable[Answered]]]) -> dict[str, tuple[int, int]]:
    async def run() -> dict[str, tuple[int, int]]:
        few, many = await world(FEW), await world(MANY)
        found = {}
        for name, ask in asks.items():
            costs = await lines(few, ask), await lines(many, ask)
            if costs[1] > costs[0] * MORE_AT_MOST + SOME_LINES:
                found[name] = costs
        for bare in (few, many):
            await bare.b.__aexit__(None, None, None)
        return found

    return asyncio.run(run())


def test_no_operation_walks_all_groups_but_those_that_list_them() -> None:
    sampled = samples()
    asks: dict[str, Callable[[Bare], Awaitable[Answered]]] = {
        operation.name: lambda bare, asked=sampled[operation.name]: bare.ask(asked)  # type: ignore[misc]
        for operation in OPERATIONS
        if operation.name not in LISTS and not operation.path.startswith("/schemas/")
    }
    assert walks(asks) == {}


def test_no_action_of_sqs_walks_all_groups() -> None:
    asks: dict[str, Callable[[Bare], Awaitable[Answered]]] = {
        action: lambda bare, asked=asked, headers=headers: bare.ask(asked, headers=headers)  # type: ignore[misc]
        for action in ACTIONS
        for asked, headers in (sqs(action),)
    }
    assert walks(asks) == {}


def test_a_page_of_groups_costs_the_same_among_few_and_among_many() -> None:
    pages = {
        path: lambda bare, path=path: bare.ask(Asked("GET", f"{path}?limit=3&cursor=members-1"))
        for path in ("/groups", "/lag")
    }
    assert walks(pages) == {}  # type: ignore[arg-type]


def test_a_page_of_transactions_costs_the_same_among_few_and_among_many() -> None:
    pages = {
        path: lambda bare, path=path: bare.ask(Asked("GET", path))
        for path in ("/transactions?state=Empty&limit=3&cursor=id-1", "/transactions?limit=3", "/transactions/stats")
    }
    assert walks(pages) == {}  # type: ignore[arg-type]


def test_sums_over_all_groups_take_turns_with_others() -> None:
    async def run() -> int:
        bare = await world(MANY)
        turns = sum(1 for _ in bare.b.broker.reliabilities.summing())
        await bare.b.__aexit__(None, None, None)
        return turns

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reliability, "PER_TURN", 10)
        assert asyncio.run(run()) == MANY // 10


def test_pages_of_transactions_give_each_once_that_stays_while_others_come_and_go() -> None:
    async def run() -> None:
        bare = await world(20)
        found: list[str] = []
        cursor: str | None = ""
        pages = 0
        while cursor is not None:
            query = f"state=all&limit=3&cursor={cursor}"
            page = (await bare.ask(Asked("GET", f"/transactions?{query}"))).json
            found += [each["transactional_id"] for each in page["transactions"]]
            assert page["total"] == 20 + pages
            cursor, pages = page["next"], pages + 1
            new = {"transactional_id": f"a-{pages}"}  # before all others
            assert (await bare.ask(Asked("POST", "/producers/init", new))).status < 300
        assert found == sorted(f"id-{number}" for number in range(20))
        skipped = (await bare.ask(Asked("GET", f"/transactions?state=all&skip={pages + 2}&limit=2"))).json
        assert [each["transactional_id"] for each in skipped["transactions"]] == found[2:4]
        await bare.b.__aexit__(None, None, None)

    asyncio.run(run())


def test_pages_of_groups_give_each_of_them_once() -> None:
    async def run() -> None:
        bare = await world(4)
        for path, names_of in (
            ("/groups", lambda page: page["groups"]),
            ("/lag", lambda page: [each["group"] for each in page["groups"]]),
        ):
            whole = names_of((await bare.ask(Asked("GET", path))).json)
            found: list[str] = []
            cursor: Any = ""
            pages = 0
            while cursor is not None:
                page = (await bare.ask(Asked("GET", f"{path}?limit=5&cursor={cursor}"))).json
                found += names_of(page)
                cursor, pages = page["next"], pages + 1
            assert found == whole == sorted(whole)
            assert len(whole) == 12
            assert pages == 3
        await bare.b.__aexit__(None, None, None)

    asyncio.run(run())


def test_a_scrape_of_many_groups_takes_turns_with_others() -> None:
    async def run() -> int:
        bare = await world(MANY)
        steps = bare.b.broker.metrics.exposing()
        turns = sum(1 for _ in steps)
        await bare.b.__aexit__(None, None, None)
        return turns

    assert asyncio.run(run()) >= 3


def test_an_id_that_is_too_long_is_refused() -> None:
    async def run() -> None:
        bare = await world(0)
        group, name = "g" * 256, "t" * 1025
        for asked in (
            Asked("POST", f"/groups/{group}/join", {"client_id": "c", "topics": [TOPIC]}),
            Asked("POST", "/groups/g/join", {"client_id": "c" * 256, "topics": [TOPIC]}),
            Asked("POST", f"/groups/{group}/offsets", {"offsets": {TOPIC: {"0": 0}}}),
            Asked("PATCH", f"/groups/{group}/options", {"options": {"lease.ms": 700}}),
            Asked("POST", "/producers/init", {"transactional_id": name}),
        ):
            assert (await bare.ask(asked)).status == 400, asked
        assert (await bare.ask(Asked("GET", "/groups"))).json["groups"] == []
        assert (await bare.ask(Asked("GET", "/transactions?state=all"))).json["total"] == 0
        await bare.b.__aexit__(None, None, None)

    asyncio.run(run())
