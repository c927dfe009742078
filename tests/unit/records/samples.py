"""Batches to test with: strategies for good ones, and the tools to make bad ones that carry a right checksum."""

import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from goqueue.records.batch import HEADER_BYTES, LENGTH_END, Batch, Codec, check_batch
from goqueue.records.build import NewRecord
from goqueue.records.compression import decompress
from goqueue.records.decode import DecodedRecord
from goqueue.records.encode import sign

MIB = 1024 * 1024
NOW_MS = 1_700_000_000_000
ALL_CODECS = list(Codec)
COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]

thorough = settings(max_examples=100, deadline=None, print_blob=True)
quick = settings(max_examples=30, deadline=None, print_blob=True)

octets = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=6), st.none() | st.binary(max_size=6)), max_size=3)
positive = st.integers(0, 2**63 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


def rows(timestamps: st.SearchStrategy[int] = positive) -> st.SearchStrategy[list[NewRecord]]:
    return st.lists(st.tuples(timestamps, octets, octets, headers), min_size=1, max_size=12)


def some_rows(count: int = 5) -> list[NewRecord]:
    return [
        (NOW_MS + i, b"key-%d" % i, b"value-%d" % i * 3, [("name", b"%d" % i), ("none", None)]) for i in range(count)
    ]


def fields(records: Iterable[DecodedRecord]) -> list[tuple[Any, ...]]:
    """Records as values that compare."""
    return [(record.offset, record.timestamp, record.key, record.value, record.headers) for record in records]


def expected(new: Sequence[NewRecord], base_offset: int = 0) -> list[tuple[Any, ...]]:
    return [(base_offset + index, *row) for index, row in enumerate(new)]


def checked(data: bytes | bytearray) -> Batch:
    return check_batch(memoryview(data))


def resign(data: bytearray) -> bytearray:
    """Right length, right checksum: only the inside of the batch can still be wrong."""
    data[8:LENGTH_END] = (len(data) - LENGTH_END).to_bytes(4, "big")
    sign(memoryview(data))
    return data


def plain_records(batch: Batch) -> bytes:
    return bytes(decompress(batch.codec, batch.data[HEADER_BYTES:], 64 * MIB))


def run_python(script: str, **environment: str) -> str:
    """Run `script` in a fresh interpreter; gives what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
