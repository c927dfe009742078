"""What a request costs does not grow with the number of groups and transactional ids, unless it lists them."""

from collections.abc import Callable
from typing import Any

import pytest

from goqueue.broker.shards import SHARDS
from goqueue.machines.groups import commands
from goqueue.wire.kafka.apis import Api
from goqueue.wire.kafka.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from tests.steps import count_steps
from tests.unit.doors.kafka.every_api import OFFERED
from tests.unit.doors.kafka.share_members import GROUP_RESOURCE, House
from tests.unit.doors.kafka.test_garbage import Client

FEW, MANY = 5, 60
MORE_AT_MOST = 1.2
SOME_LINES = 200
WAIT_MS = 10
OTHER = "other"
OTHER_ID = OTHER.encode().ljust(16, b".")

LISTS = {"ListGroups", "ListTransactions", "ListConfigResources"}
"""The protocol has no pages for them."""
LINES_OF_ONE = 200
"""Of a group or a transactional id in a list: some microseconds."""

LINES_OF_A_SHARD = 300
"""A list asks every shard that has any of them, and few groups are in few shards."""
FEW_PER_TURN = 5
TURNS = 60
KINDS = ("modern", "share", "queue", "classic", "stream")
NO_MEMBER = {"generation_id_or_member_epoch": -1, "member_id": ""}
EVERYTHING: dict[str, dict[str, Any]] = {
    "ListGroups": {"states_filter": [], "types_filter": []},
    "ListTransactions": {
        "state_filters": [],
        "producer_id_filters": [],
        "duration_filter": -1,
        "transactional_id_pattern": None,
    },
    "ListConfigResources": {"resource_types": []},
}


def world(count: int) -> House:
    """Groups of every kind that read another topic than the one that is asked about."""
    house = House()
    house.broker.create(OTHER)
    client = Client(house)
    who = {"subscribed_topic_names": [OTHER], "member_epoch": 0}
    for number in range(count):
        assert (
            client.ask(
                "ConsumerGroupHeartbeat", group_id=f"modern-{number}", member_id="m", topic_partitions=[], **who
            ).error_code
            == 0
        )
        assert client.ask("ShareGroupHeartbeat", group_id=f"share-{number}", **who).error_code == 0
        client.ask("AlterShareGroupOffsets", group_id=f"queue-{number}", topic_name=OTHER)
        client.ask("JoinGroup", 3, group_id=f"classic-{number}", member_id="", name="range")
        client.ask(
            "OffsetCommit",
            group_id=f"stream-{number}",
            topic_id=OTHER_ID,
            **NO_MEMBER,
        )
        house.operator.call(options_of(f"stream-{number}"), 1, IncrementalAlterConfigsResponse)
        assert client.ask("InitProducerId", 4, transactional_id=f"id-{number}", producer_id=-1).error_code == 0
    return house


def options_of(group_id: str) -> IncrementalAlterConfigsRequest:
    change = IncrementalAlterableConfig("share.auto.offset.reset", 0, "earliest")
    return IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(GROUP_RESOURCE, group_id, [change])])


def lines(house: House, api: Api) -> int:
    """Of the second time: the first may have to get ready."""
    client = Client(house)

    def once() -> None:
        client.put(api.name, max_wait_ms=WAIT_MS)
        house.advance(WAIT_MS)
        client.take()

    once()
    return count_steps(once)


def test_no_request_walks_all_groups_but_those_that_list_them() -> None:
    few, many = world(FEW), world(MANY)
    costs = {api.name: (lines(few, api), lines(many, api)) for api in OFFERED if api.name not in LISTS}
    assert {name: pair for name, pair in costs.items() if pair[1] > MORE_AT_MOST * pair[0] + SOME_LINES} == {}


def test_a_list_costs_little_for_each_that_it_names() -> None:
    few, many = world(FEW), world(MANY)
    costs = {api.name: (lines(few, api), lines(many, api)) for api in OFFERED if api.name in LISTS}
    assert costs.keys() == LISTS
    at_most = LINES_OF_ONE * (MANY - FEW) + LINES_OF_A_SHARD * SHARDS
    assert {name: pair for name, pair in costs.items() if pair[1] - pair[0] > at_most} == {}


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_list_of_many_is_answered_in_turns_of_one_size(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the one in which the answer is encoded."""
    for module in ("groups", "transactions"):
        monkeypatch.setattr(f"goqueue.broker.{module}.listing.PER_TURN", FEW_PER_TURN)
    few, many = turns_of(world(20), name), turns_of(world(80), name)
    assert len(many) >= 3 * len(few)
    assert sorted(many)[-2] <= MORE_AT_MOST * sorted(few)[-2] + SOME_LINES


def turns_of(house: House, name: str) -> list[int]:
    """What each turn of the event loop costs until a list is answered."""
    client, clock = Client(house), house.broker.clock
    costs: list[int] = []
    call_soon = clock.call_soon

    def measured(call: Callable[[], None]) -> object:
        return call_soon(lambda: costs.append(count_steps(call)))

    client.ask(name, **EVERYTHING.get(name, {}))
    clock.call_soon = measured  # type: ignore[method-assign]
    client.put(name, **EVERYTHING.get(name, {}))
    for _ in range(TURNS):
        house.advance(0)
    assert len(client.take()) == 1
    return costs


def test_a_list_has_every_group_once_that_is_there_all_the_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goqueue.broker.groups.listing.PER_TURN", FEW_PER_TURN)
    house, pages = world(20), 0
    client, groups = Client(house), house.broker.broker.groups
    page = groups.page

    def meanwhile(after: str | None, count: int) -> list[str]:
        nonlocal pages
        pages += 1
        groups.submit(commands.DeleteGroup(f"stream-{pages}"), lambda reply: None)
        new = commands.CommitOffsets(f"new-{pages}", (commands.OffsetToCommit(OTHER, 0, 0),))
        groups.submit(new, lambda reply: None)
        return page(after, count)

    monkeypatch.setattr(groups, "page", meanwhile)
    client.put("ListGroups", **EVERYTHING["ListGroups"])
    for _ in range(TURNS):
        house.advance(0)
    (answer,) = client.take()
    found = [each.group_id for each in answer.groups]  # type: ignore[attr-defined]
    stayed = {f"{kind}-{number}" for kind in KINDS for number in range(20)}
    stayed -= {f"stream-{number}" for number in range(1, pages + 1)}
    assert len(found) == len(set(found))
    assert stayed <= set(found)
    assert pages > 5
