import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.records.batch import Batch, Codec, place
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.decode import PlainRecord, decode
from goqueue.records.encode import Head, assemble, encode_records
from goqueue.records.weigh import OBJECT_BYTES_PER_BYTE_MAX, object_bytes
from tests.unit.records.samples import (
    ALL_CODECS,
    COMPRESSED,
    MIB,
    NOW_MS,
    checked,
    expected,
    fields,
    headers,
    int64,
    octets,
    plain_records,
    quick,
    resign,
    run_python,
    some_rows,
    thorough,
)

TEN_BYTES = b"\xff" * 9 + b"\x01"
"""The largest negative number; with the first byte even, the largest positive one."""


def batch_of(plain: bytes, count: int, codec: Codec = Codec.NONE, last_offset_delta: int | None = None) -> Batch:
    last = count - 1 if last_offset_delta is None else last_offset_delta
    return checked(assemble(Head(last, NOW_MS, NOW_MS, count, codec), plain))


def record(body: bytes) -> bytes:
    """One record with a right length before it."""
    assert len(body) < 64
    return bytes([2 * len(body)]) + body


EMPTY = record(b"\0\0\0\1\1\0")
"""Attributes, timestamp delta, offset delta, no key, no value, no headers."""


def test_the_smallest_record_decodes() -> None:
    assert fields(decode(batch_of(EMPTY, 1))) == [(0, NOW_MS, None, None, [])]


@thorough
@given(
    st.lists(st.tuples(int64, octets, octets, headers), min_size=1, max_size=9),
    st.sampled_from(ALL_CODECS),
    st.lists(st.integers(1, 1000), min_size=9, max_size=9),
    int64,
)
def test_gaps_and_any_timestamps_decode(rows: list[NewRecord], codec: Codec, steps: list[int], base_time: int) -> None:
    offsets = [100 + sum(steps[:index]) for index in range(len(rows))]
    records = [PlainRecord(offset, *row) for offset, row in zip(offsets, rows)]  # type: ignore[arg-type]
    head = Head(10_000, base_time, base_time, len(rows), codec, base_offset=100)
    batch = checked(assemble(head, encode_records(records, 100, base_time)))
    assert fields(decode(batch)) == [tuple(record) for record in records]


def test_a_record_without_timestamp_says_minus_one() -> None:
    records = [PlainRecord(0, -1, b"k", b"v", []), PlainRecord(1, NOW_MS, b"k", b"v", [("h", b"")])]
    batch = checked(assemble(Head(1, -1, NOW_MS, 2), encode_records(records, 0, -1)))
    assert fields(decode(batch)) == [tuple(record) for record in records]


def test_offsets_follow_the_batch_as_checked_even_if_its_memory_was_placed_since() -> None:
    batch = checked(build_batch(some_rows(), base_offset=3))
    place(batch, 1000, 1)
    assert fields(decode(batch)) == expected(some_rows(), 3)


def test_records_outlive_the_memory_of_their_batch() -> None:
    data = build_batch(some_rows())
    records = decode(checked(data))
    data[:] = bytes(len(data))
    assert fields(records) == expected(some_rows())


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_an_empty_batch_decodes_to_nothing_with_or_without_an_empty_stream(codec: Codec) -> None:
    assert decode(batch_of(b"", 0, codec, last_offset_delta=4)) == []
    bare = assemble(Head(4, NOW_MS, NOW_MS, 0), b"")
    bare[22] = codec
    assert decode(checked(resign(bare))) == []


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_a_record_count_that_is_wrong_is_corrupt(codec: Codec) -> None:
    plain = plain_records(checked(build_batch(some_rows(5))))
    for count in (0, 1, 4, 6, 100, 2**31 - 1):
        with pytest.raises(CorruptBatch):
            decode(batch_of(plain, count, codec, last_offset_delta=2**31 - 1))


