"""How micro-batches are sized, and what a pyspark without limits is told."""

import builtins
import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options, Part
from goqueue.spark.read import limits, stream
from goqueue.spark.read.columns import schema_of
from goqueue.spark.read.limits import Limits, spread, spread_bytes, wants_all


def test_partitions_give_in_proportion() -> None:
    assert spread({("a", 0): 900, ("a", 1): 100, ("a", 2): 0}, 100) == {("a", 0): 90, ("a", 1): 10, ("a", 2): 0}


def test_one_that_has_little_gives_something() -> None:
    assert spread({("a", 0): 100_000, ("a", 1): 1}, 10) == {("a", 0): 9, ("a", 1): 1}


def test_large_records_count_for_more() -> None:
    available = {("a", 0): 100, ("a", 1): 100}
    assert spread_bytes(available, {("a", 0): 10.0, ("a", 1): 1000.0}, 10_100) == {("a", 0): 10, ("a", 1): 10}
    assert spread_bytes(available, {("a", 0): 10.0, ("a", 1): 1000.0}, 200_000) == available


@given(st.dictionaries(st.tuples(st.just("a"), st.integers(0, 9)), st.integers(0, 1000)), st.integers(1, 500))
def test_there_is_always_progress_and_never_more_than_there_is(available: dict[Any, int], most: int) -> None:
    chosen = spread(available, most)
    assert all(0 <= chosen[place] <= count for place, count in available.items())
    assert all(chosen[place] for place, count in available.items() if count)
    assert sum(chosen.values()) <= max(most, sum(1 for count in available.values() if count), 1) + len(available)


def test_spark_is_told_of_a_limit_that_makes_it_ask() -> None:
    def told(**given: str) -> Any:
        return Limits.of(Options(given, Part.STREAM)).for_spark()

    assert told() == ReadAllAvailable()
    assert told(maxOffsetsPerTrigger="5", maxBytesPerTrigger="7") == ReadMaxRows(5)
    assert told(maxBytesPerTrigger="1k") == ReadMaxBytes(1024)
    assert told(minOffsetsPerTrigger="3") == ReadMinRows(3)
    assert wants_all(ReadAllAvailable())
    assert not wants_all(ReadMaxRows(5))


def test_too_little_is_waited_for_but_not_too_long() -> None:
    found = Limits.of(Options({"minOffsetsPerTrigger": "10", "maxTriggerDelay": "1s"}, Part.STREAM))
    assert found.waits(9, 999)
    assert not found.waits(9, 1000)
    assert not found.waits(10, 0)


@pytest.fixture
def pyspark_without_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As before 4.2: the module that has them is not there."""
    actual = builtins.__import__

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pyspark.sql.streaming" and "datasource" in (args[2] or ()):
            raise ImportError(name)
        return actual(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importing)
    importlib.reload(limits)
    importlib.reload(stream)
    yield
    monkeypatch.undo()
    importlib.reload(limits)
    importlib.reload(stream)


@pytest.mark.usefixtures("pyspark_without_limits")
def test_a_pyspark_without_limits_reads_but_does_not_limit() -> None:
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders"}
    options = Options(given, Part.STREAM)
    reader = stream.StreamReader(schema_of(options), options)
    assert [each.__name__ for each in type(reader).__bases__] == ["DataSourceStreamReader", "_CanStopAtNow"]
    limited = Options(given | {"maxOffsetsPerTrigger": "5"}, Part.STREAM)
    with pytest.raises(SparkError, match=r"maxOffsetsPerTrigger: needs pyspark 4.2 or newer, and this is"):
        stream.StreamReader(schema_of(options), limited)
