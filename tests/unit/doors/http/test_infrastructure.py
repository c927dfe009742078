"""Health, version, request ids and the limit on requests."""

import asyncio
import errno
from typing import Any

from structlog.testing import capture_logs

from tests.unit.doors.http.door_client import Client, door, served

MIB = 1024 * 1024


@served
async def test_a_node_in_order_passes_its_probes(client: Client) -> None:
    await client.post("/topics", name="orders", status=201)
    await client.b.advance("1h")
    assert await client.get("/health") == {"status": "ok", "timestamp": "2026-01-01T01:00:00Z"}
    for path in ("/healthz", "/readyz", "/livez", "/v1/healthz"):
        assert await client.get(path) == {"status": "pass", "timestamp": "2026-01-01T01:00:00Z", "uptime": "1h"}
    told = await client.get("/readyz", verbose="true")
    assert told["checks"]["storage"]["status"] == "pass"
    assert told["broker"]["topic_count"] == 1


@served
async def test_a_partition_out_of_service_fails_the_probes(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=1, status=201)
    fault = client.b.faults.add("sync", errno.EIO)
    (result,) = (await client.post("/topics/orders/messages", messages=[{"value": "x"}]))["results"]
    assert result["error"]
    assert fault.hits
    for path in ("/healthz", "/readyz"):
        assert "orders/0" in (await client.get(path, status=503))["message"]
    assert (await client.get("/livez"))["status"] == "pass"


def failed(told: dict[str, Any]) -> set[str]:
    return {name for name, check in told["checks"].items() if check["status"] == "fail"}


@served
async def test_readiness_is_more_than_health(client: Client) -> None:
    """What comes right by waiting must not get a node restarted."""
    health, replicas = client.b.broker.health, client.b._live().node.replicas
    replicas.disk_reserve_bytes = client.b.disk.free_bytes() + 1
    assert failed(await client.get("/readyz", verbose="true", status=503)) == {"disk"}
    replicas.disk_reserve_bytes = 0
    health._loop_watch._recent.append(2.5)
    told = await client.get("/readyz", verbose="true", status=503)
    assert (failed(told), "2.5 s" in told["message"]) == ({"event_loop"}, True)
    health._loop_watch._recent.clear()
    health.is_stopping = True
    assert failed(await client.get("/readyz", verbose="true", status=503)) == {"broker"}
    for path in ("/healthz", "/livez"):
        assert (await client.get(path))["status"] == "pass"


@served
async def test_a_node_that_refuses_messages_for_want_of_room_is_not_ready(client: Client) -> None:
    """What is free never falls below the reserve by what we append: that is what it is for."""
    replicas, disk = client.b._live().node.replicas, client.b.disk
    disk.capacity_bytes = capacity = 64 * MIB
    replicas.disk_reserve_bytes = 8 * MIB
    await client.ask("POST", "/topics", {"name": "orders", "num_partitions": 1}, status=201)
    assert (await client.get("/readyz"))["status"] == "pass"
    taken = 0
    while taken < 100:
        (result,) = (await client.post("/topics/orders/messages", messages=[{"value": "x" * 900_000}]))["results"]
        if result.get("error"):
            break
        taken += 1
    assert 50 < taken < 100, "room was left that messages could have had"
    assert disk.free_bytes() >= replicas.disk_reserve_bytes
    assert failed(await client.get("/readyz", verbose="true", status=503)) == {"disk"}
    told = await client.get("/healthz")
    assert (told["status"], "must stay so" in told["message"]) == ("warn", True)
    disk.capacity_bytes = 2 * capacity
    assert (await client.get("/readyz"))["status"] == "pass"
    (result,) = (await client.post("/topics/orders/messages", messages=[{"value": "x"}]))["results"]
    assert "error" not in result


@served
async def test_a_ledger_out_of_service_fails_the_probes(client: Client) -> None:
    fault = client.b.faults.add("sync", errno.EIO, prefix="logs/@metadata")
    await client.post("/topics", name="orders", status=503)
    assert fault.hits
    assert "metadata-0" in (await client.get("/healthz", status=503))["message"]
    assert failed(await client.get("/readyz", verbose="true", status=503)) == {"ledgers"}
    assert (await client.get("/livez"))["status"] == "pass"


