"""Whatever a client sends, a decoder gives a message or MalformedRequest, in time and memory that its size bounds."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.wire.kafka.codec import FORMATS, decode, encode
from goqueue.wire.kafka.errors import MalformedRequest
from goqueue.wire.kafka.frames import decode_request, read_request_header
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.schema import Field, fields_of
from goqueue.wire.kafka.varint import encode_varint
from tests.unit.wire.kafka.samples import ALL_CLASSES, KINDS, messages, thorough

EDGES = [
    bytes.fromhex(text)
    for text in (
        "ffffffff",
        "7fffffff",
        "80000000",
        "ffffffff07",
        "ffffffff0f",
        "ffffffffff01",
        "8000",
        "7fff",
        "fffe",
        "00",
    )
]
LIES = EDGES[1:4]
MUTATIONS = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from(["set", "cut", "insert", "remove"]),
        st.sampled_from(EDGES) | st.binary(min_size=1, max_size=2),
    ),
    min_size=1,
    max_size=3,
)
GROWTH_MAX = 100
"""Bytes of memory per byte of input: an object, its empty lists and its place in a list, for three bytes."""


def mutate(data: bytes, mutations: list[tuple[float, str, bytes]]) -> bytes:
    for place, kind, piece in mutations:
        at = int(place * (len(data) + 1))
        match kind:
            case "set":
                data = data[:at] + piece + data[at + len(piece) :]
            case "cut":
                data = data[:at]
            case "insert":
                data = data[:at] + piece + data[at:]
            case "remove":
                data = data[:at] + data[at + len(piece) :]
    return data


def survive(message: type[Message], version: int, data: bytes) -> None:
    try:
        found, end = decode(message, version, data)
    except MalformedRequest:
        return
    assert isinstance(found, message)
    assert 0 <= end <= len(data)
    again = decode(message, version, encode(found, version))[0]
    assert again == found or repr(again) == repr(found)  # what is not a number is unlike itself


def versions_of(message: type[Message]) -> range:
    versions, _ = FORMATS[message]
    return range(versions.first, versions.last + 1)


@pytest.mark.parametrize("message", ALL_CLASSES)
@thorough(10)
@given(data=st.binary(max_size=60))
def test_random_bytes_are_survived(message: type[Message], data: bytes) -> None:
    for version in versions_of(message):
        survive(message, version, data)


@pytest.mark.parametrize("message", ALL_CLASSES)
@thorough(12)
@given(data=st.data(), mutations=MUTATIONS)
def test_mutated_messages_are_survived(
    message: type[Message], data: st.DataObject, mutations: list[tuple[float, str, bytes]]
) -> None:
    version = data.draw(st.sampled_from(versions_of(message)))
    survive(message, version, mutate(encode(data.draw(messages(message, version)), version), mutations))


@thorough(200)
@given(frame=st.binary(max_size=40) | st.binary(max_size=20).map(lambda rest: bytes.fromhex("0003000900000001") + rest))
def test_random_frames_are_survived(frame: bytes) -> None:
    try:
        header = read_request_header(memoryview(frame))
        _, end = decode_request(header, memoryview(frame))
    except MalformedRequest:
        return
    assert header.body_at <= end <= len(frame)


def full(message: type[Message], version: int) -> Message:
    """One of everything, so that every length of the version is somewhere in its bytes."""
    return message(**{f.name: full_value(f, version) for f in fields_of(message) if version in f.versions})


def full_value(field: Field, version: int) -> object:
    small = {"string": "x", "bytes": b"x", "records": memoryview(b"x"), "uuid": b"x" * 16, "bool": True}
    value = full(field.message, version) if field.message else small.get(field.kind, 1)
    return [value] if field.is_array else value


@pytest.mark.parametrize("message", ALL_CLASSES)
def test_a_length_that_lies_costs_no_memory(message: type[Message]) -> None:
    """All places of the oldest and the newest version, so all their lengths, become as large as they can be."""
    assert set(KINDS) >= {field.kind for field in fields_of(message)} - {"message"}
    for version in {*versions_of(message)[:1], *versions_of(message)[-1:]}:
        data = encode(full(message, version), version)
        survive(message, version, data)
        tracemalloc.start()
        for at in range(len(data)):
            for lie in LIES:
                survive(message, version, data[:at] + lie + data[at + len(lie) :])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 100_000 + GROWTH_MAX * len(data)


def test_an_array_costs_no_more_than_its_bytes_allow() -> None:
    """The smallest elements of all: what a frame may cost is this many times its size, which is limited at the door."""
    from goqueue.wire.kafka.messages.offsets import OffsetFetchRequest

    count = 5_000
    data = b"\x01" + encode_varint(count + 1) + b"\x01\x01\x00" * count + b"\x00"
    tracemalloc.start()
    found, _ = decode(OffsetFetchRequest, 6, data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.topics or []) == count
    assert peak < GROWTH_MAX * len(data)
