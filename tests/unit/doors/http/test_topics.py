"""Topics over HTTP."""

from tests.unit.doors.http.door_client import Client, served


@served
async def test_a_topic_is_made_and_described(client: Client) -> None:
    made = await client.post("/topics", name="orders", num_partitions=2, options={"lease.ms": 500}, status=201)
    assert made == {"name": "orders", "partitions": 2, "created": True}
    assert await client.get("/topics") == {"topics": ["orders"]}
    found = await client.get("/v1/topics/orders")
    assert found["partition_offsets"] == {str(number): {"earliest": 0, "latest": -1, "next": 0} for number in (0, 1)}
    assert found["options"] == {"lease.ms": "500"}
    assert (found["partitions"], found["total_messages"]) == (2, 0)


@served
async def test_what_is_not_said_is_the_default(client: Client) -> None:
    await client.post("/topics", name="a", num_partitions=None, retention_hours=0, status=201)
    found = await client.get("/topics/a")
    assert (found["partitions"], found["options"]) == (3, {})
    await client.post("/topics", name="b", retention_hours=2, status=201)
    assert (await client.get("/topics/b"))["options"] == {"retention.ms": "7200000"}


@served
async def test_a_topic_of_that_name_exists(client: Client) -> None:
    await client.post("/topics", name="orders", status=201)
    refusal = await client.post("/topics", name="orders", status=409)
    assert refusal["code"] == "TOPIC_ALREADY_EXISTS"


@served
async def test_options_are_changed_and_taken_back(client: Client) -> None:
    await client.post("/topics", name="orders", status=201)
    changed = await client.patch("/topics/orders", options={"lease.ms": "100", "attempts.max": 7})
    assert changed["options"] == {"lease.ms": "100", "attempts.max": "7"}
    changed = await client.patch("/topics/orders", options={"lease.ms": None})
    assert changed["options"] == {"attempts.max": "7"}
    refusal = await client.patch("/topics/orders", options={"leese.ms": "1"}, status=400)
    assert "leese.ms" in refusal["error"]


@served
async def test_a_deleted_topic_is_gone(client: Client) -> None:
    await client.post("/topics", name="orders", status=201)
    assert await client.delete("/topics/orders") == {"deleted": True, "name": "orders"}
    for path in ("/topics/orders", "/topics/orders/partitions", "/topics/orders/partitions/0/messages"):
        assert (await client.get(path, status=404))["code"] == "UNKNOWN_TOPIC_OR_PARTITION"
    await client.delete("/topics/orders", status=404)


@served
async def test_names_are_checked(client: Client) -> None:
    for name in ("", ".", "..", "a/b", "a b", "x" * 250):
        await client.post("/topics", name=name, status=400)
    await client.get("/topics/..%2fescape", status=404)
    await client.get("/topics/a%20b", status=400)


@served
async def test_what_cannot_be_understood_is_a_400_with_a_reason(client: Client) -> None:
    wrong = [b"{", b"[]", b"\xff", b'{"name": 5}', b"{}", b'{"name": "a", "num_partitions": "many"}', b'{"nome": "a"}']
    for content in wrong:
        reply = await client.http.post("/topics", content=content, headers={"content-type": "application/json"})
        assert (reply.status_code, reply.json()["code"]) == (400, "INVALID_REQUEST"), content
    assert await client.get("/topics") == {"topics": []}


@served
async def test_no_route_and_no_method_say_so(client: Client) -> None:
    assert (await client.get("/topicz", status=404))["code"] == "NO_SUCH_ROUTE"
    assert (await client.get("/topics/a/b/c/d", status=404))["code"] == "NO_SUCH_ROUTE"
    reply = await client.http.put("/topics")
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET, HEAD, POST")
