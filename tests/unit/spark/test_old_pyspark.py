import pytest
from pyspark.sql import datasource
from pyspark.sql.types import StringType, StructField, StructType

from goqueue.spark.errors import SparkError
from goqueue.spark.source import GoQueueDataSource


def test_a_pyspark_without_arrow_writers_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(datasource, "DataSourceStreamArrowWriter")
    rows = StructType([StructField("value", StringType())])
    source = GoQueueDataSource({"topic": "orders"})
    for write in (source.writer, source.streamWriter):
        with pytest.raises(SparkError, match=r"writing needs pyspark 4\.1 or newer"):
            write(rows, False)