@pytest.mark.parametrize("size", [2, 2000])
def test_an_absurd_record_count_is_corrupt_and_allocates_nothing(size: int) -> None:
    batch = batch_of(EMPTY * size, 2**31 - 1, last_offset_delta=2**31 - 1)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatch):
            decode(batch, max_bytes=20_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MIB


@pytest.mark.parametrize("codec", ALL_CODECS)
@pytest.mark.parametrize("deltas", [(1, 0), (0, 0), (0, 3), (-1, 0), (0, 2**31), (0, 2**63 - 1), (-(2**63), 0)])
def test_offsets_that_do_not_rise_within_the_batch_are_corrupt(codec: Codec, deltas: tuple[int, int]) -> None:
    plain = encode_records([PlainRecord(delta, NOW_MS, None, b"", []) for delta in deltas], 0, NOW_MS)
    with pytest.raises(CorruptBatch, match="offsets"):
        decode(batch_of(bytes(plain), 2, codec, last_offset_delta=2))


def test_offsets_that_overflow_are_corrupt() -> None:
    plain = encode_records([PlainRecord(1, NOW_MS, None, b"", [])], 0, NOW_MS)
    head = Head(1, NOW_MS, NOW_MS, 1, base_offset=2**63 - 1)
    with pytest.raises(CorruptBatch, match="offsets"):
        decode(checked(assemble(head, plain)))


@pytest.mark.parametrize("codec", ALL_CODECS)
@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(record(b"\0\0\0\1\1\2\2\xff\1"), id="header name is not UTF-8"),
        pytest.param(record(b"\0\0\0\1\1\2\1\1"), id="header name is absent"),
        pytest.param(record(b"\0\0\0\1\1\1"), id="header count is negative"),
        pytest.param(record(b"\0\0\0\1\1\x7e"), id="more headers than bytes"),
        pytest.param(record(b"\0\0\0\1\1" + b"\xfe" + TEN_BYTES[1:]), id="absurd header count"),
        pytest.param(record(b"\0\0\0\x10\1\0"), id="key longer than the batch"),
        pytest.param(record(b"\0\0\0" + b"\xfe" + TEN_BYTES[1:] + b"\1\0"), id="key of 2^63 - 1 bytes"),
        pytest.param(record(b"\0\0\0" + b"\x80\xff" + TEN_BYTES[2:] + b"\1\0"), id="key just too large to allocate"),
        pytest.param(record(b"\0\0\0\1" + b"\xfe" + TEN_BYTES[1:] + b"\0"), id="value of 2^63 - 1 bytes"),
        pytest.param(record(b"\0" + b"\xff" * 12), id="timestamp delta without end"),
        pytest.param(b"\1" + EMPTY[1:], id="negative length"),
        pytest.param(b"\x0e" + EMPTY[1:], id="length too large"),
        pytest.param(b"\x0a" + EMPTY[1:], id="length too small"),
        pytest.param(EMPTY + b"\0", id="one byte left over"),
        pytest.param(EMPTY + EMPTY, id="one record left over"),
        pytest.param(record(b"\0\0\0\1\1\2\0"), id="last header without value"),
        pytest.param(b"\xff" * 8, id="length without end"),
    ],
)
def test_damaged_records_are_corrupt(damaged: bytes, codec: Codec) -> None:
    with pytest.raises(CorruptBatch):
        decode(batch_of(damaged, 1, codec))


def test_a_damaged_record_at_the_end_of_mapped_memory_does_not_crash_the_process() -> None:
    printed = run_python(r"""
import ctypes, mmap
from goqueue.model.errors import CorruptBatch
from goqueue.records.batch import check_batch
from goqueue.records.decode import decode
from goqueue.records.encode import Head, assemble
data = assemble(Head(0, 0, 0, 1), b"\x0e\0\0\0\1\1\2\0")  # ends before the length of a header's value
memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
forbidden = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + mmap.PAGESIZE
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(forbidden), mmap.PAGESIZE, 0) == 0
start = mmap.PAGESIZE - len(data)
memory[start : mmap.PAGESIZE] = bytes(data)
try:
    decode(check_batch(memoryview(memory)[start : mmap.PAGESIZE]))
except CorruptBatch:
    print("corrupt")
""")
    assert printed == "corrupt"


