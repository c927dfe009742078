"""All operations together make one document."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from goqueue.doors.http.call import Call
from goqueue.doors.http.openapi import document
from goqueue.doors.http.operation import Handlers, Text, WithStatus
from goqueue.doors.http.routes.table import ROUTES
from goqueue.model.access import OPEN
from goqueue.wire.rest.operations.table import OPERATIONS
from goqueue.wire.rest.operations.topics import DESCRIBE_TOPIC
from goqueue.wire.rest.topics import TopicDetails, TopicNames, TopicPath
from tests.unit.doors.http.door_client import Client, served


def test_every_operation_has_a_name_and_a_summary_of_its_own() -> None:
    told = [each for path in document(ROUTES, "1")["paths"].values() for each in path.values()]
    assert len(told) == len(OPERATIONS)
    for field in ("operationId", "summary"):
        assert [name for name, count in Counter(each[field] for each in told).items() if count > 1 or not name] == []


def test_the_document_says_what_an_operation_needs_and_how_to_show_who_asks() -> None:
    told = document(ROUTES, "1")
    schemes = told["components"]["securitySchemes"]
    assert told["security"] == [*({name: []} for name in schemes), {}], "a node may be open to everybody"
    said = {each["operationId"]: each for path in told["paths"].values() for each in path.values()}
    assert said["publish"]["x-permission"] == {"topic": ["write", "create"]}
    assert said["read_audit"]["x-permission"] == {"cluster": ["alter"]}
    assert (said["health"]["security"], "x-permission" in said["health"]) == ([], False)
    for route in ROUTES:
        one = said[route.operation.name]
        assert ("x-permission" in one) == (route.permission is not OPEN) == ("security" not in one), one


async def _as_the_table_says(call: Call, path: TopicPath) -> TopicDetails | WithStatus:
    raise AssertionError


async def _without_its_path(call: Call) -> TopicDetails:
    raise AssertionError


async def _with_a_body(call: Call, path: TopicPath, body: TopicNames) -> TopicDetails:
    raise AssertionError


async def _with_another_reply(call: Call, path: TopicPath) -> TopicNames:
    raise AssertionError


async def _with_text(call: Call, path: TopicPath) -> Text:
    raise AssertionError


async def _with_more(call: Call, path: TopicPath, more: int) -> TopicDetails:
    raise AssertionError


@pytest.mark.parametrize("handle", [_without_its_path, _with_a_body, _with_another_reply, _with_text, _with_more])
def test_a_handler_that_is_not_as_the_table_says_is_refused(handle: Callable[..., Any]) -> None:
    handlers = Handlers()
    handlers.handles(DESCRIBE_TOPIC, OPEN)(_as_the_table_says)
    with pytest.raises(AssertionError, match=r"describe_topic|door does not give"):
        handlers.handles(DESCRIBE_TOPIC, OPEN)(handle)
    assert [each.handle for each in handlers.all] == [_as_the_table_says]


@served
async def test_a_query_parameter_that_is_not_known_is_refused(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=1, status=201)
    for path, error in {
        "/topics/orders/partitions/0/messages?limmit=5": "there is no query parameter 'limmit'; did you mean 'limit'?",
        "/health?pretty": "there is no query parameter 'pretty'; none is taken here",
        "/v1/readyz?x=1": "there is no query parameter 'x'; there are verbose",
    }.items():
        found = await client.ask("GET", path, status=400)
        assert (found["code"], found["error"]) == ("UNKNOWN_PARAMETER", error)
    refused = await client.http.post("/topics?name=x", json={"name": "bills"})
    assert (refused.status_code, await client.get("/topics")) == (400, {"topics": ["orders"]})


@served
async def test_a_query_parameter_is_given_once(client: Client) -> None:
    for twice in ("limit=1&limit=2", "limit=1&limit=1"):
        found = await client.ask("GET", f"/traces?{twice}", status=400)
        assert found["error"] == "the query parameter 'limit' may be given once"


@served
async def test_what_other_registries_know_is_passed_over(client: Client) -> None:
    assert await client.ask("GET", "/subjects?fetchMaxId=true") == []


def test_no_pattern_lets_a_newline_through_behind_a_value() -> None:
    """Python's `$` would; what programs of others are told has the `$` of JSON Schema."""
    types = [kind for one in OPERATIONS for kind in (one.body_type, one.path_type, one.query_type) if kind]
    checked = set(patterns_in(msgspec.json.schema_components(types)[1]))
    assert len(checked) > 10
    assert [each for each in checked if each.endswith("$")] == []
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"topic": "orders\n"}, TopicPath)
    told = set(patterns_in(document(ROUTES, "1")))
    assert len(told) > 10
    assert [each for each in told if "Z" in each.removeprefix("^")[-2:]] == []


def patterns_in(told: Any) -> list[str]:
    found, rest = [], [told]
    while rest:
        one = rest.pop()
        if isinstance(one, dict):
            found += [one["pattern"]] if isinstance(one.get("pattern"), str) else []
            rest += one.values()
        elif isinstance(one, list | tuple):
            rest += one
    return found
