"""`spark.readStream`: the driver's side of a stream. Where it stands is in Spark's checkpoint, not in the broker.

Spark asks how far it may go, plans what lies between two such answers, and says when that is done. The same object is
also sent to executors, for `read`; what it has open belongs to the driver and stays there.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from goqueue.client.assigned import Place
from goqueue.client.errors import ClientError
from goqueue.client.offsets import LATEST
from goqueue.spark.connect import Brokers
from goqueue.spark.errors import told_in_one_line
from goqueue.spark.options import Options
from goqueue.spark.read.bounds import Extent, extent_of, resolve, starting
from goqueue.spark.read.columns import check_schema
from goqueue.spark.read.fetch import FetchOptions
from goqueue.spark.read.limits import Limits, admission, spread, spread_bytes, wants_all
from goqueue.spark.read.loss import planned, still_there
from goqueue.spark.read.positions import Document, Position, read, start_of, written
from goqueue.spark.read.reader import read_range
from goqueue.spark.read.report import PositionReport
from goqueue.spark.read.sample import record_bytes
from goqueue.spark.read.splits import Range, Split, cut
from goqueue.spark.read.topics import Chosen
from goqueue.spark.where import kafka_at

LOOK_S = 1.0
"""How old what is known of topics and partitions may be: an idle stream asks a hundred times a second."""

if TYPE_CHECKING or admission is None:

    class _CanStopAtNow:
        """Spark does not ask before 4.2: there, a query up to now is one micro-batch."""
else:
    _CanStopAtNow = admission.SupportsTriggerAvailableNow


class StreamReader(DataSourceStreamReader, _CanStopAtNow):
    def __init__(self, schema: StructType, options: Options) -> None:
        check_schema(schema)
        self._schema = schema
        self._servers = kafka_at(options)
        self._chosen = Chosen(options)
        self._starts = starting(options, LATEST)
        self._fetch = FetchOptions.of(options)
        self._limits = Limits.of(options)
        self._parts_min: int | None = options.get("minPartitions")
        self._offsets_max: int | None = options.get("maxRecordsPerPartition")
        self._report = PositionReport.of(options)
        self._brokers: Brokers | None = None
        self._places: Mapping[Place, bytes] = {}
        self._looked_s = -LOOK_S
        self._target: Position | None = None
        """Where a query ends that shall read what is there now, and no more."""
        self._last_batch_s = time.monotonic()
        self._began: Document | None = None
        """Where the query begins, until its first micro-batch is planned."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_brokers": None, "_places": {}, "_looked_s": -LOOK_S}

    # -- what Spark asks the driver

    def initialOffset(self) -> Document:  # noqa: N802  Spark's name
        with told_in_one_line():
            self._began = written(self._run(self._initial))
            return self._began

    def latestOffset(self, start: Document | None = None, limit: Any = None) -> Document:  # noqa: N802  Spark's name
        """Before 4.2, Spark tells neither."""
        with told_in_one_line():
            at = None if start is None else read(start)
            end: Position = self._run(lambda brokers: self._latest(brokers, at, limit))
            if at is not None and start is not None and self._began is None and written(at) == written(end):
                return start  # word for word, or Spark takes it for news
            return written(end, self._began)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  Spark's name
        return self._limits.for_spark()

    def reportLatestOffset(self) -> Document | None:  # noqa: N802  Spark's name
        with told_in_one_line():
            return written(self._run(self._ends))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        with told_in_one_line():
            self._looked_s = -LOOK_S
            self._target = self._run(self._ends)

    def partitions(self, start: Document, end: Document) -> Sequence[InputPartition]:
        with told_in_one_line():
            self._began = None
            begin = read(start_of(start, end))
            ranges = self._run(lambda brokers: self._plan(brokers, begin, read(end)))
            return [Split(one) for one in cut(ranges, self._parts_min, self._offsets_max)]

    def commit(self, end: Document) -> None:
        with told_in_one_line():
            at = read(end)
            self._run(lambda brokers: self._report.send(brokers.cluster, at.offsets))

    def stop(self) -> None:
        brokers, self._brokers = self._brokers, None
        if brokers is not None:
            brokers.__exit__()

    # -- what it asks an executor

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with told_in_one_line():
            if isinstance(partition, Split):
                yield from read_range(self._servers, partition.range, self._schema, self._fetch)

    # -- how it is answered

    def _run(self, ask: Any) -> Any:
        if self._brokers is None:
            brokers = Brokers(self._servers)
            brokers.__enter__()
            self._brokers = brokers
        return self._brokers.run(ask(self._brokers))

    async def _initial(self, brokers: Brokers) -> Position:
        is_committed, fails_on_loss = self._fetch[:2]
        extent = await self._extent(brokers)
        offsets = await resolve(
            brokers.cluster, self._starts, extent, is_committed=is_committed, fails_on_loss=fails_on_loss
        )
        return Position(offsets, extent.ids)

    async def _extent(self, brokers: Brokers) -> Extent:
        """Of the partitions that there are: some may be new, some may have gone a moment ago."""
        cluster = brokers.cluster

        async def attempt() -> Extent:
            if time.monotonic() - self._looked_s >= LOOK_S:
                self._places = await self._chosen.find(cluster, may_be_missing=not self._fetch.fails_on_loss)
                self._looked_s = time.monotonic()
            try:
                only_once_s = cluster.clock.time_s()
                return await extent_of(
                    cluster, self._places, is_committed=self._fetch.is_committed, give_up_s=only_once_s
                )
            except ClientError:
                self._looked_s = -LOOK_S
                raise

        return await cluster.retry(attempt)

    async def _ends(self, brokers: Brokers) -> Position:
        extent = await self._extent(brokers)
        return Position(extent.end, extent.ids)

    async def _latest(self, brokers: Brokers, start: Position | None, limit: Any) -> Position:
        extent = await self._extent(brokers)
        end = extent.end
        if self._target is not None:
            ends = {place: self._target.at(place, extent.ids) for place in end}
            end = {place: min(end[place], offset) for place, offset in ends.items() if offset is not None}
        if start is None:
            return Position(end, extent.ids)
        # Spark asks for more only when all before is done. It says so by `commit` as well, but one batch later.
        await self._report.send(brokers.cluster, start.offsets)
        still_there(start, end, extent, fails_on_loss=self._fetch.fails_on_loss)
        begins = {place: _begin(start, end, extent, place) for place in end}
        available = {place: end[place] - begins[place] for place in end}
        if wants_all(limit):
            chosen = available
        else:
            waited_ms = (time.monotonic() - self._last_batch_s) * 1000
            if self._target is None and self._limits.waits(sum(available.values()), waited_ms):
                return start
            chosen = await self._capped(brokers, begins, available)
        if any(chosen.values()):
            self._last_batch_s = time.monotonic()
        return Position({place: begins[place] + chosen[place] for place in end}, extent.ids)

    async def _capped(
        self, brokers: Brokers, begins: Mapping[Place, int], available: Mapping[Place, int]
    ) -> dict[Place, int]:
        chosen = dict(available)
        if self._limits.offsets_max is not None:
            chosen = spread(chosen, self._limits.offsets_max)
        if self._limits.bytes_max is not None:
            waiting = {place: begins[place] for place, count in chosen.items() if count}
            sizes = await record_bytes(brokers.cluster, waiting, self._fetch.is_committed)
            chosen |= spread_bytes({place: chosen[place] for place in waiting}, sizes, self._limits.bytes_max)
        return chosen

    async def _plan(self, brokers: Brokers, start: Position, end: Position) -> list[Range]:
        return planned(start, end, await self._extent(brokers), fails_on_loss=self._fetch.fails_on_loss)


def _begin(start: Position, end: Mapping[Place, int], extent: Extent, place: Place) -> int:
    """A new partition is read from its first offset on, and so is one that was made anew. What retention has removed
    counts for nothing; whether that may be is seen when the micro-batch is planned.
    """
    first, at = extent.first[place], start.at(place, extent.ids)
    return first if at is None or at > end[place] else max(at, first)
