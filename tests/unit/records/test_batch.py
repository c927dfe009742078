import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.model.errors import CorruptBatch
from goqueue.records.batch import HEADER_BYTES, check_batch, place, split
from goqueue.records.build import build_batch
from goqueue.records.encode import Head, assemble
from tests.unit.records.samples import checked, resign, some_rows, thorough

UNSIGNED = [*range(8), *range(12, 16)]
"""Base offset and leader epoch: the broker sets them, so the log checks them, not the checksum."""


def test_every_flipped_bit_is_noticed_or_lies_where_the_broker_writes() -> None:
    data = build_batch(some_rows(), base_offset=7, leader_epoch=3)
    good = checked(data)
    for index in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[index] ^= 1 << bit
            if index in UNSIGNED:
                batch = checked(damaged)
                assert batch._replace(base_offset=7, leader_epoch=3, data=good.data) == good
            else:
                with pytest.raises(CorruptBatch):
                    checked(damaged)


def test_every_truncation_is_noticed() -> None:
    data = build_batch(some_rows())
    for size in range(len(data)):
        with pytest.raises(CorruptBatch):
            checked(data[:size])


def test_place_changes_only_what_is_not_signed() -> None:
    data = build_batch(some_rows())
    batch = checked(data)
    place(batch, 41, 5)
    placed = checked(data)
    assert (placed.base_offset, placed.last_offset, placed.next_offset, placed.leader_epoch) == (41, 45, 46, 5)
    assert placed._replace(base_offset=0, leader_epoch=-1) == batch


def test_split_gives_each_batch_and_refuses_left_over_bytes() -> None:
    sizes = [1, 4, 2]
    data = b"".join(build_batch(some_rows(size)) for size in sizes)
    assert [batch.record_count for batch in split(memoryview(data))] == sizes
    with pytest.raises(CorruptBatch):
        list(split(memoryview(data + b"\0")))


@pytest.mark.parametrize(
    "head",
    [
        Head(last_offset_delta=1, base_timestamp=0, max_timestamp=0, record_count=3),
        Head(last_offset_delta=1, base_timestamp=0, max_timestamp=0, record_count=-1),
        Head(last_offset_delta=-1, base_timestamp=0, max_timestamp=0, record_count=0),
    ],
)
def test_a_batch_cannot_hold_more_records_than_offsets(head: Head) -> None:
    with pytest.raises(CorruptBatch, match="offsets"):
        checked(assemble(head, b""))


def test_an_unknown_codec_is_corrupt() -> None:
    data = build_batch(some_rows())
    for codec in (5, 6, 7):
        data[22] = codec
        with pytest.raises(CorruptBatch, match="codec"):
            checked(resign(data))


def test_a_magic_other_than_two_is_corrupt() -> None:
    for magic in (0, 1, 3, 255):
        data = build_batch(some_rows())
        data[16] = magic
        with pytest.raises(CorruptBatch, match="magic"):
            checked(data)


@thorough
@given(st.binary(max_size=200), st.integers(0, 220))
def test_arbitrary_bytes_are_corrupt(data: bytes, position: int) -> None:
    with pytest.raises(CorruptBatch):
        check_batch(memoryview(data), position)


@thorough
@given(st.binary(min_size=HEADER_BYTES - 16, max_size=200))
def test_arbitrary_bytes_with_magic_and_checksum_are_a_batch_or_corrupt(tail: bytes) -> None:
    data = resign(bytearray(16) + b"\2" + tail)
    try:
        batch = checked(data)
    except CorruptBatch:
        return
    assert 0 <= batch.record_count <= batch.last_offset_delta + 1
    assert batch.size == len(data)
