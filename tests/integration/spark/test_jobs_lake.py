"""Archive, reconcile, backfill and restore, on one topic: everything arrives once, whoever is killed meanwhile."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest
from pyspark.sql import DataFrame, SparkSession

from goqueue.client.sync import Admin
from goqueue.spark.jobs import archive, backfill, reconcile, restore
from goqueue.spark.jobs.backfill import lake_then_tail
from goqueue.spark.jobs.lake import Lake
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, GOQUEUE, Node
from tests.integration.spark.jobs import SPARK_DEADLINE_S, Jobs, Place, publish, wait_for_batches
from tests.integration.spark.killing import kill_all_of
from tests.integration.topics import admin_client

DOCS = Path(__file__).parents[3] / "docs" / "pipeline.md"
(EXAMPLE,) = (each for each in re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL) if "lake" in each)


@pytest.fixture
def jobs(node: Node, capsys: pytest.CaptureFixture[str], spark: SparkSession) -> Jobs:
    return Jobs(node, capsys)


def read(rows: DataFrame) -> list[tuple[bytes, Place]]:
    found = rows.select("value", "partition", "offset").collect()
    return sorted((bytes(row.value), (row.partition, row.offset)) for row in found)


def test_a_topic_goes_to_the_lake_and_its_tail_is_read_after_it(
    jobs: Jobs,
    spark: SparkSession,
    node: Node,
    make_topic: CreateTopic,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, lake, out = make_topic(), str(tmp_path / "lake"), str(tmp_path / "out")
    first = publish(node, topic, [b"first %d" % number for number in range(3000)])
    said = jobs(archive, topic, "--lake", lake, "--batch", "1000")
    assert (said["records"], said["topics"]) == (3000, [topic])
    assert read(Lake(spark, lake).read(topic)) == sorted(first.items())
    assert [path.name[:5] for path in (tmp_path / "lake" / f"topic={topic}").glob("date=*")] == ["date="]
    said = jobs(reconcile, f"topic:{topic}", f"lake:{lake}")
    assert (said["is_right"], said["produced"], said["arrived"]) == (True, 3000, 3000)

    # What came since is missing in the lake, and read from the topic.
    second = publish(node, topic, [b"second %d" % number for number in range(300)])
    said = jobs(reconcile, f"topic:{topic}", f"lake:{lake}", "--samples", "2", code=1)
    assert (said["is_right"], said["lost"], said["duplicated"], len(said["samples"])) == (False, 300, 0, 2)
    everything = first | second
    assert read(lake_then_tail(spark, lake, topic, node.address)) == sorted(everything.items())
    placed = EXAMPLE.replace('"lake"', repr(lake)).replace('"orders"', repr(topic))
    exec(compile(placed.replace("127.0.0.1:9092", node.address), "docs/pipeline.md", "exec"), {})
    assert capsys.readouterr().out.count("Row(partition=") == 3
    said = jobs(backfill, topic, "--lake", lake, "--out", out)
    assert said["records"] == 3300
    assert read(spark.read.parquet(out)) == sorted(everything.items())

    # The archive grows; a backfill that goes on takes nothing twice.
    third = publish(node, topic, [b"third %d" % number for number in range(200)])
    assert jobs(archive, topic, "--lake", lake)["records"] == 500
    assert jobs(archive, topic, "--lake", lake)["records"] == 0
    everything |= third
    assert jobs(backfill, topic, "--lake", lake, "--out", out)["records"] == 200
    assert read(spark.read.parquet(out)) == sorted(everything.items())


def test_what_was_archived_comes_back_in_order_and_once(
    jobs: Jobs,
    spark: SparkSession,
    node: Node,
    make_topic: CreateTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, again, lake = make_topic(), make_topic(), str(tmp_path / "lake")
    published = publish(node, topic, [b"%d" % number for number in range(500)])
    jobs(archive, topic, "--lake", lake)
    wanted = {value: place for value, place in published.items() if int(value) >= 200}
    chosen = "CAST(CAST(value AS STRING) AS INT) >= 200"
    kept = ("--keep-partitions", "--keep-timestamps")
    words = (topic, "--lake", lake, "--into", again, "--where", chosen, *kept, "--rate", "150/s")
    assert jobs(restore, *words, "--dry-run")["records"] == 300
    _killed_after_a_slice(jobs, monkeypatch, *words)
    said = jobs(restore, *words)
    assert (0 < said["records"] <= 300, said["is_complete"]) == (True, True)
    rows = spark.read.format("goqueue").option("kafka.bootstrap.servers", node.address).option("includeHeaders", "true")
    back = rows.load(again).orderBy("partition", "offset").collect()
    assert sorted((bytes(row.value), row.partition) for row in back) == sorted(
        (value, place[0]) for value, place in wanted.items()
    )
    headers = [{each.key: bytes(each.value) for each in row.headers} for row in back]
    assert [(each["gq-restored-from"].decode(), each["number"]) for each in headers] == [
        ("{}/{}/{}".format(topic, *wanted[bytes(row.value)]), bytes(row.value)) for row in back
    ]
    times = {bytes(row.value): row.timestamp for row in rows.load(topic).collect()}
    assert {bytes(row.value): row.timestamp for row in back} == {value: times[value] for value in wanted}
    places = [wanted[bytes(row.value)] for row in back]
    assert places == sorted(places)  # by partition, then by offset: as they were
    by = "CAST(value AS STRING)"
    said = jobs(reconcile, f"lake:{lake}", f"topic:{again}", "--topic", topic, "--by", by, code=1)
    assert (said["lost"], said["arrived"], said["reordered"], said["unexpected"]) == (200, 300, 0, 0)
    short = make_topic(**{"retention.ms": "1"})
    refused = jobs(restore, topic, "--lake", lake, "--into", short, "--keep-timestamps", code=2)
    assert f"{short} removes what is older than 0.0 hours" in refused["error"]


def _killed_after_a_slice(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """The slice is in the topic, and nobody has noted that."""

    def killed(state: restore.State, slices: int) -> None:
        if slices:
            raise KeyboardInterrupt
        noted(state, slices)

    noted = restore.State.note
    with monkeypatch.context() as patched:
        patched.setattr(restore.State, "note", killed)
        with pytest.raises(KeyboardInterrupt):
            jobs(restore, *words)


def _stop_after_commit(checkpoints: Path) -> None:
    pause = threading.Event()
    while not list(checkpoints.rglob("commits/0")):
        pause.wait(0.02)
    os.kill(os.getpid(), signal.SIGTERM)


def test_an_archive_whose_checkpoint_is_lost_goes_on_where_the_lake_ends_until_it_is_told_to_stop(
    jobs: Jobs, spark: SparkSession, node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    topic, lake = make_topic(), tmp_path / "lake"
    published = publish(node, topic, [b"%d" % number for number in range(100)])
    jobs(archive, topic, "--lake", str(lake))
    (lake / "_goqueue" / "checkpoints").rename(tmp_path / "lost")
    published |= publish(node, topic, [b"more %d" % number for number in range(10)])
    stopper = threading.Thread(target=_stop_after_commit, args=(lake / "_goqueue" / "checkpoints",), daemon=True)
    stopper.start()
    said = jobs(archive, topic, "--lake", str(lake), "--follow", "--every", "10ms", code=128 + signal.SIGTERM)
    stopper.join()
    assert said["records"] == 10
    assert read(Lake(spark, str(lake)).read(topic)) == sorted(published.items())


def test_an_archive_that_is_killed_loses_nothing_and_repeats_nothing(
    jobs: Jobs, spark: SparkSession, node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    """The real command, killed with all its processes as soon as some batches are written."""
    topic, lake = make_topic(), tmp_path / "lake"
    published = publish(node, topic, [b"%d" % number for number in range(6000)])
    command = [GOQUEUE, "pipeline", "archive", topic, "--lake", lake, "--batch", "100", "--kafka", node.address]
    process = subprocess.Popen(list(map(str, command)), start_new_session=True)
    wait_for_batches(lake, 3, process)
    kill_all_of(process.pid)
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"
    said = jobs(reconcile, f"topic:{topic}", f"lake:{lake}", code=1)
    assert 0 < said["lost"] < 6000
    assert (said["duplicated"], said["unexpected"]) == (0, 0)
    jobs(archive, topic, "--lake", str(lake))
    said = jobs(reconcile, f"topic:{topic}", f"lake:{lake}")
    assert (said["is_right"], said["arrived"]) == (True, 6000)
    assert list(lake.rglob(".spark-staging-*")) == []
    assert read(spark.read.parquet(str(lake / f"topic={topic}"))) == sorted(published.items())


def test_sigterm_to_the_process_group_ends_a_job_after_its_micro_batch(
    node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    """As service managers and terminals send it. The JVM, which is not in the group, finishes the batch."""
    topic, lake = make_topic(), tmp_path / "lake"
    publish(node, topic, [b"%d" % number for number in range(6000)])
    command = [GOQUEUE, "pipeline", "archive", topic, "--lake", lake, "--batch", "100", "--kafka", node.address]
    words = list(map(str, [*command, "--follow"]))
    process = subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for_batches(lake, 3, process)
    os.killpg(process.pid, signal.SIGTERM)
    said, _ = process.communicate(timeout=SPARK_DEADLINE_S)
    assert process.returncode == 128 + signal.SIGTERM, said
    assert said.startswith(b"archived "), said
    assert len(said.splitlines()) == 1, said
    log = lake / "_goqueue" / "checkpoints" / topic
    planned, done = (
        {each.name for each in (log / name).iterdir() if each.name.isdigit()} for name in ("offsets", "commits")
    )
    assert planned == done, "a micro-batch was left in the middle"
    assert 3 <= len(done) < 60


def test_jobs_that_move_nothing_say_why(jobs: Jobs, node: Node, make_topic: CreateTopic, tmp_path: Path) -> None:
    topic, into, lake = make_topic(1), make_topic(1), tmp_path / "lake"
    assert jobs(archive, topic, "--lake", str(lake))["why"] == [f"nothing was ever published to {topic}"]
    publish(node, topic, [b"%d" % number for number in range(30)])
    assert jobs(archive, topic, "--lake", str(lake))["records"] == 30
    (why,) = jobs(archive, topic, "--lake", str(lake))["why"]
    assert why == f"nothing of {topic} is new: what it has, up to 30 offsets, was taken before"
    words = (topic, "--lake", str(lake), "--into", into)
    early = jobs(restore, *words, "--to", "2001-01-01T00:00:00Z")
    assert early["why"] == "none of 30 archived messages lies in that time"
    asked = (*words, "--where", "length(value) > 99")
    for more in ((), ("--dry-run",)):
        assert jobs(restore, *asked, *more)["why"] == "--where chooses none of the 30 archived messages of that time"
    said = jobs(backfill, *words, "--select", "SELECT * FROM messages WHERE partition > 7")
    assert (said["written"], said["why"]) == (0, "--select gave no rows")
    early = jobs(backfill, *words, "--to", "2001-01-01T00:00:00Z")
    assert (early["written"], early["why"]) == (0, "no message of that time is new")
    assert jobs(backfill, *words, "--from", "2001-01-01T00:00:00Z", "--keep-timestamps")["written"] == 30
    said = jobs(backfill, topic, "--lake", str(lake), "--out", str(tmp_path / "out"), "--keep-timestamps", code=2)
    assert "--keep-timestamps is for --into" in said["error"]
    gone = ck.TopicPartition(topic, 0, 30)
    admin_client(node.address).delete_records([gone])[gone].result(DEADLINE_S)
    shutil.rmtree(lake)
    (why,) = jobs(archive, topic, "--lake", str(lake))["why"]
    assert why.startswith(f"all 30 messages that {topic} had are gone: retention")


def test_an_archive_that_is_killed_in_its_first_batch_begins_where_it_began(
    jobs: Jobs, spark: SparkSession, node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    """Spark has noted that the batch is planned, and not that it is done: whether or not it was written."""
    topic, lake = make_topic(1), tmp_path / "lake"
    published = publish(node, topic, [b"%d" % number for number in range(100)])
    for is_written in (True, False):
        jobs(archive, topic, "--lake", str(lake))
        for commit in (lake / "_goqueue" / "checkpoints" / topic / "commits").iterdir():
            commit.unlink()
        if not is_written:
            shutil.rmtree(lake / f"topic={topic}")
        assert jobs(archive, topic, "--lake", str(lake))["records"] == 100
        assert read(Lake(spark, str(lake)).read(topic)) == sorted(published.items())


def test_consumed_records_in_a_file_are_compared_with_the_topic(
    jobs: Jobs, node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    topic, consumed = make_topic(1), tmp_path / "consumed.jsonl"
    publish(node, topic, [b"%d" % number for number in range(10)])
    offsets = [0, 1, 3, 2, 4, 4, 6, 7, 8, 12]  # 2 late, 4 twice, 5 and 9 never, and 12 is from nowhere
    lines: list[dict[str, Any]] = [
        {"topic": topic, "partition": 0, "offset": offset, "seen": number} for number, offset in enumerate(offsets)
    ]
    consumed.write_text("\n".join(map(json.dumps, lines)))
    said = jobs(reconcile, f"topic:{topic}", str(consumed), "--order", "seen", code=1)
    found = {fault: [each["offset"] for each in said["samples"] if each["fault"] == fault] for fault in
             ("lost", "duplicated", "reordered", "unexpected")}  # fmt: skip
    assert found == {"lost": [5, 9], "duplicated": [4], "reordered": [2], "unexpected": [12]}
    said = jobs(reconcile, f"topic:{topic}", "nowhere.parquet", code=2)
    assert "there is no 'nowhere.parquet'" in said["error"]


def test_values_are_archived_by_their_schema(
    jobs: Jobs, spark: SparkSession, node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    topic, lake = make_topic(1), str(tmp_path / "lake")
    fields = {"id": {"type": "integer"}, "offset": {"type": "string"}, "date": {"type": "string"}}
    with Admin(node.url) as admin:
        schema = json.dumps({"type": "object", "properties": fields, "required": ["id"]})
        admin.register_schema(f"{topic}-value", schema, "JSON")
    publish(node, topic, [b'{"id": 7, "offset": "three", "date": "today"}', b"none of that"])
    assert jobs(archive, topic, "--lake", lake, "--values", "json")["records"] == 2
    good, bad = Lake(spark, lake).read(topic).orderBy("offset").collect()
    assert (good.value.id, good.value.offset, good.value.date, good.offset, good.error) == (
        7,
        "three",
        "today",
        0,
        None,
    )
    assert (bytes(bad.bad_value), bad.error is not None) == (b"none of that", True)
    said = jobs(restore, topic, "--lake", lake, "--into", topic, code=2)
    assert "typed values" in said["error"]
    assert jobs(reconcile, f"topic:{topic}", f"lake:{lake}")["arrived"] == 2


def test_a_lake_keeps_its_format_and_one_that_spark_lacks_is_told_with_its_package(
    jobs: Jobs, spark: SparkSession, node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    topic, lake = make_topic(1), tmp_path / "lake"
    publish(node, topic, [b"%d" % number for number in range(10)])
    for format, name in (("delta", "Delta"), ("iceberg", "Iceberg")):
        said = jobs(archive, topic, "--lake", str(lake), "--format", format, code=2)
        assert f"this Spark has no {name}" in said["error"]
        assert "--conf spark.jars.packages=" in said["error"]
    assert not lake.exists()
    assert jobs(archive, topic, "--lake", str(lake))["records"] == 10
    for format in ("delta", "iceberg"):
        said = jobs(archive, topic, "--lake", str(lake), "--format", format, code=2)
        assert f"the archive of {topic} in {lake} is parquet, not {format}" in said["error"]
    for log, name in (("_delta_log", "Delta"), ("metadata", "Iceberg")):  # what others have written is seen, too
        (tmp_path / name / f"topic={topic}" / log).mkdir(parents=True)
        said = jobs(restore, topic, "--lake", str(tmp_path / name), code=2)
        assert f"this Spark has no {name}" in said["error"]
