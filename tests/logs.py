"""What the storage tests share: small batches, and everything a log gives back."""

from collections.abc import Iterator, Sequence

from goqueue.records.batch import Batch, Codec, check_batch, split
from goqueue.records.build import build_batch
from goqueue.records.decode import decode
from goqueue.storage.disk import Disk
from goqueue.storage.log import Log
from goqueue.storage.options import Durability, LogOptions

DIRECTORY = "logs/orders/0"
EPOCH = 1

SMALL = LogOptions(
    durability=Durability.DISK,
    segment_bytes=2000,
    disk_reserve_bytes=0,
    index_interval_bytes=256,
    checkpoint_bytes=1,
)
"""So small that a few batches fill segments and index blocks."""


def batch(*values: bytes | None, timestamp: int = 1000, key: bytes | None = None, codec: Codec = Codec.NONE) -> Batch:
    return check_batch(memoryview(build_batch([(timestamp, key, value, []) for value in values], codec=codec)))


def open_log(disk: Disk, options: LogOptions = SMALL, now_ms: int = 0) -> Log:
    return Log.open(disk, DIRECTORY, options, now_ms)


def append(log: Log, *batches: Batch, epoch: int = EPOCH, now_ms: int = 0) -> int:
    return log.append(batches, epoch, now_ms)


def stored_batches(log: Log, offset: int | None = None, max_bytes: int = 1000) -> Iterator[Batch]:
    """Every batch that a reader gets who reads from `offset` to the end, a little at a time."""
    offset = log.start_offset if offset is None else offset
    while (piece := log.read(offset, max_bytes)) is not None:
        assert piece.length > 0
        assert piece.next_offset > offset
        yield from split(memoryview(piece.read()))
        offset = piece.next_offset


def stored(log: Log, offset: int | None = None, max_bytes: int = 1000) -> list[tuple[int, bytes | None]]:
    """(offset, value) of every record in the log."""
    found = [(r.offset, r.value) for one in stored_batches(log, offset, max_bytes) for r in decode(one)]
    start = log.start_offset if offset is None else offset
    return [(at, value) for at, value in found if at >= start]


def numbered(values: Sequence[bytes], first: int = 0) -> list[tuple[int, bytes | None]]:
    return list(enumerate(values, first))
