"""`mode = settle`: writing rows settles them. To do so twice, as when a micro-batch is written again, does no harm."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from goqueue.spark.connect import http_server
from goqueue.spark.errors import told_in_one_line
from goqueue.spark.options import Options
from goqueue.spark.queue.settle import columns_of, settle_all
from goqueue.spark.versions import StreamArrowWriter


class _Settling:
    """What both have in common: there is nothing to commit, as each row is settled when it is written."""

    def __init__(self, schema: StructType, options: Options) -> None:
        columns_of(schema)
        self._server = http_server(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with told_in_one_line():
            settle_all((row for batch in iterator for row in batch.to_pylist()), self._server)
            return WriterCommitMessage()


class SettleWriter(_Settling, DataSourceArrowWriter):
    pass


class SettleStreamWriter(_Settling, StreamArrowWriter):
    pass
