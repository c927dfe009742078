"""Under which group a query's position is reported."""

from goqueue.spark.options import Options, Part
from goqueue.spark.read.report import PositionReport


def group(**given: str) -> str | None:
    options = {name.replace("_", "."): value for name, value in given.items()}
    return PositionReport.of(Options({"kafka.bootstrap.servers": "a:1", **options}, Part.STREAM)).group


def test_nobody_is_told_unless_it_is_wanted() -> None:
    assert group(subscribe="orders") is None


def test_the_name_is_what_was_given() -> None:
    assert group(subscribe="orders", kafka_group_id="lake", groupIdPrefix="x") == "lake"


def test_a_prefix_gives_the_same_name_at_each_start_and_another_to_other_topics() -> None:
    name = group(subscribe="orders", groupIdPrefix="spark")
    assert name is not None
    assert name.startswith("spark-")
    assert name == group(subscribe="orders", groupIdPrefix="spark", maxOffsetsPerTrigger="5")
    assert name != group(subscribe="payments", groupIdPrefix="spark")
