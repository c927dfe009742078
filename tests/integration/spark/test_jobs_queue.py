"""Report and dlq over what workers did, and pipelines of users in SQL and Python: each on real messages."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from goqueue.client import Job, Reject, Worker
from goqueue.client.sync import Admin
from goqueue.spark.jobs import dlq, measuring, report, run
from goqueue.spark.tables.schemas import SCHEMAS
from tests.integration.conftest import CreateTopic
from tests.integration.process import Node
from tests.integration.spark.jobs import Jobs, publish

PAGE = (Path(__file__).parents[3] / "docs" / "pipeline.md").read_text("utf-8")


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

    page, out = tmp_path / "report.html", tmp_path / "tables"
    said = jobs(report, topic, "--page", str(page), "--out", str(out), "--window", "1h")
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
    assert page.read_text("utf-8").count("<svg") >= 4

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


def test_the_pipelines_of_the_page_run(
    jobs: Jobs, spark: SparkSession, node: Node, tmp_path: Path, make_topic: CreateTopic
) -> None:
    (sql,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    python = next(each for each in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "write(" in each)
    orders, by_sql, by_python = make_topic(), make_topic(), make_topic()
    values = [b'{"id": %d, "amount": %d}' % (number, number % 200) for number in range(400)]
    published = publish(node, orders, values)
    big = sorted(value for value in published if int(value.split()[-1][:-1]) > 100)
    for name, text, into in (("big.sql", sql, by_sql), ("big.py", python, by_python)):
        placed = text.replace("FROM orders", f"FROM `{orders}`").replace('"orders"', f'"{orders}"')
        placed = placed.replace("INTO big", f"INTO `{into}`").replace('"big")', f'"{into}")')
        file = tmp_path / name
        file.write_text(placed)
        said = jobs(run, str(file), "--set", "least=100")
        assert said["queries"] == {into: len(big)}
        again = jobs(run, str(file), "--set", "least=100")
        assert (again["records"], again["bytes"]) == (0, 0)
        rows = spark.read.format("goqueue").option("kafka.bootstrap.servers", node.address).load(into).collect()
        shown = sorted(bytes(row.value) for row in rows)
        assert len(shown) == len(big)
        assert said["bytes"] == sum(len(row.key) + len(row.value) for row in rows)
        if name == "big.py":
            assert shown == big
    assert (tmp_path / "big.checkpoint" / by_sql).is_dir()


def test_what_is_no_stream_is_counted_too_and_bytes_only_where_they_are_known(
    jobs: Jobs, tmp_path: Path, make_topic: CreateTopic
) -> None:
    topic, file = make_topic(), tmp_path / "plain.sql"
    file.write_text(f"INSERT INTO `{topic}` VALUES ('k', 'größer') AS rows(key, value)")
    said = jobs(run, str(file))
    assert (said["queries"], said["records"], said["bytes"]) == ({topic: 1}, 1, 9)
    file.write_text(f"INSERT INTO parquet.`{tmp_path}/numbers` SELECT id FROM range(3)")
    said = jobs(run, str(file))
    assert (said["queries"], said["records"], said["bytes"]) == ({"numbers": 3}, 3, None)


def test_a_pipeline_that_cannot_run_says_why(jobs: Jobs, tmp_path: Path) -> None:
    file = tmp_path / "wrong.sql"
    file.write_text("SELECT * FROM no_such_thing")
    assert "there is no table and no topic 'no_such_thing'" in jobs(run, str(file), code=3)["error"]
    file.write_text("SELEC 1")
    assert "SELEC" in jobs(run, str(file), code=1)["error"]
    assert jobs(run, str(tmp_path / "none.sql"), code=2)["error"].endswith("none.sql'\n")
