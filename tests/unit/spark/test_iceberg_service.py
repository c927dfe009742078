"""The service of tables going round, with queries that are no queries of Spark."""

import asyncio
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from goqueue.model.codes import Code
from goqueue.spark.errors import SparkError
from goqueue.spark.iceberg.checkpoints import NOTE, note
from goqueue.spark.iceberg.discovery import _with_option
from goqueue.spark.iceberg.pages import served
from goqueue.spark.iceberg.service import Service
from goqueue.spark.iceberg.table import TopicTable
from goqueue.spark.jobs.running import EXIT_USAGE, JobFailed
from goqueue.spark.jobs.serve import directory_of
from goqueue.spark.where import Where
from goqueue.wire.kafka.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from goqueue.wire.rest.topics import PartitionOffsets, TopicDetails
from tests.unit.spark.test_iceberg_table import messages
from tests.unit.spark.test_iceberg_write import write


class Query:
    """Of Spark, as far as the service looks at it."""

    def __init__(self) -> None:
        self.isActive = True
        self.lastProgress: dict[str, Any] | None = None
        self.failed: Exception | None = None

    def exception(self) -> Exception | None:
        return self.failed

    def stop(self) -> None:
        self.isActive = False

    def fail(self) -> None:
        self.isActive, self.failed = False, SparkError("it failed")


class World:
    """Topics and their queries."""

    def __init__(self, lake: Path) -> None:
        self.now_s = 0.0
        self.topics: list[TopicDetails] = []
        self.started: list[tuple[str, str, Query]] = []
        self.service = Service(lake, Where("http://nobody"), lambda: self.topics, self._start, lambda: self.now_s)

    def _start(self, table: TopicTable, checkpoint: str) -> Any:
        self.started.append((table.settings.topic, checkpoint, Query()))
        return self.started[-1][2]

    def round(self) -> None:
        self.service.step()
        self.now_s += 100


def topic(name: str, id_: str = "id-1", end: int = 0, **options: str) -> TopicDetails:
    said = {"table": "iceberg"} | {name.replace("_", "."): value for name, value in options.items()}
    return TopicDetails(name, id_, 1, 0, 0, {"0": PartitionOffsets(0, end, end)}, said)


def test_a_table_that_is_made_anew_is_written_from_the_beginning(tmp_path: Path) -> None:
    """The checkpoint of the one that was dropped is at the end of the topic."""
    world = World(tmp_path)
    world.topics = [topic("orders")]
    world.round()
    ((_, first, query),) = world.started
    query.fail()
    world.round()
    world.round()
    assert [checkpoint for _, checkpoint, _ in world.started] == [first, first], "the same table goes on"
    world.service.catalogs.open().drop_table(("goqueue", "orders"))
    world.started[-1][2].fail()
    world.round()
    world.round()
    assert world.started[-1][1] != first


