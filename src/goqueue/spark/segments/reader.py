"""`spark.read.option("read", "segments").load(directory)`: the driver looks at headers, each task reads one piece."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StringType, StructField, StructType

from goqueue.client.offsets import EARLIEST, LATEST
from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.records.transactions import FOR_EVER
from goqueue.records.walk import Damage
from goqueue.spark.errors import SparkError, told_in_one_line
from goqueue.spark.options import Options
from goqueue.spark.read.bounds import Bound, ending, starting
from goqueue.spark.read.columns import check_schema, schema_of
from goqueue.spark.read.rows import Home, Rows
from goqueue.spark.segments.directory import LogFiles, find_logs
from goqueue.spark.segments.plan import Piece, Wanted, pieces_of
from goqueue.spark.segments.scan import batches_of
from goqueue.spark.versions import arrow_schema
from goqueue.telemetry.logs import get_logger

ERROR_COLUMN = "_error"
NO_TOPIC_ID = bytes(16)

events = get_logger("spark")


class PieceOfWork(InputPartition):
    def __init__(self, piece: Piece) -> None:
        super().__init__(piece)
        self.piece = piece


def segments_schema(options: Options) -> StructType:
    fields = list(schema_of(options).fields)
    if skips_damage(options) and not options.has("columns"):
        fields.append(StructField(ERROR_COLUMN, StringType()))
    return StructType(fields)


def skips_damage(options: Options) -> bool:
    """Only where that was asked for: what is damaged here was acknowledged once."""
    return options.has("badRows") and options.get("badRows") == "permissive"


class SegmentsReader(DataSourceReader):
    def __init__(self, schema: StructType, options: Options) -> None:
        plain = [field for field in schema.fields if field.name != ERROR_COLUMN]
        check_schema(StructType(plain))
        if "trace_id" in schema.names:
            raise SparkError("trace_id is made of the topic's id, which only the broker knows: segments have none")
        self._schema: pa.Schema = arrow_schema(schema)
        self._options = options
        self._skips_damage = skips_damage(options)

    def partitions(self) -> Sequence[InputPartition]:
        with told_in_one_line():
            starts, ends = starting(self._options, EARLIEST), ending(self._options)
            logs = find_logs(self._options)
            _check_places(starts, logs)
            _check_places(ends, logs)
            return [PieceOfWork(piece) for log in logs for piece in pieces_of(log, self._wanted(log, starts, ends))]

    def _wanted(self, log: LogFiles, starts: Bound, ends: Bound) -> Wanted:
        place = log.topic, log.partition
        first = starts.each.get(place, EARLIEST) if starts.everywhere is None else starts.everywhere
        last = ends.each.get(place, LATEST) if ends.everywhere is None else ends.everywhere
        return Wanted(
            start=0 if starts.is_moment or first == EARLIEST else FOR_EVER if first == LATEST else first,
            limit=FOR_EVER if ends.is_moment or last == LATEST else 0 if last == EARLIEST else last,
            start_ms=first if starts.is_moment and first >= 0 else None,
            limit_ms=last if ends.is_moment and last >= 0 else None,
            is_committed=self._options.get("kafka.isolation.level") == "read_committed",
            with_active=self._options.get("activeSegments"),
            skips_damage=self._skips_damage,
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with told_in_one_line():
            if isinstance(partition, PieceOfWork):  # Spark makes an empty one of its own where there is nothing to read
                yield from self._read(partition.piece)

    def _read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        fields = [field for field in self._schema if field.name != ERROR_COLUMN]
        rows = Rows(pa.schema(fields), Home(piece.topic, NO_TOPIC_ID, piece.partition))
        for item in batches_of(piece):
            damage = item if isinstance(item, Damage) else None
            if not isinstance(item, Damage):
                try:
                    rows.add(item, piece.start, piece.limit)
                except (CorruptBatch, BatchTooLarge) as error:  # whole, but its producer filled it with nonsense
                    damage = Damage(-1, -1, item.base_offset, item.next_offset, str(error))
            if damage is not None:
                if rows.count:
                    yield self._with_error(rows.take())
                yield from self._damaged(piece, damage)
            if rows.is_full:
                yield self._with_error(rows.take())
        if rows.count:
            yield self._with_error(rows.take())

    def _with_error(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """And the column for what is wrong, which is nothing."""
        if ERROR_COLUMN not in self._schema.names:
            return batch
        arrays = [
            pa.nulls(batch.num_rows, field.type) if field.name == ERROR_COLUMN else batch.column(field.name)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _damaged(self, piece: Piece, damage: Damage) -> Iterator[pa.RecordBatch]:
        """One row for what is lost, if there is a column to say so."""
        where = f" at byte {damage.position}" if damage.position >= 0 else ""
        lost = f"offsets {damage.first_offset} to {max(damage.first_offset, damage.next_offset - 1)}"
        told = f"{piece.segment.path}: damaged batch{where}, {lost}: {damage.reason}"
        if not self._skips_damage:
            raise SparkError(f"{told}; badRows=permissive leaves it out")
        events.warning("damaged batch skipped", path=piece.segment.path, position=damage.position, reason=told)
        if ERROR_COLUMN in self._schema.names:
            said: dict[str, Any] = {
                "topic": piece.topic,
                "partition": piece.partition,
                "offset": damage.first_offset,
                ERROR_COLUMN: told,
            }
            row = [pa.array([said.get(field.name)], field.type) for field in self._schema]
            yield pa.RecordBatch.from_arrays(row, schema=self._schema)


def _check_places(bound: Bound, logs: list[LogFiles]) -> None:
    unknown = set(bound.each) - {(log.topic, log.partition) for log in logs}
    if unknown:
        topic, partition = min(unknown)
        raise SparkError(f"{bound.option} names partition {partition} of topic {topic}, which the read is not about")
