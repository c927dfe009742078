import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.spark.read.splits import Range, cut


def test_each_partition_is_one_piece_unless_more_are_wanted() -> None:
    ranges = [Range("a", 0, 5, 10), Range("a", 1, 7, 7)]
    assert cut(ranges, None, None) == [Range("a", 0, 5, 10)]


@pytest.mark.parametrize(
    ("parts_min", "offsets_max", "sizes"),
    [(4, None, [25, 25, 25, 25]), (None, 40, [33, 33, 34]), (4, 60, [25, 25, 25, 25]), (1, None, [100])],
)
def test_large_ranges_are_cut_evenly(parts_min: int | None, offsets_max: int | None, sizes: list[int]) -> None:
    assert [one.offsets for one in cut([Range("a", 0, 0, 100)], parts_min, offsets_max)] == sizes


def test_the_largest_is_cut_first() -> None:
    assert cut([Range("a", 0, 0, 10), Range("a", 1, 0, 90)], 4, None) == [
        Range("a", 0, 0, 10),
        Range("a", 1, 0, 30),
        Range("a", 1, 30, 60),
        Range("a", 1, 60, 90),
    ]


@given(
    sizes=st.lists(st.integers(0, 50), max_size=5),
    parts_min=st.none() | st.integers(1, 40),
    offsets_max=st.none() | st.integers(1, 60),
)
def test_the_pieces_are_the_whole(sizes: list[int], parts_min: int | None, offsets_max: int | None) -> None:
    ranges = [Range("a", number, 7, 7 + size) for number, size in enumerate(sizes)]
    pieces = cut(ranges, parts_min, offsets_max)
    assert [(one.partition, at) for one in pieces for at in range(one.start, one.end)] == [
        (one.partition, at) for one in ranges for at in range(one.start, one.end)
    ]
    assert len(pieces) >= min(parts_min or 0, sum(sizes))
    assert all(0 < one.offsets <= (offsets_max or 50) for one in pieces)