def test_aiokafka_is_imported_at_first_use_and_never_in_pure_python() -> None:
    printed = run_python(
        """
import sys
import goqueue.records.control
from goqueue.records import build, decode, rewrite
from goqueue.records.batch import check_batch
print("aiokafka" in sys.modules)
data = build.build_batch([(1, None, b"value", [])])
print(type(decode.decode(check_batch(memoryview(data)))[0]).__module__)
""",
        AIOKAFKA_NO_EXTENSIONS="1",
    )
    assert printed.split() == ["False", "aiokafka.record._crecords.default_records"]


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_max_bytes_bounds_what_is_decompressed(codec: Codec) -> None:
    rows: list[NewRecord] = [(NOW_MS, None, bytes(1000), [])] * 100
    batch = checked(build_batch(rows, codec=codec))
    size = len(plain_records(batch))
    assert len(decode(batch, max_bytes=size)) == 100
    with pytest.raises(BatchTooLarge):
        decode(batch, max_bytes=size - 1)


@pytest.mark.parametrize(
    ("plain", "count"),
    [
        pytest.param(encode_records([PlainRecord(0, 0, None, None, [("", None)] * 40_000)], 0, 0), 1, id="headers"),
        pytest.param(EMPTY * 10_000, 10_000, id="records"),
    ],
)
@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_of_objects_is_refused_with_little_memory(plain: bytes, count: int, codec: Codec) -> None:
    batch = batch_of(plain, count, codec)
    tracemalloc.start()
    try:
        with pytest.raises(BatchTooLarge, match="objects"):
            decode(batch, max_bytes=100_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * MIB


@pytest.mark.parametrize(
    "row",
    [
        pytest.param((None, None, [("", None)] * 50), id="empty headers"),
        pytest.param((None, None, [("\u0100", None)] * 50), id="headers with a name outside latin-1"),
        pytest.param((None, None, [("ab", b"cd")] * 50), id="small headers"),
        pytest.param((None, None, []), id="empty records"),
        pytest.param((None, None, [("", None)]), id="one header"),
        pytest.param((b"ab", b"cd", []), id="small records"),
        pytest.param((b"k" * 20, b"v" * 100, [("trace", b"0" * 32)]), id="usual records"),
    ],
)
def test_objects_are_never_larger_than_weighed(
    row: tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]],
) -> None:
    count = 200
    plain = plain_records(checked(build_batch([(NOW_MS, *row)] * count)))
    batch = batch_of(plain, count)
    tracemalloc.start()
    try:
        records = decode(batch)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(records) == count
    most = object_bytes(plain, count, 2**40)
    counted = object_bytes(plain, count, most - 1)
    assert kept <= most
    assert kept <= counted


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(record(b"\0\0\0\1\1\1"), id="header count is negative"),
        pytest.param(record(b"\0\0\0\1\1\x7e"), id="more headers than bytes"),
        pytest.param(b"\x0a" + EMPTY[1:], id="length too small"),
        pytest.param(EMPTY[:-1] + b"\x80", id="header count without end"),
        pytest.param(b"\xff" * 11, id="length of eleven bytes"),
    ],
)
def test_damaged_records_are_corrupt_when_weighed(damaged: bytes) -> None:
    with pytest.raises(CorruptBatch):
        object_bytes(damaged, 1, len(damaged) * OBJECT_BYTES_PER_BYTE_MAX - 1)


def test_a_number_without_end_is_not_read_to_the_end() -> None:
    with pytest.raises(CorruptBatch, match="ten bytes"):
        object_bytes(b"\xff" * 1000, 1, 10_000)


def test_a_count_that_is_plainly_too_much_is_refused_unread() -> None:
    assert object_bytes(b"no records at all", 1000, 500) > 500


@quick
@given(st.binary(max_size=60), st.integers(0, 6))
def test_weighing_arbitrary_bytes_raises_nothing_but_our_errors(data: bytes, count: int) -> None:
    with suppress(CorruptBatch):
        assert object_bytes(data, count, 0) >= len(data)
