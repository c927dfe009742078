"""Transactions over HTTP: real ones, that every reader sees as a whole or not at all."""

import asyncio
from typing import Any

import httpx
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

from goqueue.records.batch import split
from goqueue.testing import broker
from tests.unit.doors.http.door_client import Client, served


async def init(client: Client, name: str = "billing", **more: Any) -> dict[str, Any]:
    """Who its producer is, as all further requests say it."""
    made = await client.post("/producers/init", transactional_id=name, **more)
    return {**made, "transactional_id": name}


async def publish(client: Client, who: dict[str, Any], value: str, *, status: int = 200, **more: Any) -> Any:
    body = {"topic": "orders", "value": value, **who, **more}
    return await client.post("/transactions/publish", **body, status=status)


async def values(client: Client, topic: str = "orders") -> list[bytes | None]:
    return [each.value for each in await client.b.read(topic)]


@served
async def test_a_transaction_is_seen_as_a_whole_when_it_is_committed(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.b.create_topic("bills", partitions=2)
    who = await init(client)
    begun = await client.post("/transactions/begin", **who)
    assert begun == {"transaction_id": f"txn-{who['producer_id']}-1", "status": "begun"}
    assert await publish(client, who, "a") == {"partition": 0, "offset": 0, "duplicate": False, "durability": "disk"}
    await publish(client, who, "b", topic="bills", partition=1)
    assert (await values(client), await values(client, "bills")) == ([], [])
    (open_one,) = (await client.get("/transactions"))["transactions"]
    assert open_one == {
        "transaction_id": begun["transaction_id"],
        "transactional_id": "billing",
        "producer_id": who["producer_id"],
        "epoch": 0,
        "state": "Ongoing",
        "start_time": "2026-01-01T00:00:00Z",
        "timeout_ms": 60_000,
        "partitions": [{"topic": "orders", "partition": 0}, {"topic": "bills", "partition": 1}],
    }
    ended = await client.post("/transactions/commit", **who)
    assert ended == {"status": "committed", "committed": True, "aborted": False}
    assert (await values(client), await values(client, "bills")) == ([b"a"], [b"b"])
    assert (await client.get("/transactions"))["count"] == 0


@served
async def test_an_aborted_transaction_is_never_seen(client: Client) -> None:
    await client.b.create_topic("orders")
    who = await init(client)
    await client.post("/transactions/begin", **who)
    await publish(client, who, "a", delay="1m")
    await publish(client, who, "b")
    assert (await client.post("/transactions/abort", **who))["status"] == "aborted"
    await client.post("/transactions/begin", **who)
    await publish(client, who, "c")
    await client.post("/transactions/commit", **who)
    await client.b.advance("1h")
    assert await values(client) == [b"c"]
    assert await client.b.receive("orders") != []
    found = await client.get("/transactions/stats")
    assert (found["committed_total"], found["aborted_total"], found["active_transactions"]) == (1, 1, 0)
    assert found["transactions_by_state"] == {"CompleteCommit": 1}
    assert found["transactional_producers"] == 1


@served
async def test_records_of_a_transaction_carry_producer_epoch_and_sequence(client: Client) -> None:
    await client.b.create_topic("orders")
    who = await init(client)
    await init(client)
    who = await init(client)
    assert who["epoch"] == 2
    await client.post("/transactions/begin", **who)
    for value in "abc":
        await publish(client, who, value)
    await client.post("/transactions/commit", **who)
    replica = client.b.broker.topics.replica("orders", 0)
    piece = replica.read(0, 1 << 20, replica.high_watermark)
    assert piece is not None
    *batches, marker = split(piece.view())
    assert [(each.producer_id, each.producer_epoch, each.base_sequence) for each in batches] == [
        (who["producer_id"], 2, sequence) for sequence in range(3)
    ]
    assert all(each.is_transactional for each in batches)
    assert marker.is_control


@served
async def test_a_message_sent_again_is_known_by_its_sequence(client: Client) -> None:
    await client.b.create_topic("orders", partitions=2)
    who = await init(client)
    await client.post("/transactions/begin", **who)
    refusal = await publish(client, who, "x", partition=0, sequence=1, status=400)
    assert refusal["code"] == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert (await publish(client, who, "a", partition=0, sequence=0))["offset"] == 0
    assert (await publish(client, who, "b", partition=0, sequence=1))["offset"] == 1
    again = await publish(client, who, "a", partition=0, sequence=0)
    assert again == {"partition": 0, "offset": 0, "duplicate": True, "durability": "disk"}
    assert (await publish(client, who, "c", partition=1, sequence=0))["duplicate"] is False
    await publish(client, who, "d", partition=0, sequence=3, status=400)
    await client.post("/transactions/commit", **who)
    await client.post("/transactions/begin", **who)
    await publish(client, who, "d", partition=0, sequence=2)
    await client.post("/transactions/commit", **who)
    assert sorted(each or b"" for each in await values(client)) == [b"a", b"b", b"c", b"d"]


@served
async def test_without_a_partition_the_key_chooses(client: Client) -> None:
    await client.b.create_topic("orders", partitions=8)
    plain = (await client.post("/topics/orders/messages", messages=[{"key": "k", "value": "x"}]))["results"]
    who = await init(client)
    await client.post("/transactions/begin", **who)
    for more in ({}, {"partition": None}, {"partition": -1}):
        assert (await publish(client, who, "a", key="k", **more))["partition"] == plain[0]["partition"]
    assert (await publish(client, who, "a", key="k", partition=3))["partition"] == 3
    await publish(client, who, "a", partition=8, status=404)


@served
async def test_a_producer_that_was_replaced_is_shut_out(client: Client) -> None:
    await client.b.create_topic("orders")
    old = await init(client)
    await client.post("/transactions/begin", **old)
    await publish(client, old, "old")
    new = await init(client)
    assert (new["producer_id"], new["epoch"] > old["epoch"]) == (old["producer_id"], True)
    assert (await publish(client, old, "late", status=409))["code"] == "PRODUCER_FENCED"
    for step in ("begin", "commit", "abort"):
        await client.post(f"/transactions/{step}", **old, status=409)
    await client.post("/transactions/add-partition", **old, topic="orders", partition=0, status=409)
    await client.post(f"/producers/{old['producer_id']}/heartbeat", epoch=old["epoch"], status=409)
    await client.post("/transactions/begin", **new)
    await publish(client, new, "new")
    await client.post("/transactions/commit", **new)
    assert await values(client) == [b"new"]


@served
async def test_without_an_open_transaction_nothing_is_published_or_ended(client: Client) -> None:
    await client.b.create_topic("orders")
    who = await init(client)
    for _ in range(2):
        assert (await publish(client, who, "a", status=409))["code"] == "INVALID_TXN_STATE"
        for step in ("commit", "abort"):
            assert (await client.post(f"/transactions/{step}", **who, status=409))["code"] == "INVALID_TXN_STATE"
        await client.post("/transactions/add-partition", **who, topic="orders", partition=0, status=409)
        await client.post("/transactions/begin", **who)
        refusal = await client.post("/transactions/begin", **who, status=409)
        assert refusal["code"] == "CONCURRENT_TRANSACTIONS"
        await client.post("/transactions/commit", **who)
    assert await values(client) == []
    await client.post("/transactions/begin", **who)
    await publish(client, who, "a")
    await client.post("/transactions/commit", **who)
    assert "was committed" in (await client.post("/transactions/commit", **who, status=409))["error"]


@served
async def test_a_transaction_that_takes_too_long_is_aborted(client: Client) -> None:
    await client.b.create_topic("orders")
    who = await init(client, transaction_timeout_ms=5000)
    await client.post("/transactions/begin", **who)
    assert [each["state"] for each in (await client.get("/transactions"))["transactions"]] == ["Begun"]
    await client.b.advance("6s")
    await client.post("/transactions/commit", **who, status=409)
    await client.post("/transactions/begin", **who)
    await publish(client, who, "a")
    await client.b.advance("6s")
    assert (await client.post("/transactions/commit", **who, status=409))["code"] == "PRODUCER_FENCED"
    await client.b.publish("orders", b"b")
    assert await values(client) == [b"b"]


@served
async def test_a_transaction_lives_through_a_restart(client: Client) -> None:
    await client.b.create_topic("orders")
    who = await init(client)
    await client.post("/transactions/begin", **who)
    await publish(client, who, "a")
    await client.restart()
    await publish(client, who, "b", sequence=1)
    assert await values(client) == []
    await client.post("/transactions/commit", **who)
    assert await values(client) == [b"a", b"b"]
    states = {each["state"] for each in (await client.get("/transactions", state="all"))["transactions"]}
    assert states == {"CompleteCommit"}


@served
async def test_partitions_may_be_named_first(client: Client) -> None:
    await client.b.create_topic("orders")
    who = await init(client)
    await client.post("/transactions/begin", **who)
    added = await client.post("/transactions/add-partition", **who, topic="orders", partition=0)
    assert added == {"status": "added", "topic": "orders", "partition": 0}
    await client.post("/transactions/add-partition", **who, topic="orders", partition=1, status=404)
    await client.post("/transactions/add-partition", **who, topic="none", partition=0, status=404)
    await client.post("/transactions/commit", **who)


@served
async def test_a_producer_without_transactions(client: Client) -> None:
    await client.b.create_topic("orders")
    made = await client.post("/producers/init")
    other = await client.post("/producers/init", transactional_id=None, transaction_timeout_ms=None)
    assert made["producer_id"] != other["producer_id"]
    beat = f"/producers/{made['producer_id']}/heartbeat"
    assert await client.post(beat, epoch=0) == {"status": "ok"}
    await client.post("/transactions/begin", **made, status=404)
    await publish(client, made, "x", status=404)


@served
async def test_heartbeats_say_whether_one_is_still_the_one(client: Client) -> None:
    who = await init(client)
    beat = f"/producers/{who['producer_id']}/heartbeat"
    for body in ({}, {"epoch": 0}, {"transactional_id": "billing", "epoch": 0}):
        assert await client.post(beat, **body) == {"status": "ok"}
    await client.post(beat, transactional_id="other", epoch=0, status=404)
    await client.post(beat, epoch=1, status=409)
    await client.post("/producers/99999/heartbeat", epoch=0, status=404)
    await client.post("/producers/x/heartbeat", epoch=0, status=400)


@served
async def test_what_cannot_be_part_of_a_transaction(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.b.create_topic("compacted", cleanup_policy="compact")
    who = await init(client)
    await client.post("/transactions/begin", **who)
    await publish(client, who, "x", topic="no ne", status=400)
    await publish(client, who, "x", topic="compacted", status=400)
    await publish(client, who, "x", value_base64="eA==", status=400)
    await publish(client, who, "x", priority="urgent", status=400)
    await publish(client, who, "x", partition=-2, status=400)
    await publish(client, who, "x", sequence=-1, status=400)
    await publish(client, who, "x" * 2_000_000, status=413)
    await client.post("/transactions/publish", topic="orders", value="x", status=400)
    await client.post("/transactions/begin", **(who | {"transactional_id": "other"}), status=404)
    for timeout_ms in (0, -1, 10_000_000):
        await client.post("/producers/init", transactional_id="a", transaction_timeout_ms=timeout_ms, status=400)
    await client.post("/producers/init", transactional_id="", status=400)
    await client.get("/transactions", state="open", status=400)
    await client.post("/transactions/commit", **who)
    assert await values(client) == []


def test_a_kafka_consumer_sees_an_http_transaction_when_it_is_committed() -> None:
    async def inside() -> None:
        async with broker(kafka=True, http=True, clock="real") as b, httpx.AsyncClient(base_url=b.http) as http:
            client = Client(b, http)
            await b.create_topic("orders")
            consumer = AIOKafkaConsumer(
                "orders", bootstrap_servers=b.kafka, isolation_level="read_committed", auto_offset_reset="earliest"
            )
            await consumer.start()
            try:
                who = await init(client)
                for value, end in (("gone", "abort"), ("one", "commit")):
                    await client.post("/transactions/begin", **who)
                    await publish(client, who, value)
                    await publish(client, who, f"{value} more")
                    assert await consumer.getmany(timeout_ms=50) == {}
                    await client.post(f"/transactions/{end}", **who)
                async with asyncio.timeout(20):
                    assert [(await consumer.getone()).value for _ in range(2)] == [b"one", b"one more"]
            finally:
                await consumer.stop()

    asyncio.run(inside())
