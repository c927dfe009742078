import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.model.errors import DamagedFile
from goqueue.storage.index import EARLIEST_MS, OffsetIndex, TimeIndex


def offset_index(entries: list[tuple[int, int]], base: int = 1000) -> OffsetIndex:
    index = OffsetIndex(base)
    for offset, position in entries:
        index.add(offset, position)
    return index


def test_an_offset_is_found_in_the_last_block_that_begins_at_or_before_it() -> None:
    index = offset_index([(1000, 0), (1010, 4200), (1050, 9000)])
    assert [index.block_of_offset(offset) for offset in (999, 1000, 1009, 1010, 1049, 1050, 9999)] == [
        0,
        0,
        0,
        1,
        1,
        2,
        2,
    ]


def test_a_position_is_found_in_the_block_that_holds_it() -> None:
    index = offset_index([(1000, 0), (1010, 4200), (1050, 9000)])
    assert [index.block_of_position(position) for position in (0, 4199, 4200, 8999, 9000, 10**6)] == [0, 0, 1, 1, 2, 2]


def test_the_first_record_at_or_after_a_time_is_never_before_the_block_found() -> None:
    index = TimeIndex()
    for highest, offset in [(EARLIEST_MS, 0), (100, 10), (100, 20), (300, 30)]:
        index.add(highest, offset)
    # Up to offset 20 nothing is later than 100: a record at 101 can stand at 20 or behind it.
    assert [index.offsets[index.block_of_time(t)] for t in (0, 100, 101, 300, 301)] == [0, 0, 20, 20, 30]


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), min_size=1))
def test_an_offset_index_reads_back_as_written(entries: list[tuple[int, int]]) -> None:
    index = offset_index([(delta + 5, position) for delta, position in entries], base=5)
    again = OffsetIndex.decode(5, index.encode())
    assert (again.deltas, again.positions) == (index.deltas, index.positions)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**63 - 1))))
def test_a_time_index_has_sixteen_bytes_an_entry_and_reads_back_as_written(entries: list[tuple[int, int]]) -> None:
    index = TimeIndex()
    for highest, offset in entries:
        index.add(highest, offset)
    body = index.encode()
    assert len(body) == 4 + 16 * len(entries)
    again = TimeIndex.decode(body)
    assert (again.highest, again.offsets) == (index.highest, index.offsets)


def test_an_index_of_the_wrong_length_is_refused() -> None:
    body = offset_index([(1000, 0), (1010, 4200)]).encode()
    for damaged in (body[:-1], body + b"\0", body[:4]):
        with pytest.raises(DamagedFile):
            OffsetIndex.decode(1000, damaged)
