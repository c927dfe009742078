"""Spark as a pool of workers: rows are leased, settled one by one or with their micro-batch, and never lost."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit
from pyspark.sql.streaming.readwriter import DataStreamReader

from goqueue.client.sync import Admin, Job, Producer, Worker
from goqueue.spark import settle
from tests.integration.process import Node, wait_until
from tests.integration.spark.pages import run_examples
from tests.integration.spark.queue_driver import work

DRIVER = Path(__file__).with_name("queue_driver.py")


def publish(node: Node, topic: str, values: list[str], partitions: int = 2, **options: Any) -> None:
    with Admin(node.url) as admin, Producer(node.address) as producer:
        admin.create_topic(topic, partitions, **options)
        producer.send_many(topic, [value.encode() for value in values])


def queue(spark: SparkSession, node: Node, topic: str, rows_max: int = 1000) -> DataStreamReader:
    return (
        spark.readStream.format("goqueue")
        .option("kafka.bootstrap.servers", node.address)
        .option("subscribe", topic)
        .option("mode", "queue")
        .option("kafka.group.id", f"{topic}-group")
        .option("maxRecordsPerTrigger", str(rows_max))
    )


def left(admin: Admin, topic: str) -> int:
    """What the group has still to do, in whatever state."""
    return admin.lag(f"{topic}-group").total_lag


def letters(admin: Admin, topic: str) -> dict[str | None, tuple[str, str, int]]:
    return {each.value: (each.reason, each.error, each.attempts) for each in admin.dead_letters(topic)}


def run_to_the_end(stream: DataFrame, handle: Callable[[DataFrame, int], None], checkpoint: Path) -> None:
    """Until nothing is ready."""
    writer = stream.writeStream.foreachBatch(handle).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def test_poison_ends_in_the_dead_letters_and_the_stream_goes_on(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    """Rejected by foreachBatch, or nacked until its attempts are used up; all others are acknowledged once."""
    publish(node, "poison", [f"{number}" for number in range(100)], attempts_max=2)
    seen: Counter[str] = Counter()
    counts: list[tuple[int, ...]] = []

    def handle(batch: DataFrame, _number: int) -> None:
        text = batch.withColumn("text", col("value").cast("string")).cache()
        seen.update(row.text for row in text.collect())
        wrong = text.where("text % 10 = 0").withColumn("_settle", expr("if(text % 20 = 0, 'reject', 'nack')"))
        wrong = wrong.withColumn("_delay", lit(0)).withColumn("_reason", lit("ends with 0"))
        counts.append(settle(wrong, node.address))

    run_to_the_end(queue(spark, node, "poison", rows_max=60).load(), handle, tmp_path / "checkpoint")
    with Admin(node.url) as admin:
        wait_until(lambda: len(letters(admin, "poison")) == 10, "the dead letters")
        assert letters(admin, "poison") == {
            f"{number}": ("rejected", "ends with 0", 1) if number % 20 == 0 else ("attempts", "ends with 0", 2)
            for number in range(0, 100, 10)
        }
        assert left(admin, "poison") == 0
    assert seen == {f"{number}": 2 if number % 20 == 10 else 1 for number in range(100)}
    assert [sum(each) for each in zip(*counts)] == [0, 10, 5, 0]


def test_rows_carry_what_settling_needs_and_a_sink_settles_them(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    publish(node, "sunk", [], partitions=1)
    with Producer(node.address) as producer:
        for value, priority in (("a", "normal"), ("b", "low"), ("c", "critical")):
            producer.send("sunk", value.encode(), priority=priority, key=b"k", headers={"h": b"1"})
    rows: list[Any] = []
    stream = queue(spark, node, "sunk").option("includeHeaders", "true").load()
    run_to_the_end(stream.where("value = 'x'"), lambda batch, _: rows.extend(batch.collect()), tmp_path / "one")
    assert rows == []

    with Admin(node.url) as admin, Producer(node.address) as producer:
        assert left(admin, "sunk") == 0
        for value, priority in (("d", "normal"), ("e", "low"), ("f", "critical")):
            producer.send("sunk", value.encode(), priority=priority, key=b"k", headers={"h": b"1"})
        judged = stream.selectExpr("receipt", "if(value = 'e', 'nack', null) AS _settle", "'1h' AS _delay")
        sink = judged.writeStream.format("goqueue").option("mode", "settle").option("goqueue.server", node.url)
        sink = sink.option("checkpointLocation", str(tmp_path / "two"))
        sink.trigger(availableNow=True).start().awaitTermination()
        (part,) = admin.lag("sunk-group").partitions
        assert (part.settled_offset, part.queue.waiting) == (4, 1)  # type: ignore[union-attr]

        producer.send("sunk", b"g", priority="high", key=b"k", headers={"h": b"1"})
        run_to_the_end(stream, lambda batch, _: rows.extend(batch.collect()), tmp_path / "two")
    (row,) = rows
    assert (bytes(row.value), row.delivery_count, row.priority, row.offset) == (b"g", 1, "high", 6)
    assert (bytes(row.key), row.headers[0].key) == (b"k", "h")
    assert row.receipt.endswith(".6")


def test_other_workers_share_the_group(spark: SparkSession, node: Node, tmp_path: Path) -> None:
    """Each message is handled once, by whoever gets it."""
    values = [f"{number}" for number in range(2000)]
    publish(node, "shared", values, partitions=4)
    by_spark: list[str] = []
    by_worker: list[str] = []
    worker = Worker(node.address, "shared", group="shared-group", concurrency=5)

    @worker.handle
    def work(job: Job) -> None:
        assert job.value is not None
        by_worker.append(job.value.decode())

    thread = threading.Thread(target=worker.run)

    def handle(batch: DataFrame, number: int) -> None:
        if number == 0:
            thread.start()
            wait_until(lambda: bool(by_worker), "the first job of the worker")
        by_spark.extend(bytes(row.value).decode() for row in batch.select("value").collect())

    run_to_the_end(queue(spark, node, "shared", rows_max=500).load(), handle, tmp_path / "checkpoint")
    with Admin(node.url) as admin:
        wait_until(lambda: left(admin, "shared") == 0, "the end of the work")
    worker.stop()
    thread.join()
    assert sorted(by_spark + by_worker, key=int) == values
    assert by_worker
    assert len(by_spark) >= 500


def test_a_driver_that_is_killed_goes_on_with_the_same_rows(spark: SparkSession, node: Node, tmp_path: Path) -> None:
    publish(node, "killed", [f"{number}" for number in range(100)])
    sink = tmp_path / "sink"
    sink.mkdir()
    places = node.address, str(tmp_path / "checkpoint"), str(sink)
    with subprocess.Popen([sys.executable, str(DRIVER), *places, "wait"], stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"in the middle\n"
        before = {path.name: json.loads(path.read_text()) for path in sink.iterdir()}
        first.kill()
    work(spark, *places)
    batches = {path.name: json.loads(path.read_text()) for path in sink.iterdir()}
    assert sorted(before) == ["0.json", "1.json"]
    # What was finished did not come again, and what was not came with the same rows.
    assert {name: sorted(rows) for name, rows in batches.items() if name in before} == {
        name: sorted(rows) for name, rows in before.items()
    }
    found = Counter(value for rows in batches.values() for _, _, value in rows)
    assert found == {f"{number}": 1 for number in range(100)}
    with Admin(node.url) as admin:
        wait_until(lambda: len(letters(admin, "killed")) == 10, "the dead letters")
        assert letters(admin, "killed") == {f"{n}": ("rejected", "ends with 0", 1) for n in range(0, 100, 10)}
        assert left(admin, "killed") == 0
        assert list(admin.leases("killed-group")) == []


def test_what_a_queue_cannot_be_is_told_in_one_line(spark: SparkSession, node: Node, tmp_path: Path) -> None:
    publish(node, "told", ["a"])
    asked = spark.read.format("goqueue").option("kafka.bootstrap.servers", node.address).option("mode", "queue")
    with pytest.raises(PySparkException, match="mode=queue is a stream") as told:
        asked.option("subscribe", "told").option("kafka.group.id", "g").load().count()
    assert "Traceback" not in str(told.value)
    no_group = spark.readStream.format("goqueue").option("kafka.bootstrap.servers", node.address)
    stream = no_group.option("mode", "queue").option("subscribe", "told").load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(PySparkException, match=r"kafka\.group\.id"):
        query.awaitTermination()


def test_typed_rows_are_leased_and_a_bad_one_is_kept_ends_the_query_or_is_a_dead_letter(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    schema = '{"type": "object", "properties": {"id": {"type": "integer"}}}'
    good, bad = '{"id": 7}', '{"id": "seven"}'
    found: list[tuple[int | None, bool]] = []

    def handle(rows: DataFrame, _number: int) -> None:
        found.extend((row.id, bool(row.receipt)) for row in rows.collect())

    for bad_rows in ("permissive", "failfast", "deadletter"):
        topic = f"typed-{bad_rows}"
        with Admin(node.url) as admin:
            admin.register_schema(f"{topic}-value", schema, "JSON")
            publish(node, topic, [good, bad, good], partitions=1)
            stream = queue(spark, node, topic).option("valueFormat", "json").option("badRows", bad_rows).load()
            found.clear()
            if bad_rows == "failfast":
                writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / topic))
                with pytest.raises(PySparkException, match=r'offset 1: .*"seven" is not an integer') as told:
                    writer.trigger(availableNow=True).start().awaitTermination()
                assert "Traceback" not in str(told.value)
                assert left(admin, topic) == 3
                continue
            run_to_the_end(stream, handle, tmp_path / topic)
            assert found == [(7, True), *([(None, True)] if bad_rows == "permissive" else []), (7, True)]
            assert left(admin, topic) == 0
            assert [each.value for each in admin.dead_letters(topic)] == ([bad] if bad_rows == "deadletter" else [])


def test_the_examples_of_the_page_run(
    spark: SparkSession, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(node, "mails", ["anna@example.org", "nobody", "ben@example.org"])
    assert run_examples("spark-queue.md", node, {"spark": spark}, {'"checkpoints/': f'"{tmp_path}/checkpoints/'}) == 2
    assert "anna@example.org" in capsys.readouterr().out
    with Admin(node.url) as admin:
        assert letters(admin, "mails") == {"nobody": ("rejected", "no address", 1)}
        assert admin.lag("mailers").total_lag == 0