@served
async def test_a_coordinator_that_fails_again_and_again_fails_the_probes_and_refuses_for_now(client: Client) -> None:
    (schemas,) = client.b.broker.health._coordinators.of_kind("schemas")

    def fail(_facts: object) -> None:
        raise ZeroDivisionError

    schemas.after_apply = fail
    with capture_logs() as told:
        for number in range(3):
            path, body = f"/subjects/orders{number}/versions", {"schema": '{"type": "string"}'}
            refused = await client.http.post(path, json=body)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert refused.json()["code"] in ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE")
            await client.b.advance("10ms")
    assert [event["event"] for event in told] == ["coordinator failed"] * 3 + ["coordinator stopped"]
    assert "schemas-0" in (await client.get("/healthz", status=503))["message"]
    assert failed(await client.get("/readyz", verbose="true", status=503)) == {"ledgers"}
    lines = client.b.broker.metrics.exposition()[0].decode().splitlines()
    assert 'goqueue_runtime_coordinator_faults_total{coordinator="schemas-0",node_id="1"} 3' in lines
    assert 'goqueue_runtime_coordinators_out_of_service{node_id="1"} 1' in lines
    await client.post("/topics", name="orders", status=201)
    schemas.after_apply = lambda facts: None
    await client.b.advance("10s")
    assert await client.get("/subjects") == ["orders0", "orders1", "orders2"], "what was stored is not lost"
    assert (await client.get("/healthz"))["status"] == "pass"


@served
async def test_stats_count_messages_and_bytes(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=2, status=201)
    await client.post("/topics/orders/messages", messages=[{"value": "x"}] * 5)
    found = await client.get("/stats")
    assert (found["topics"], found["topic_stats"]["orders"]["total_messages"]) == (1, 5)
    assert found["total_size_bytes"] == found["topic_stats"]["orders"]["total_size"] > 0


@served
async def test_a_request_keeps_its_id_or_gets_one(client: Client) -> None:
    reply = await client.http.get("/health", headers={"x-request-id": "mine"})
    assert reply.headers["x-request-id"] == "mine"
    reply = await client.http.get("/health", headers={"x-request-id": "two words"})
    assert reply.headers["x-request-id"] not in ("two words", "")


def test_requests_over_the_limit_are_told_to_wait() -> None:
    async def inside() -> None:
        async with door(requests_per_second_max=2) as client:
            assert [(await client.http.get("/topics")).status_code for _ in range(4)] == [200, 200, 429, 429]
            refused = await client.http.get("/topics")
            assert (refused.headers["retry-after"], refused.headers["x-ratelimit-limit"]) == ("1", "2")
            assert (await client.http.get("/healthz")).status_code == 200
            await client.b.advance("1s")
            assert [(await client.http.get("/topics")).status_code for _ in range(3)] == [200, 200, 429]

    asyncio.run(inside())


def test_the_limit_of_requests_is_the_same_when_the_clock_was_set() -> None:
    async def inside() -> None:
        async with door(requests_per_second_max=2) as client:
            assert [(await client.http.get("/topics")).status_code for _ in range(3)] == [200, 200, 429]
            await client.b.set_clock_back("1h")
            assert (await client.http.get("/topics")).status_code == 429
            await client.b.advance("1s")
            assert [(await client.http.get("/topics")).status_code for _ in range(3)] == [200, 200, 429]
            await client.b.set_clock_forward("2h")
            assert (await client.http.get("/topics")).status_code == 429

    asyncio.run(inside())


@served
async def test_the_root_leads_on(client: Client) -> None:
    found = await client.get("/")
    assert found == await client.get("/v1") == await client.get("/v1/")
    assert (found["name"], found["docs"], found["openapi"]) == ("GoQueue", "/docs", "/openapi.json")
    for path in set(found.values()) - {found["name"], found["version"]}:
        assert (await client.http.get(path)).status_code == 200
    browser = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    for path, page in {"/": "/console/", "/v1/": "/v1/console/"}.items():
        led = await client.http.get(path, headers=browser)
        assert (led.status_code, str(led.next_request.url.path if led.next_request else "")) == (303, page)
    assert (await client.http.post("/", json={})).status_code == 405