def test_a_table_that_was_put_back_to_an_older_state_goes_on_from_there(tmp_path: Path) -> None:
    """The catalog is restored from a backup, and the checkpoints are not: they are behind rows that the table lost."""

    def began(restored: bytes | None = None) -> tuple[TopicTable, Path]:
        if restored is not None:
            (tmp_path / "catalog.db").write_bytes(restored)
        world = World(tmp_path)
        world.topics = [topic("orders")]
        world.round()
        ((_, checkpoint, _),) = world.started
        return world.service.kept["orders"].table, Path(checkpoint)

    def do(batch: int, table: TopicTable, checkpoint: Path) -> None:
        """A micro-batch of a query of Spark."""
        (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
        (checkpoint / "offsets" / str(batch)).write_text("{}")
        write(table, messages(range(batch * 10, batch * 10 + 10)), batch)
        note(str(checkpoint), table.reached)

    table, checkpoint = began()
    do(0, table, checkpoint)
    backup = (tmp_path / "catalog.db").read_bytes()
    do(1, table, checkpoint)
    newest = (tmp_path / "catalog.db").read_bytes()
    for restored in (None, newest):
        began(restored)
        assert len(list((checkpoint / "offsets").iterdir())) == 2, "nothing is missing: the query goes on"
    table, again = began(backup)
    assert (table.reached, again) == ({0: 10}, checkpoint)
    assert list(checkpoint.parent.iterdir()) == [], "its query begins with a new one"
    do(1, table, checkpoint)
    assert table.reached == {0: 20}
    (checkpoint / NOTE).write_bytes(b"")  # which says nothing
    began()
    assert not checkpoint.exists()


def test_a_topic_whose_options_are_not_understood_stops_no_other(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.topics = [topic("odd"), topic("orders")]
    world.round()
    world.topics = [topic("odd", table_mode="sideways"), topic("orders"), topic("new")]
    world.round()
    assert world.service.error.startswith("topic odd: table.mode is 'sideways'")
    assert [name for name, *_ in world.started] == ["odd", "orders", "new"]
    assert all(query.isActive for *_, query in world.started)
    world.topics = [topic("orders")]
    world.round()
    assert [name for name, _, query in world.started if query.isActive] == ["orders"]
    assert world.service.error == ""


def test_a_table_that_is_tidied_keeps_no_other_waiting(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.topics = [topic("orders")]
    world.round()
    kept = world.service.kept["orders"]
    world.started[0][2].fail()
    world.round()
    with kept.table.lock:
        world.round()
        assert (len(world.started), kept.state) == (1, "failing")
    world.round()
    assert (len(world.started), kept.state) == (2, "running")


def test_markers_of_transactions_are_no_lag(tmp_path: Path) -> None:
    """They have offsets and are no rows, so that a table that has all would be one behind for ever."""
    world = World(tmp_path)
    world.topics = [topic("orders", end=11)]
    world.round()
    kept = world.service.kept["orders"]
    write(kept.table, messages(range(10)), 0)
    world.round()
    assert kept.lag.messages == 1
    query = world.started[0][2]
    query.lastProgress = {"sources": [{"endOffset": {"orders": {"0": 11}, "<ids>": {}}}]}
    world.round()
    assert kept.lag == (0, 0.0)
    query.fail()
    world.topics = [topic("orders", end=15)]
    world.round()
    world.round()
    assert kept.lag.messages == 4 + 1, "what a query did that is down, the table alone can tell"


def test_options_that_a_broker_does_not_tell_are_an_error() -> None:
    """Else a topic would seem to be no table any more, and its query would be stopped without a word."""
    found = DescribeConfigsResourceResult("table", "iceberg")
    results = [DescribeConfigsResult(resource_name="orders", configs=[found])]

    class Cluster:
        async def ask_any(self, *_: Any) -> DescribeConfigsResponse:
            return DescribeConfigsResponse(results=results)

    def ask() -> list[str]:
        return asyncio.run(_with_option(Cluster(), ["orders", "other"]))  # type: ignore[arg-type]

    results.append(DescribeConfigsResult(error_code=Code.UNKNOWN_TOPIC_OR_PARTITION, resource_name="other"))
    assert ask() == ["orders"]
    results[1] = DescribeConfigsResult(error_code=Code.TOPIC_AUTHORIZATION_FAILED, resource_name="other")
    with pytest.raises(SparkError, match="does not tell the options of topic other: topic authorization failed"):
        ask()


def test_a_lake_is_a_directory_of_this_machine() -> None:
    assert directory_of("lake") == Path("lake")
    assert directory_of("file:///srv/lake") == Path("/srv/lake")
    with pytest.raises(JobFailed, match=r"--lake s3://bucket/x is not a directory.*table.catalog") as refused:
        directory_of("s3://bucket/x")
    assert refused.value.code == EXIT_USAGE


def test_whoever_leaves_without_his_answer_leaves_no_stack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(tmp_path)
    world.service.error = property  # type: ignore[assignment]  # which JSON cannot say
    with (
        served(world.service, "127.0.0.1", 0) as address,
        pytest.raises(OSError, match="closed connection without response"),
    ):
        urllib.request.urlopen(f"http://{address}/status")
    assert capsys.readouterr().err == ""
