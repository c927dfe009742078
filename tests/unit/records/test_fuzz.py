"""Whatever a producer signs, the inside of a batch raises CorruptBatch or BatchTooLarge, or is a batch in full."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.records.batch import CHECKED_FROM, CONTROL_BIT, HEADER_BYTES, Batch, Codec
from goqueue.records.build import build_batch
from goqueue.records.control import decode_control
from goqueue.records.decode import decode
from goqueue.records.encode import Head, assemble
from goqueue.records.rewrite import rebuild_batch
from tests.unit.records.samples import (
    ALL_CODECS,
    MIB,
    NOW_MS,
    checked,
    fields,
    plain_records,
    resign,
    some_rows,
    thorough,
)

PLAIN = plain_records(checked(build_batch(some_rows(3))))
EDGES = st.sampled_from(
    [b"\xff" * 9 + b"\x01", b"\xfe" + b"\xff" * 8 + b"\x01", b"\xff\xff\xff\xff\x0f", b"\x80", b"\0"]
)


def survive(data: bytearray) -> None:
    try:
        batch = checked(resign(data))
        records = decode(batch, max_bytes=MIB)
        if batch.is_control:
            decode_control(batch)
    except (CorruptBatch, BatchTooLarge):
        return
    check_whole(batch, fields(records))


def check_whole(batch: Batch, records: list[tuple[object, ...]]) -> None:
    """A batch that decodes is one that compaction can write again."""
    assert len(records) == batch.record_count
    again = checked(rebuild_batch(batch, decode(batch)))
    assert fields(decode(again)) == records


@st.composite
def mutated(draw: st.DrawFn, original: bytes, start: int) -> bytearray:
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(min(start, len(data)), len(data)))
        match draw(st.sampled_from(["set", "cut", "insert", "remove", "edge"])):
            case "set":
                data[position : position + 1] = bytes([draw(st.integers(0, 255))])
            case "cut":
                del data[position:]
            case "insert":
                data[position:position] = draw(st.binary(max_size=5))
            case "remove":
                del data[position : position + draw(st.integers(1, 5))]
            case _:
                data[position : position + 1] = draw(EDGES)
    return data


@pytest.mark.parametrize("codec", ALL_CODECS)
@thorough
@given(data=st.data())
def test_any_signed_bytes_behind_the_header_are_survived(codec: Codec, data: st.DataObject) -> None:
    body = data.draw(mutated(bytes(build_batch(some_rows(3), codec=codec)), HEADER_BYTES))
    survive(body)


@pytest.mark.parametrize("codec", ALL_CODECS)
@thorough
@given(data=st.data())
def test_any_signed_header_is_survived(codec: Codec, data: st.DataObject) -> None:
    original = bytearray(build_batch(some_rows(3), codec=codec))
    for _ in range(data.draw(st.integers(1, 3))):
        original[data.draw(st.integers(CHECKED_FROM, HEADER_BYTES - 1))] = data.draw(st.integers(0, 255))
    survive(original)


@pytest.mark.parametrize("codec", ALL_CODECS)
@thorough
@given(data=st.data(), count=st.integers(0, 4), control=st.sampled_from([0, CONTROL_BIT]))
def test_any_compressed_records_are_survived(codec: Codec, data: st.DataObject, count: int, control: int) -> None:
    plain = data.draw(mutated(PLAIN, 0) | st.binary(max_size=60))
    survive(assemble(Head(4, NOW_MS, NOW_MS, count, codec | control), plain))
