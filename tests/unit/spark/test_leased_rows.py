"""Rows of leases, wherever they lie: which of a batch, and what is told of each."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options, Part
from goqueue.spark.queue.leased_rows import GAP_OFFSETS_MAX, chosen, close_together, completed
from goqueue.spark.queue.offsets import Lease, Run
from goqueue.spark.queue.settle import columns_of, entry_of
from goqueue.spark.read.columns import schema_of

RUNS = (Run(2, 3), Run(6, 6, 2), Run(9, 20))


def at(*offsets: int) -> list[Any]:
    return [SimpleNamespace(offset=offset) for offset in offsets]


@pytest.mark.parametrize(
    ("offsets", "wanted"),
    [
        (range(8), [2, 3, 6]),
        (range(10, 15), [10, 11, 12, 13, 14]),
        (range(2), []),
        (range(4, 6), []),
        (range(19, 30), [19, 20]),
        ((2, 3), [2, 3]),
        ((), []),
    ],
)
def test_only_what_is_leased_is_taken_of_a_batch(offsets: Any, wanted: list[int]) -> None:
    assert [one.offset for one in chosen(at(*offsets), RUNS)] == wanted


def test_runs_that_lie_apart_are_fetched_apart() -> None:
    far = Run(20 + GAP_OFFSETS_MAX + 1, 5000)
    assert close_together((*RUNS, far)) == [list(RUNS), [far]]
    assert close_together((*RUNS, far._replace(first=20 + GAP_OFFSETS_MAX))) == [[*RUNS, far._replace(first=1020)]]


def test_a_row_has_its_receipt_and_how_often_it_was_delivered() -> None:
    wanted = pa.schema(
        [("receipt", pa.string()), ("value", pa.binary()), ("delivery_count", pa.int32()), ("offset", pa.int64())]
    )
    batch = pa.RecordBatch.from_pydict({"value": [b"a", b"b", b"c"], "offset": [3, 6, 9]})
    rows = completed(batch, Lease("orders", 0, "Ag", RUNS), wanted).to_pylist()
    assert [tuple(row.values()) for row in rows] == [("Ag.3", b"a", 1, 3), ("Ag.6", b"b", 2, 6), ("Ag.9", b"c", 1, 9)]


def test_a_receipt_is_a_column_of_queues_only() -> None:
    queue = schema_of(Options({"mode": "queue"}, Part.QUEUE))
    assert queue.names[-3:] == ["delivery_count", "priority", "receipt"]
    with pytest.raises(SparkError, match="there is no column 'receipt'"):
        schema_of(Options({"columns": "value,receipt"}, Part.BATCH))
    assert schema_of(Options({"mode": "queue", "columns": "value,receipt"}, Part.QUEUE)).names == ["value", "receipt"]


def test_rows_are_settled_as_their_columns_say() -> None:
    rows = [
        {"receipt": "a.1", "_settle": "ack", "_delay": "9s", "_reason": "x"},
        {"receipt": "a.2", "_settle": "nack", "_delay": "5s", "_reason": "busy"},
        {"receipt": "a.3", "_settle": "reject", "_delay": "5s", "_reason": "r" * 2000},
        {"receipt": "a.4", "_settle": None},
    ]
    assert [entry_of(row) for row in rows] == [
        {"receipt_handle": "a.1", "action": "ack"},
        {"receipt_handle": "a.2", "action": "nack", "delay": "5s", "reason": "busy"},
        {"receipt_handle": "a.3", "action": "reject", "reason": "r" * 1000},
        None,
    ]
    with pytest.raises(SparkError, match="_settle has 'drop'"):
        entry_of({"receipt": "a", "_settle": "drop"})


def test_rows_that_cannot_be_settled_are_told_before_anything_is_done() -> None:
    with pytest.raises(SparkError, match="no column _settle; column receipt is binary, not string"):
        columns_of(schema_of(Options({"columns": "value"}, Part.BATCH)).add("receipt", "binary"))
