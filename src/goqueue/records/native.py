"""aiokafka's compiled record codec, imported at first use: 150 ms and 16 MB that clients and tools may never need. A
node imports it before it serves: it uses it a second after its first message, when it stores journeys, and when it takes
the place of another leader, and somebody would wait for the import.

The compiled module is named directly. aiokafka's public name for it falls back to pure Python, ten times slower,
without a word; this way a missing extension is an ImportError.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Protocol

from goqueue.records.batch import MAGIC, NO_EPOCH, NO_PRODUCER
from goqueue.records.compression import Octets

Headers = list[tuple[str, bytes | None]]

_NO_LIMIT = 2**62  # the builder drops records beyond its limit silently; ours is checked when the header is written


class NativeBuilder(Protocol):
    """A growing batch; `build` gives a header of its own and the records behind it."""

    def append(
        self, offset: int, timestamp: int, key: Octets | None, value: Octets | None, headers: Headers, /
    ) -> object: ...

    def build(self) -> bytearray: ...


def load_codec() -> None:
    """Now, and not in the event loop of somebody who waits."""
    native_reader()
    _builder_type()


@cache
def native_reader() -> Callable[[memoryview], Iterable[Any]]:
    """Gives the records of an uncompressed batch, each a `decode.DecodedRecord`."""
    from aiokafka.record._crecords import DefaultRecordBatch  # type: ignore[import-untyped]

    reader: Callable[[memoryview], Iterable[Any]] = DefaultRecordBatch
    return reader


def native_builder() -> NativeBuilder:
    """An empty, uncompressed batch of no producer: everything but the records is written by `encode.assemble`."""
    builder: NativeBuilder = _builder_type()(MAGIC, 0, 0, NO_PRODUCER, NO_EPOCH, -1, _NO_LIMIT)
    return builder


@cache
def _builder_type() -> Callable[..., NativeBuilder]:
    from aiokafka.record._crecords import DefaultRecordBatchBuilder

    builder_type: Callable[..., NativeBuilder] = DefaultRecordBatchBuilder
    return builder_type
