"""What an older pyspark lacks or calls otherwise, so that nothing else need ask which one this is."""

from inspect import signature
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark
from pyspark.sql import datasource
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from goqueue.spark.errors import SparkError

__all__ = ["StreamArrowWriter", "arrow_schema", "check_stream_writes"]

if TYPE_CHECKING or hasattr(datasource, "DataSourceStreamArrowWriter"):
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as StreamArrowWriter
else:
    StreamArrowWriter = datasource.DataSourceStreamWriter  # so that modules load; nobody gets as far as to use it

_BY_ZONE = "timezone" in signature(to_arrow_schema).parameters
"""Before 4.2 there was no choice but UTC."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """With times in UTC."""
    return to_arrow_schema(schema, timezone="UTC") if _BY_ZONE else to_arrow_schema(schema)


def check_stream_writes() -> None:
    if not hasattr(datasource, "DataSourceStreamArrowWriter"):
        raise SparkError(
            f"writeStream to a topic needs pyspark 4.1 or newer, and this is {pyspark.__version__}: use"
            " foreachBatch, and in it df.write with txnAppId and txnVersion"
        )
