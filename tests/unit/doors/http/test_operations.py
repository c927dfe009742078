"""All operations together make one document."""

from collections import Counter

from goqueue.doors.http.openapi import document
from goqueue.doors.http.routes.table import OPERATIONS
from tests.unit.doors.http.door_client import Client, served


def test_every_operation_has_a_name_and_a_summary_of_its_own() -> None:
    told = [each for path in document(OPERATIONS, "1")["paths"].values() for each in path.values()]
    assert len(told) == len(OPERATIONS)
    for field in ("operationId", "summary"):
        assert [name for name, count in Counter(each[field] for each in told).items() if count > 1 or not name] == []


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
