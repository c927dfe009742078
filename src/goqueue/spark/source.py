"""The data source `goqueue`: which piece reads or writes is chosen here, by the options, and nothing else is done."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from goqueue.spark.errors import SparkError, told_in_one_line
from goqueue.spark.options import Options, Part, part_of
from goqueue.spark.read.batch import BatchReader
from goqueue.spark.read.columns import schema_of
from goqueue.spark.read.stream import StreamReader
from goqueue.spark.sink.writers import batch_writer, stream_writer


class GoQueueDataSource(DataSource):
    """Topics of GoQueue as DataFrames, and DataFrames as messages. `docs/spark.md` has all options."""

    @classmethod
    def name(cls) -> str:
        return "goqueue"

    def _read_options(self, *, is_stream: bool) -> Options:
        given = dict(self.options)
        return Options(given, part_of(given, is_stream=is_stream))

    def schema(self) -> StructType:
        with told_in_one_line():
            # Spark asks before it says whether the read is a stream.
            given = dict(self.options)
            options = Options(given, part_of(given, is_stream=False), part_of(given, is_stream=True))
            if options.part is Part.TABLE:
                raise SparkError("not built yet")
            return schema_of(options)

    def reader(self, schema: StructType) -> DataSourceReader:
        with told_in_one_line():
            options = self._read_options(is_stream=False)
            if options.part is Part.TABLE:
                raise SparkError("not built yet")
            if options.part is Part.SEGMENTS:
                raise SparkError("not built yet")
            return BatchReader(schema, options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        with told_in_one_line():
            options = self._read_options(is_stream=True)
            if options.part is Part.QUEUE:
                raise SparkError("not built yet")
            return StreamReader(schema, options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        with told_in_one_line():
            return batch_writer(Options(dict(self.options), Part.SINK), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  Spark's name
        with told_in_one_line():
            return stream_writer(Options(dict(self.options), Part.SINK), schema, overwrite=overwrite)
