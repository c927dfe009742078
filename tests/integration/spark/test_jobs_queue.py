"""Report and dlq over what workers did, on real messages."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from goqueue.client import Job, Reject, Worker
from goqueue.client.sync import Admin
from goqueue.spark.jobs import dlq, measuring, report
from goqueue.spark.tables.schemas import SCHEMAS
from tests.integration.conftest import CreateTopic
from tests.integration.process import Node
from tests.integration.spark.jobs import Jobs, publish


@pytest.fixture
def jobs(node: Node, capsys: pytest.CaptureFixture[str], spark: SparkSession) -> Jobs:
    return Jobs(node, capsys)


async def work(node: Node, topic: str, group: str, messages: int) -> None:
    """Half of them are done, a quarter only the second time, and a quarter never, for two reasons."""
    worker = Worker(node.address, topic, group=group, concurrency=10, retry=lambda attempt: "1ms")
    ended = 0

    @worker.handle
    async def handle(job: Job) -> None:
        nonlocal ended
        number = int(job.headers["number"] or b"")
        if number % 4 == 1 and job.attempt == 1:
            raise RuntimeError("not now")
        ended += 1
        if ended == messages:
            worker.stop()
        if number % 4 == 3:
            raise Reject(f"no stock of item {number}" if number % 8 == 3 else f"customer {number} is 'unknown'")

    await worker.run()


def test_a_report_tells_what_happened_and_dead_letters_are_sorted(
    jobs: Jobs, spark: SparkSession, node: Node, make_topic: CreateTopic, tmp_path: Path, group: str
) -> None:
    topic = make_topic(1)
    publish(node, topic, [b'{"id": %d}' % number if number % 3 else b"{broken" for number in range(80)])
    asyncio.run(work(node, topic, group, 80))
    publish(node, topic, [b"more than one page of journeys"] * 1500)

    out = tmp_path / "tables"
    said = jobs(report, topic, "--out", str(out), "--window", "1h")
    assert said["records"] == 1580
    assert sum(row["messages"] for row in said["throughput"]) == 1580
    persisted = {row["group"]: row["messages"] for row in said["latency"] if row["stage"] == "persist"}
    assert (persisted.pop(group), list(persisted.values())) == (80, [1580])  # the others: the report, as a reader
    (tried,) = said["retries"]
    assert (tried["group"], tried["acked"], tried["nacked"], tried["rejected"]) == (group, 60, 20, 20)
    assert tried["deliveries"] == 100
    stages = {row["stage"]: row for row in said["latency"] if row["group"] == group}
    assert stages["end to end"]["messages"] == 60
    assert stages["wait"]["messages"] == 80
    assert stages["end to end"]["p50_ms"] <= stages["end to end"]["p99_ms"] <= stages["end to end"]["max_ms"]
    (dead,) = said["dead_letters"]
    assert (dead["reason"], dead["messages"]) == ("rejected", 20)
    assert [row["lag"] for row in said["lag_over_time"] if row["group"] == group][-1] == 1500
    assert said["lag"][0]["lag"] == 1500
    assert sum(row.messages for row in spark.read.parquet(str(out / "throughput")).collect()) == 1580

    said = jobs(dlq, topic)
    found = {(row["cause"], row["shape"]): row["messages"] for row in said["clusters"]}
    assert {cause for cause, _ in found} == {"no stock of item N", "customer N is '…'"}
    assert {shape for _, shape in found} == {"{id:int}", "broken JSON 1-9 B"}
    assert sum(found.values()) == 20
    chosen = ("--where", "cause LIKE 'no stock%' AND shape = '{id:int}'", "--redrive")
    wanted = found["no stock of item N", "{id:int}"]
    said = jobs(dlq, topic, *chosen, "--dry-run")
    assert (said["redriven"], said["dry_run"]) == (wanted, True)
    assert jobs(dlq, topic, *chosen)["redriven"] == wanted
    assert jobs(dlq, topic, *chosen)["redriven"] == 0
    with Admin(node.url) as admin:
        left = [letter.error for letter in admin.dead_letters(topic)]
    assert len(left) == 20 - wanted


def test_runs_are_taken_apart_and_a_delayed_message_is_one_with_its_second_place(spark: SparkSession) -> None:
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC)

    def told(event: str, first: int, last: int, after_ms: int = 0, every: int = 1, **more: Any) -> dict[str, Any]:
        place = {"topic": "t", "partition": 0, "first_offset": first, "last_offset": last, "every": every}
        return {"event": event, "timestamp": noon + timedelta(milliseconds=after_ms), **place, **more}

    kept, now = 300_000, 300_010
    stored = [
        told(measuring.RECEIVED, 7, 250_000, every=50_000),  # a sample: 50,000 to 250,000, and longer than one part
        told(measuring.RECEIVED, kept, kept),
        told(measuring.DUE, kept, kept, 50, moved_to=now),
        told(measuring.LEASED, now, now, 60, group="g"),
        told(measuring.ACKED, now, now, 90, group="g"),
        told("removed.by_retention", 0, 2**40),  # of no use here, and too many to be taken apart
    ]
    messages = spark.createDataFrame(
        [("t", 0, now, "high")], "topic string, partition int, offset bigint, priority string"
    )
    steps = measuring.steps(spark.createDataFrame(stored, SCHEMAS["steps"]), messages).cache()
    found = sorted((row.offset, row.timestamp, row.event, row.lane) for row in steps.collect())
    assert [(offset, event, lane) for offset, _, event, lane in found] == [
        *((offset, measuring.RECEIVED, "normal") for offset in range(50_000, 250_001, 50_000)),
        *((kept, event, "high") for event in (measuring.RECEIVED, measuring.DUE, measuring.LEASED, measuring.ACKED)),
    ]
    (waited,) = measuring.latencies(measuring.deliveries(steps)).where("stage = 'end to end'").collect()
    assert (waited.group, waited.lane, waited.messages, waited.p50_ms) == ("g", "high", 1, 90)
    noon_ms = int(noon.timestamp() * 1000)
    assert measuring.began_between(steps, noon_ms + 50, None).count() == 0
    assert measuring.began_between(steps, noon_ms, noon_ms + 1).count() == len(found)
