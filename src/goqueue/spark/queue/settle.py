"""Settling single rows of a micro-batch: done, once more later, or never. What is left is acknowledged at its end.

def handle(batch: DataFrame, number: int) -> None:
    settle(batch.where("value IS NULL").withColumn("_settle", lit("reject")), "127.0.0.1:9092")
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructType

from goqueue.spark.connect import administration, http_server
from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options, Part
from goqueue.spark.queue.patience import patiently
from goqueue.spark.where import Where
from goqueue.wire.rest.acks import REASON_CHARS_MAX, SETTLED_MAX

RECEIPT, SETTLE, DELAY, REASON = "receipt", "_settle", "_delay", "_reason"
ACTIONS = ("ack", "nack", "reject")
TOO_LATE = frozenset(("ALREADY_SETTLED", "LEASE_EXPIRED"))
"""As when a micro-batch runs again, or a lease has ended: the message is in other hands, or done."""
LATE = "late"

_TYPES: dict[str, tuple[type[DataType], ...]] = {
    RECEIPT: (StringType,),
    SETTLE: (StringType,),
    DELAY: (StringType, IntegerType, LongType),
    REASON: (StringType,),
}


class Settled(NamedTuple):
    """How many rows."""

    acked: int
    nacked: int
    rejected: int
    late: int
    """Their lease was over, or they had been settled before."""


def settle(rows: DataFrame, servers: str | None = None, *, goqueue_server: str | None = None, **more: str) -> Settled:
    """Settle each row as its column `_settle` says: ack, nack (after `_delay`), reject (with `_reason`); null: not now.

    `servers` are the brokers, or `goqueue_server` the HTTP address, of the queue that the receipts are from.
    `more`: options of security, as in `**{"goqueue.api.key.file": "spark.key"}`.
    """
    given = {"kafka.bootstrap.servers": servers, "goqueue.server": goqueue_server, **more}
    options = Options({name: value for name, value in given.items() if value is not None}, Part.SETTLE)
    wanted = rows.select(*columns_of(rows.schema))
    # By whoever runs the query, which every kind of session can: mapInArrow wants pandas, and a write counts nothing.
    counted = settle_all((row.asDict() for row in wanted.toLocalIterator()), http_server(options))
    return Settled(*(counted[name] for name in (*ACTIONS, LATE)))


def columns_of(schema: StructType) -> list[str]:
    """SparkError: one is missing, or is of another type."""
    types = {field.name: field.dataType for field in schema.fields}
    problems = [f"there is no column {name}" for name in (RECEIPT, SETTLE) if name not in types]
    for name, allowed in _TYPES.items():
        if name in types and not isinstance(types[name], allowed):
            shown = " or ".join(kind().simpleString() for kind in allowed)
            problems.append(f"column {name} is {types[name].simpleString()}, not {shown}")
    if problems:
        raise SparkError(f"rows cannot be settled: {'; '.join(problems)}")
    return [name for name in _TYPES if name in types]


def settle_all(rows: Iterable[Mapping[str, Any]], server: Where) -> Counter[str]:
    """How many rows went which way. SparkError: a receipt that is none, or a word that means nothing."""
    counts: Counter[str] = Counter()
    wanted = filter(None, map(entry_of, rows))
    with administration(server) as admin:
        while some := list(islice(wanted, SETTLED_MAX)):
            for result in patiently(lambda: admin.settle_each(some)):
                if result.success:
                    counts[result.action] += 1
                elif result.code in TOO_LATE:
                    counts[LATE] += 1
                else:
                    raise SparkError(f"a row cannot be settled: {result.error}")
    return counts


def entry_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """As the HTTP door takes it; None: it is not to be settled now."""
    action = row[SETTLE]
    if action is None:
        return None
    if action not in ACTIONS:
        raise SparkError(f"column _settle has {action!r}: it must be ack, nack, reject or null")
    if row[RECEIPT] is None:
        raise SparkError("a row without a receipt cannot be settled")
    entry = {"receipt_handle": row[RECEIPT], "action": action}
    if action == "nack" and row.get(DELAY) is not None:
        entry["delay"] = row[DELAY]
    if action != "ack" and row.get(REASON) is not None:
        entry["reason"] = row[REASON][:REASON_CHARS_MAX]
    return entry
