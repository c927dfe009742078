from argparse import Namespace
from hashlib import sha256

import pytest

from goqueue.spark.jobs import queries
from goqueue.spark.jobs.backfill import _name
from goqueue.spark.jobs.lake_tables import TABLES, advice, settings_of
from goqueue.spark.jobs.running import JobFailed
from goqueue.spark.jobs.table import ARCHIVE


@pytest.mark.parametrize(
    ("format", "spark", "package"),
    [
        ("delta", "4.0.5", "io.delta:delta-spark_4.0_2.13:4.4.0"),
        ("delta", "4.1.4", "io.delta:delta-spark_4.1_2.13:4.4.0"),
        ("delta", "4.2.1", "io.delta:delta-spark_4.2_2.13:4.4.0"),
        ("iceberg", "4.0.5", "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0"),
        ("iceberg", "4.1.4", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"),
    ],
)
def test_whoever_lacks_a_package_is_told_the_one_for_this_spark(format: str, spark: str, package: str) -> None:
    said = advice(format, spark)
    assert said.startswith(f"this Spark has no {format.capitalize()}: add it with --conf spark.jars.packages={package}")
    assert settings_of(format, spark)["spark.jars.packages"] == package
    assert all(f"--conf {key}={value}" in said for key, value in settings_of(format, spark).items())


def test_where_no_package_is_known_the_sparks_that_have_one_are_named() -> None:
    assert "for 4.3.0 we know of none, only for 4.0, 4.1, 4.2: " in advice("delta", "4.3.0")
    assert "for 4.2.1 we know of none, only for 4.0, 4.1: " in advice("iceberg", "4.2.1")
    assert "spark.jars.packages=io.delta:delta-spark_4.3_2.13:VERSION" in advice("delta", "4.3.0")


def test_the_command_offers_all_formats() -> None:
    (flag,) = (each for each in ARCHIVE.flags if each.names == ("--format",))
    assert set(flag.choices) == set(TABLES)


def test_a_batch_has_a_size_where_spark_knows_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert queries.limits_of(Namespace(batch=None)) == {"maxOffsetsPerTrigger": "1000000"}
    assert queries.limits_of(Namespace(batch=7)) == {"maxOffsetsPerTrigger": "7"}
    monkeypatch.setattr(queries, "IS_KNOWN_TO_SPARK", False)
    assert queries.limits_of(Namespace(batch=None)) == {}
    with pytest.raises(JobFailed, match=r"--batch needs pyspark 4\.2 or newer.*all is one batch"):
        queries.limits_of(Namespace(batch=7))


def test_a_backfill_of_a_version_before_goes_on_and_each_time_asked_for_is_another_one() -> None:
    words = {"topic": "orders", "select": None, "start": None, "stop": None, "keep_timestamps": False}
    assert _name(Namespace(**words), "out") == f"orders-{sha256(b'outNone').hexdigest()[:12]}"
    changes: list[dict[str, object]] = [{}, {"start": 0}, {"stop": 0}, {"start": 1}, {"keep_timestamps": True}]
    assert len({_name(Namespace(**words | change), "out") for change in changes}) == len(changes)
