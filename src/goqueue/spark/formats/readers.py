"""The readers, with typed columns instead of the raw value: each reads as it does without, and decodes what it read."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from goqueue.spark.connect import http_server
from goqueue.spark.errors import told_in_one_line
from goqueue.spark.formats.plan import chosen_columns, decoding_of, typed_schema
from goqueue.spark.formats.typed import Typing, raw_schema
from goqueue.spark.options import Options, Part
from goqueue.spark.queue.reader import QueueReader
from goqueue.spark.read.batch import BatchReader
from goqueue.spark.read.stream import StreamReader
from goqueue.spark.segments.reader import SegmentsReader, skips_damage


def schema_by_registry(options: Options) -> StructType:
    return typed_schema(options, decoding_of(options, http_server(options)))


class _Typed:
    """In front of a reader in the order of its bases."""

    def __init__(self, schema: StructType, options: Options) -> None:
        self._decoding = decoding_of(options, http_server(options))
        self._columns = chosen_columns(schema, self._decoding)
        has_error = options.part is Part.SEGMENTS and skips_damage(options)
        super().__init__(raw_schema(self._columns, self._decoding, has_error=has_error), options)  # type: ignore[call-arg]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows: Any = super().read(partition)  # type: ignore[misc]
        with told_in_one_line(), Typing(self._decoding, self._columns) as typing:
            yield from typing.apply(rows)


class TypedBatchReader(_Typed, BatchReader): ...


class TypedStreamReader(_Typed, StreamReader): ...


class TypedQueueReader(_Typed, QueueReader): ...


class TypedSegmentsReader(_Typed, SegmentsReader): ...
