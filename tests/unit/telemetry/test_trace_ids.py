"""Ids of traces: honoured if they are some, made and read back if there are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.telemetry.trace_ids import (
    TraceParent,
    make_span_id,
    make_trace_id,
    parse_traceparent,
    read_trace_id,
    topic_tag,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**24 - 1), st.integers(0, 2**63 - 1))
def test_a_made_trace_id_leads_back_to_its_record(topic_id: bytes, partition: int, offset: int) -> None:
    made = make_trace_id(topic_id, partition, offset)
    assert len(made) == 32
    assert int(made, 16) != 0
    assert read_trace_id(made) == (topic_tag(topic_id), partition, offset)


def test_neighbours_have_ids_that_look_like_dice() -> None:
    made = [int(make_trace_id(bytes(16), 0, offset), 16) for offset in range(1000)]
    assert len(set(made)) == 1000
    for bit in range(128):
        assert 350 < sum(one >> bit & 1 for one in made) < 650


def test_a_traceparent_is_read() -> None:
    header = f"00-{TRACE}-{SPAN}-01"
    parent = parse_traceparent(header.encode())
    assert parent == TraceParent(TRACE, SPAN, is_sampled=True)
    assert parent.header == header
    assert parse_traceparent(f"00-{TRACE}-{SPAN}-00".encode()) == TraceParent(TRACE, SPAN, is_sampled=False)
    assert parse_traceparent(f"cc-{TRACE}-{SPAN}-01-more".encode()) == TraceParent(TRACE, SPAN, is_sampled=True)


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"x",
        f"ff-{TRACE}-{SPAN}-01".encode(),
        f"00-{'0' * 32}-{SPAN}-01".encode(),
        f"00-{TRACE}-{'0' * 16}-01".encode(),
        f"00-{TRACE.upper()}-{SPAN}-01".encode(),
        f"00-{TRACE}-{SPAN}-01-more".encode(),
        f"00-{TRACE}-{SPAN}".encode(),
        f"00-{TRACE}-{SPAN}-01\n".encode(),
        b"\xff\xfe",
    ],
)
def test_what_is_no_traceparent_counts_for_nothing(value: bytes | None) -> None:
    assert parse_traceparent(value) is None


def test_span_ids_are_the_same_for_the_same() -> None:
    assert make_span_id("a", 1) == make_span_id("a", 1) != make_span_id("a", 2)
    assert len(make_span_id("a")) == 16
