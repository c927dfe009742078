"""Records of one size, decoded without looking at each: a column is then every n-th byte, and a value a slice of fixed
place. Telemetry and fixed-width formats look like that; so does what benchmarks send.

A batch falls into a few runs, because the numbers of later records take more bytes. Everything that must be the same in
a run is compared, so what is not uniform is found out, and decoded one by one.
"""

from array import array
from dataclasses import dataclass
from functools import cache, lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from goqueue.model.errors import CorruptBatch
from goqueue.records.weigh import read_varint

RUN_MIN = 256
"""Shorter ones cost more than decoding each record."""
RUNS_FREE = 3
"""A few short ones are normal at the beginning."""

_SIZE_CHANGES = (64, 8192, 65536)
"""Offset deltas from each of these on take a byte more. Beyond the last, records are decoded one by one."""
_WRITTEN = {1: pa.uint8(), 2: pa.uint16()}
"""Time deltas take a byte up to 64 ms and two up to 8 s. A batch that took longer to fill is rare."""
ENDS_KEPT = 64
ENDS_LIMIT = 1 << 31
"""What Arrow can count in a column of bytes."""
_US_PER_MS = 1000
_EMPTY = pa.scalar(b"", pa.binary())
_HIGH_BITS = bytes(octet & 0x80 for octet in range(256))
_LOW_BITS = 0x7F


@dataclass(frozen=True, slots=True)
class Run:
    """`count` records, each `stride` bytes long. Where something is, is said for the first of them."""

    plain: bytes
    first: int
    """The number of its first record within the batch."""
    count: int
    at: int
    stride: int
    time_at: int
    time_end: int
    key_at: int
    key_bytes: int
    """-1: they have none."""
    value_at: int
    value_bytes: int

    def keys(self) -> pa.Array:
        return self._cut(self.key_at, self.key_bytes)

    def values(self) -> pa.Array:
        return self._cut(self.value_at, self.value_bytes)

    def times(self, base_ms: int) -> pa.Array:
        """In microseconds; `base_ms` is the time of the batch."""
        columns = [self.plain[place : self._end : self.stride] for place in range(self.time_at, self.time_end)]
        size = len(columns)
        octets = bytearray(size * self.count)
        for number, column in enumerate(columns):
            octets[number::size] = column
        written = pa.Array.from_buffers(_WRITTEN[size], self.count, [None, pa.py_buffer(octets)])
        return pc.add(_deltas_us(size).take(written), base_ms * _US_PER_MS)

    @property
    def _end(self) -> int:
        return self.at + self.count * self.stride

    def _cut(self, place: int, size: int) -> pa.Array:
        if size < 0:
            return pa.nulls(self.count, pa.binary())
        octets = pa.py_buffer(self.plain).slice(self.at, self.count * self.stride)
        whole = pa.Array.from_buffers(pa.binary(self.stride), self.count, [None, octets])
        if not size:
            return pa.repeat(_EMPTY, self.count)
        cut = pc.binary_slice(whole, place - self.at, place - self.at + size)  # all of one size, without ends between
        return pa.Array.from_buffers(pa.binary(), self.count, [None, _ends(size, self.count), cut.buffers()[1]])


def runs_of(plain: bytes, count: int) -> list[Run] | None:
    """All `count` records of a dense batch. None: they are not uniform, or not worth it."""
    if count < RUN_MIN:
        return None
    runs: list[Run] = []
    index = at = 0
    try:
        while index < count:
            if len(runs) > RUNS_FREE + index // RUN_MIN:
                return None
            run = _run_at(plain, at, index, count)
            if run is None:
                return None
            runs.append(run)
            index += run.count
            at += run.count * run.stride
    except (IndexError, CorruptBatch):  # whoever decodes it one by one says what is wrong
        return None
    return runs if at == len(plain) else None


def _run_at(plain: bytes, at: int, index: int, count: int) -> Run | None:
    length, body = read_varint(plain, at)
    time_at = body + 1  # behind the attributes, of which Kafka uses none
    _, delta_at = read_varint(plain, time_at)
    delta, key_size_at = read_varint(plain, delta_at)
    key_bytes, key_at = read_varint(plain, key_size_at)
    value_size_at = key_at + max(key_bytes, 0)
    value_bytes, value_at = read_varint(plain, value_size_at)
    headers_at = value_at + max(value_bytes, 0)
    end = body + length
    is_plain = headers_at + 1 == end and plain[headers_at] == 0
    if delta != index or not is_plain or delta_at - time_at not in _WRITTEN:
        return None
    change = next((each for each in _SIZE_CHANGES if each > index), 0)
    stride = end - at
    most = min(count, change, index + (len(plain) - at) // stride) - index
    if most < 1:
        return None
    beyond = at + most * stride
    fixed = (*range(at, time_at), *range(key_size_at, key_at), *range(value_size_at, value_at), headers_at)
    columns = [plain[place:beyond:stride] for place in fixed]
    columns += [plain[place:beyond:stride].translate(_HIGH_BITS) for place in range(time_at, delta_at)]
    same = min(map(_same, columns))
    for number, place in enumerate(range(delta_at, key_size_at)):
        if plain[place:beyond:stride][:same] != _delta_octets(change)[number][index : index + same]:
            return None
    return Run(plain, index, same, at, stride, time_at, delta_at, key_at, key_bytes, value_at, value_bytes)


def _same(column: bytes) -> int:
    """How many bytes at its beginning are the same."""
    if column.count(column[0]) == len(column):
        return len(column)
    return len(column) - len(column.lstrip(column[:1]))


def _ends(size: int, count: int) -> pa.Buffer:
    """Where each of `count` values of so many bytes begins, and the last one ends; perhaps of more of them."""
    rounded = 1 << count.bit_length()
    return _made_ends(size, rounded if rounded * size < ENDS_LIMIT else count)


@lru_cache(ENDS_KEPT)
def _made_ends(size: int, count: int) -> pa.Buffer:
    return pa.py_buffer(array("i", range(0, (count + 1) * size, size)))


@cache
def _deltas_us(size: int) -> pa.Array:
    """Time deltas by how they are written in so many bytes, read as one number of this machine."""
    found = []
    for number in range(256**size):
        low, high = number & _LOW_BITS, (number >> 8) & _LOW_BITS
        bits = low | high << 7
        found.append((bits >> 1 ^ -(bits & 1)) * _US_PER_MS)
    return pa.array(found, pa.int64())


@cache
def _delta_octets(change: int) -> tuple[bytes, ...]:
    """How the offset deltas below `change` are written: their first bytes, their second ones, and so on."""
    size = _SIZE_CHANGES.index(change) + 1
    more = [0x80] * (size - 1) + [0]
    return tuple(
        bytes((2 * delta >> 7 * number) & _LOW_BITS | more[number] for delta in range(change)) for number in range(size)
    )
