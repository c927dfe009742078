"""`mode = queue`: the driver leases, executors read what is leased, and a finished micro-batch is acknowledged.

Spark tells twice that a micro-batch is finished: by `commit`, which it calls only when the next one has begun, and by
the start that it gives to `latestOffset`. The second comes first and always, so it is what acknowledges.
"""

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from goqueue.client.http import NOT_FOUND, HttpRefused
from goqueue.client.sync import Admin
from goqueue.spark.connect import http_server
from goqueue.spark.errors import SparkError, told_in_one_line
from goqueue.spark.options import Options, Part, names
from goqueue.spark.queue.lease_extender import LeaseExtender
from goqueue.spark.queue.leased_rows import read_lease
from goqueue.spark.queue.offsets import NOTHING, Lease, Run, packed, unpacked
from goqueue.spark.queue.patience import patiently
from goqueue.spark.read.columns import check_schema
from goqueue.spark.read.limits import admission
from goqueue.spark.where import kafka_at

if TYPE_CHECKING or admission is None:

    class _CanStopAtNow:
        """Not asked before Spark 4.2, which queue mode needs."""
else:
    _CanStopAtNow = admission.SupportsTriggerAvailableNow

WAIT_MS = 250
"""For something to do, before Spark is told that there is nothing: else it would ask a hundred times a second."""
VISIBILITY_MS_MIN = 1000
"""What is leased first must not be ready again before the last row of a micro-batch is leased."""
TURNS_MAX = 100


class LeaseSplit(InputPartition):
    def __init__(self, lease: Lease) -> None:
        super().__init__(lease)
        self.lease = lease


class QueueReader(DataSourceStreamReader, _CanStopAtNow):
    def __init__(self, schema: StructType, options: Options) -> None:
        if admission is None:
            raise SparkError("mode=queue needs pyspark 4.2 or newer: before, Spark does not say what it has finished")
        check_schema(schema, Part.QUEUE)
        self._schema = schema
        self._options = options
        self._servers = kafka_at(options)
        self._group: str = options.need("kafka.group.id")
        self._rows_max: int = options.get("maxRecordsPerTrigger")
        self._visibility_ms: int = options.get("visibility")
        if self._visibility_ms < VISIBILITY_MS_MIN:
            raise SparkError(f"visibility: {self._visibility_ms} ms is too short, it must be 1s at least")
        self._topics = Topics(options)
        # Made when they are needed: executors get a copy of this object, and have no use for them.
        self._admin: Admin | None = None
        self._extender: LeaseExtender | None = None
        self._consumer = ""
        self._wait_ms = WAIT_MS
        self._finished = ""

    # -- on the driver

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's names, here and below
        return NOTHING

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        assert admission is not None
        return admission.ReadMaxRows(self._rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """It ends when nothing is ready, which is not waited for."""
        self._wait_ms = 0

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
        with told_in_one_line():
            self._finish(start)
            leases = self._take(getattr(limit, "max_rows", self._rows_max))
            if not leases:
                return start
            self._extending.hold(lease.receipt for lease in leases)
            return packed(leases)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:  # noqa: ARG002
        with told_in_one_line():
            leases = unpacked(end)
            missing = {lease.receipt for lease in leases} - set(self._extending.held)
            if missing:  # the micro-batch of a query that has been started again
                self._extending.hold(missing)
                self._extending.extend_now()
            return [LeaseSplit(lease) for lease in leases]

    def commit(self, end: dict[str, Any]) -> None:
        with told_in_one_line():
            self._finish(end)

    def stop(self) -> None:
        if self._extender is not None:
            self._extender.stop()
        if self._admin is not None:
            self._admin.close()

    @property
    def _door(self) -> Admin:
        if self._admin is None:
            server = http_server(self._options)
            self._admin = Admin(server.address, security=server.security).start()
            self._consumer = f"spark-{secrets.token_hex(4)}"
        return self._admin

    @property
    def _extending(self) -> LeaseExtender:
        if self._extender is None:
            self._extender = LeaseExtender(
                lambda receipts: self._door.extend_leases(receipts, self._visibility_ms), self._visibility_ms
            )
        return self._extender

    def _finish(self, offset: dict[str, Any]) -> None:
        """Acknowledge all rows of a micro-batch that were not settled otherwise. A second time does nothing."""
        leases, name = unpacked(offset), json.dumps(offset)
        if not leases or name == self._finished:
            return
        said = [{"receipt": lease.receipt, "runs": [list(run) for run in lease.runs]} for lease in leases]
        patiently(lambda: self._door.finish_leases(said))
        self._finished = name
        self._extending.let_go(lease.receipt for lease in leases)

    def _take(self, rows_max: int) -> list[Lease]:
        found: list[Lease] = []
        room = rows_max
        for _ in range(TURNS_MAX):
            some = patiently(lambda: self._take_some(room, 0 if found else self._wait_ms))  # noqa: B023  it is called now
            found += some
            room -= sum(lease.rows for lease in some)
            if not some or room <= 0:
                break
        return found

    def _take_some(self, rows_max: int, wait_ms: int) -> list[Lease]:
        topics = self._topics.names(self._door)
        if not topics:
            return []
        try:
            taken = self._door.take_leases(
                self._group,
                topics,
                limit=rows_max,
                lease=self._visibility_ms,
                wait_ms=wait_ms,
                consumer=self._consumer,
            )
        except HttpRefused as error:
            if error.status == NOT_FOUND:
                raise SparkError(str(error)) from None
            raise
        return [
            Lease(each.topic, each.partition, each.receipt, tuple(Run(*run) for run in sorted(each.runs)))
            for each in taken
        ]

    # -- on executors

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with told_in_one_line():
            if isinstance(partition, LeaseSplit):
                yield from read_lease(self._servers, partition.lease, self._schema)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_admin": None, "_extender": None}


class Topics:
    """Which topics the group works on. A pattern may find more of them the next time."""

    def __init__(self, options: Options) -> None:
        given = [name for name in ("subscribe", "subscribePattern", "path") if options.has(name)]
        if len(given) != 1:
            raise SparkError(
                'say which topics, in one way: .option("subscribe", "orders"), subscribePattern or .load()'
            )
        (how,) = given
        self._pattern: str | None = options.get(how) if how == "subscribePattern" else None
        what = options.get(how)
        self._names = names(what) if how == "path" else what

    def names(self, admin: Admin) -> list[str]:
        if self._pattern is None:
            return list(self._names)
        return [name for name in admin.topics() if re.fullmatch(self._pattern, name)]
