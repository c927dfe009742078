"""Ids of traces and spans. A record whose producer brought no trace has one that is made of its place, so that it need
not be stored anywhere and leads back to the record. It is mixed, because samplers expect the bits of an id to be even.
"""

import re
from hashlib import blake2b
from typing import NamedTuple

TRACEPARENT = "traceparent"

_BITS = 128
_MASK = (1 << _BITS) - 1
_TOPIC_BITS, _PARTITION_BITS, _OFFSET_BITS = 40, 24, 64
_FACTORS = (0x9E3779B97F4A7C15F39CC0605CEDC835, 0xD1B54A32D192ED03A3EC6476BDE1E6B5)
_INVERSES = tuple(pow(factor, -1, 1 << _BITS) for factor in _FACTORS)
_W3C = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_INVALID_VERSION = b"ff"
_FIRST_VERSION = b"00"


class Spot(NamedTuple):
    """Where a record is. Of a delayed one: the place that was kept free for it, until it is due."""

    topic: str
    partition: int
    offset: int


class TraceParent(NamedTuple):
    """What a producer said about the span in which it published, as W3C Trace Context has it."""

    trace_id: str
    span_id: str
    is_sampled: bool

    @property
    def header(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{int(self.is_sampled):02x}"


class MadeOf(NamedTuple):
    """What a trace id of ours says."""

    topic_tag: int
    """The first 40 bits of the topic's id."""
    partition: int
    offset: int


def parse_traceparent(value: bytes | None) -> TraceParent | None:
    """None: it is not one, and counts for nothing."""
    found = _W3C.fullmatch(value) if value else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == _INVALID_VERSION or (version == _FIRST_VERSION and more is not None):
        return None
    if not trace_id.strip(b"0") or not span_id.strip(b"0"):
        return None
    return TraceParent(trace_id.decode(), span_id.decode(), bool(int(flags, 16) & 1))


def topic_tag(topic_id: bytes) -> int:
    return int.from_bytes(topic_id[: _TOPIC_BITS // 8], "big")


def make_trace_id(topic_id: bytes, partition: int, offset: int) -> str:
    """Never all zeros, which W3C does not take for an id: offsets count from one here."""
    place = topic_tag(topic_id) << _PARTITION_BITS | partition
    return f"{_mix(place << _OFFSET_BITS | offset + 1):032x}"


def read_trace_id(trace_id: str) -> MadeOf:
    """Any id says something; whether there is such a topic, and such a record, must be seen."""
    place, offset = divmod(_unmix(int(trace_id, 16)), 1 << _OFFSET_BITS)
    return MadeOf(*divmod(place, 1 << _PARTITION_BITS), offset - 1)


def make_span_id(*parts: str | int) -> str:
    """The same for the same parts, whoever asks and whenever."""
    digest = blake2b("|".join(map(str, parts)).encode(errors="replace"), digest_size=8).hexdigest()
    return digest if digest.strip("0") else digest[:-1] + "1"


def _mix(number: int) -> int:
    """To another number, each to its own; zero to zero."""
    for factor in _FACTORS:
        number ^= number >> _BITS // 2
        number = number * factor & _MASK
    return number ^ number >> _BITS // 2


def _unmix(number: int) -> int:
    number ^= number >> _BITS // 2
    for inverse in reversed(_INVERSES):
        number = number * inverse & _MASK
        number ^= number >> _BITS // 2
    return number
