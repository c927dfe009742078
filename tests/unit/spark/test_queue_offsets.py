"""The offset of a queue in a checkpoint: the leases themselves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.spark.errors import SparkError
from goqueue.spark.queue.offsets import NOTHING, Lease, Run, merged, packed, unpacked


@st.composite
def runs(draw: st.DrawFn) -> list[Run]:
    """In order, apart or side by side."""
    found, offset = [], 0
    for gap, length, count in draw(
        st.lists(st.tuples(st.integers(0, 50), st.integers(1, 2000), st.integers(1, 4)), min_size=1, max_size=30)
    ):
        first = offset + gap
        found.append(Run(first, first + length - 1, count))
        offset = first + length
    return found


@given(runs(), st.randoms())
def test_a_checkpoint_gives_back_every_offset_and_its_delivery_count(chosen: list[Run], dice: object) -> None:
    shuffled = list(chosen)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    offset = json.loads(json.dumps(packed([Lease("orders", 3, "Ag", tuple(shuffled))])))
    (lease,) = unpacked(offset)
    assert lease[:3] == ("orders", 3, "Ag")
    counts = {each: run.delivery_count for run in chosen for each in range(run.first, run.last + 1)}
    assert {each: run.delivery_count for run in lease.runs for each in range(run.first, run.last + 1)} == counts
    assert list(lease.runs) == sorted(lease.runs) == merged(lease.runs)
    assert lease.rows == len(counts)


def test_ten_thousand_neighbours_take_a_few_characters() -> None:
    offset = packed(
        [Lease("orders", 0, "Ag", (Run(5000, 9999), Run(0, 4999), Run(10_007, 10_007), Run(10_010, 10_011, 2)))]
    )
    assert offset == {
        "leases": [{"topic": "orders", "partition": 0, "receipt": "Ag", "runs": "0-9999,10007,10010-10011x2"}]
    }
    assert unpacked(NOTHING) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"orders": {"0": 5}},
        {"leases": [{"topic": "a"}]},
        {"leases": 3},
        {"leases": [{"topic": "a", "partition": 0, "receipt": "", "runs": "5-"}]},
    ],
)
def test_the_checkpoint_of_another_query_is_told_apart(wrong: dict[str, object]) -> None:
    with pytest.raises(SparkError, match="checkpointLocation of its own"):
        unpacked(wrong)
