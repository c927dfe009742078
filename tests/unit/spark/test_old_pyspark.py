import pyarrow as pa
import pytest
from pyspark.sql import datasource
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from goqueue.spark import versions
from goqueue.spark.errors import SparkError
from goqueue.spark.source import GoQueueDataSource


def test_a_pyspark_without_arrow_writers_for_streams_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(datasource, "DataSourceStreamArrowWriter")
    rows = StructType([StructField("value", StringType())])
    with pytest.raises(SparkError, match=r"writeStream to a topic needs pyspark 4\.1 or newer.* use foreachBatch"):
        GoQueueDataSource({"topic": "orders"}).streamWriter(rows, False)


def test_times_are_in_utc_whatever_pyspark_calls_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_before_4_2(schema: StructType, timestamp_utc: bool = True) -> pa.Schema:
        assert timestamp_utc
        return pa.schema([pa.field(field.name, pa.timestamp("us", "UTC")) for field in schema])

    rows = StructType([StructField("timestamp", TimestampType())])
    now = versions.arrow_schema(rows)
    monkeypatch.setattr(versions, "to_arrow_schema", as_before_4_2)
    monkeypatch.setattr(versions, "_BY_ZONE", False)
    assert versions.arrow_schema(rows) == now == pa.schema([("timestamp", pa.timestamp("us", "UTC"))])
