"""`spark.read`: a snapshot. The driver fixes the ranges when the read is planned; every action reads the same ones."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from goqueue.client.offsets import EARLIEST, LATEST
from goqueue.spark.connect import Brokers
from goqueue.spark.errors import SparkError, told_in_one_line
from goqueue.spark.options import Options
from goqueue.spark.read.bounds import Bound, ending, extent_of, ranges_of, resolve, starting
from goqueue.spark.read.columns import check_schema
from goqueue.spark.read.fetch import FetchOptions
from goqueue.spark.read.reader import read_range
from goqueue.spark.read.splits import Range, Split, cut
from goqueue.spark.read.topics import Chosen
from goqueue.spark.where import kafka_at


class BatchReader(DataSourceReader):
    def __init__(self, schema: StructType, options: Options) -> None:
        check_schema(schema)
        self._schema = schema
        self._servers = kafka_at(options)
        self._chosen = Chosen(options)
        self._starts = starting(options, EARLIEST)
        self._ends = ending(options)
        self._fetch = FetchOptions.of(options)
        self._parts_min: int | None = options.get("minPartitions")
        self._offsets_max: int | None = options.get("maxRecordsPerPartition")
        _check_not(self._starts, LATEST, "latest, where nothing is left to read")
        _check_not(self._ends, EARLIEST, "earliest, where nothing has been read")

    def partitions(self) -> Sequence[InputPartition]:
        with told_in_one_line(), Brokers(self._servers) as brokers:
            ranges = brokers.run(self._plan(brokers))
            return [Split(one) for one in cut(ranges, self._parts_min, self._offsets_max)]

    async def _plan(self, brokers: Brokers) -> list[Range]:
        cluster, (is_committed, fails_on_loss) = brokers.cluster, self._fetch[:2]
        places = await self._chosen.find(cluster)
        extent = await extent_of(cluster, places, is_committed=is_committed)
        start = await resolve(cluster, self._starts, extent, is_committed=is_committed, fails_on_loss=fails_on_loss)
        end = await resolve(cluster, self._ends, extent, is_committed=is_committed, fails_on_loss=fails_on_loss)
        return ranges_of(start, end, self._starts, self._ends, extent.ids)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with told_in_one_line():
            if isinstance(partition, Split):  # Spark makes an empty one of its own where there is nothing to read
                yield from read_range(self._servers, partition.range, self._schema, self._fetch)


def _check_not(bound: Bound, offset: int, why: str) -> None:
    if not bound.is_moment and (bound.everywhere == offset or offset in bound.each.values()):
        raise SparkError(f"{bound.option} of a batch read cannot be {why}")
