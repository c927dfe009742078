"""The data source `goqueue`: which piece reads or writes is chosen here, by the options, and nothing else is done.

Spark starts several Python processes for every read, so each imports only the piece that it needs.
"""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from goqueue.spark.errors import SparkError, told_in_one_line
from goqueue.spark.kafka_options import tell
from goqueue.spark.options import Options, Part, part_of, part_of_write, wants_types
from goqueue.spark.refused import RefusedStream


class GoQueueDataSource(DataSource):
    """Topics of GoQueue as DataFrames, and DataFrames as messages. `docs/spark.md` has all options."""

    @classmethod
    def name(cls) -> str:
        return "goqueue"

    def _read_options(self, *, is_stream: bool) -> Options:
        given = dict(self.options)
        return Options(given, part_of(given, is_stream=is_stream))

    def _write_options(self) -> Options:
        given = dict(self.options)
        options = Options(given, part_of_write(given))
        tell(options.unused)
        return options

    def schema(self) -> StructType:
        with told_in_one_line():
            # Spark asks before it says whether the read is a stream.
            given = dict(self.options)
            options = Options(given, part_of(given, is_stream=False), part_of(given, is_stream=True))
            tell(options.unused)
            if options.part is Part.TABLE:
                from goqueue.spark.tables.reader import table_schema

                return table_schema(options.need("table"))
            if wants_types(options):
                from goqueue.spark.formats.readers import schema_by_registry

                return schema_by_registry(options)
            if options.part is Part.SEGMENTS:
                from goqueue.spark.segments.reader import segments_schema

                return segments_schema(options)
            from goqueue.spark.read.columns import schema_of

            return schema_of(options)

    def reader(self, schema: StructType) -> DataSourceReader:
        with told_in_one_line():
            options = self._read_options(is_stream=False)
            if options.part is Part.TABLE:
                from goqueue.spark.tables.reader import TableReader

                return TableReader(options)
            if options.part is Part.QUEUE:
                raise SparkError("mode=queue is a stream: rows are leased for a while, so use spark.readStream")
            if wants_types(options):
                from goqueue.spark.formats import readers

                typed = readers.TypedSegmentsReader if options.part is Part.SEGMENTS else readers.TypedBatchReader
                return typed(schema, options)
            if options.part is Part.SEGMENTS:
                from goqueue.spark.segments.reader import SegmentsReader

                return SegmentsReader(schema, options)
            from goqueue.spark.read.batch import BatchReader

            return BatchReader(schema, options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        try:
            return self._stream_reader(schema)
        except SparkError as error:
            return RefusedStream(error)

    def _stream_reader(self, schema: StructType) -> DataSourceStreamReader:
        options = self._read_options(is_stream=True)
        if options.part is Part.TABLE:
            raise SparkError("a table is no stream: use spark.read")
        if options.part is Part.SEGMENTS:
            raise SparkError("sealed segments do not grow: read=segments is for spark.read, not for a stream")
        if wants_types(options):
            from goqueue.spark.formats import readers

            typed = readers.TypedQueueReader if options.part is Part.QUEUE else readers.TypedStreamReader
            return typed(schema, options)
        if options.part is Part.QUEUE:
            from goqueue.spark.queue.reader import QueueReader

            return QueueReader(schema, options)
        from goqueue.spark.read.stream import StreamReader

        return StreamReader(schema, options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        with told_in_one_line():
            options = self._write_options()
            if options.part is Part.SETTLE:
                from goqueue.spark.queue.writer import SettleWriter

                return SettleWriter(schema, options)
            from goqueue.spark.sink.writers import batch_writer

            return batch_writer(options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  Spark's name
        from goqueue.spark.versions import check_stream_writes

        with told_in_one_line():
            check_stream_writes()
            options = self._write_options()
            if options.part is Part.SETTLE:
                from goqueue.spark.queue.writer import SettleStreamWriter

                return SettleStreamWriter(schema, options)
            from goqueue.spark.sink.writers import stream_writer

            return stream_writer(options, schema, overwrite=overwrite)
