"""What the files of a log are called and what the small ones say, for whoever reads a data directory: the storage that
owns it, and Spark, which reads it or a copy of it without a broker.

A small file is one or more frames: `GQ`, version, kind, CRC-32C of the body, body length, body. So damage is seen
before it is believed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from struct import Struct
from struct import error as StructError
from typing import NamedTuple, Protocol, Self

from crc32c import crc32c

from goqueue.model.errors import DamagedFile
from goqueue.records.epochs import EpochHistory

LOGS_NAME = "logs"
STATE_NAME = "state"
MANIFEST_NAME = "compaction"
CLEANED_NAME = "cleaned"
LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
BASE_DIGITS = 20

MAGIC = b"GQ"
VERSION = 1
FRAME = Struct("<2sBBII")
SUMMARY = Struct("<qqqqq")
STATE_HEAD = Struct("<qqI")
EPOCH = Struct("<iq")
STATE_TAIL = Struct("<B16sqqqB")
STATE_FORMAT = 2
ID_BYTES = 16
NO_OFFSET = -1


class Kind(IntEnum):
    SUMMARY = 1
    OFFSET_INDEX = 2
    TIME_INDEX = 3
    LOG_STATE = 4
    COMPACTION = 5
    STARTS = 6
    WATERMARKS = 7
    SHARDS = 8


class Readable(Protocol):
    def read(self, position: int, length: int, /) -> bytes: ...

    def size(self) -> int: ...


def pack(kind: Kind, body: bytes) -> bytes:
    return FRAME.pack(MAGIC, VERSION, kind, crc32c(body), len(body)) + body


def read_frame(file: Readable, position: int, kind: Kind) -> tuple[bytes, int]:
    """The body of the frame at `position` and where the next one starts."""
    head = file.read(position, FRAME.size)
    if len(head) < FRAME.size:
        raise DamagedFile(f"{kind.name.lower()} frame cut off at byte {position}")
    magic, version, found, crc, length = FRAME.unpack(head)
    if magic != MAGIC or version != VERSION or found != kind:
        raise DamagedFile(f"no {kind.name.lower()} frame of version {VERSION} at byte {position}")
    if length > file.size() - position - FRAME.size:
        raise DamagedFile(f"{kind.name.lower()} frame is longer than its file")
    body = file.read(position + FRAME.size, length)
    if len(body) != length or crc32c(body) != crc:
        raise DamagedFile(f"{kind.name.lower()} frame has a wrong checksum")
    return body, position + FRAME.size + length


def base_offset_of(name: str) -> int | None:
    """Of a segment's file; None: it is another file."""
    stem, dot, suffix = name.partition(".")
    is_one = dot + suffix == LOG_SUFFIX and len(stem) == BASE_DIGITS and stem.isascii() and stem.isdigit()
    return int(stem) if is_one else None


class Summary(NamedTuple):
    """Of a segment, the first frame of its `.index`.

    Invariant: it is saved only after the log was synced up to `end_position`, so what it describes is known to be on
    the disk.
    """

    base_offset: int
    end_position: int
    end_offset: int
    max_timestamp: int
    created_ms: int

    def encode(self) -> bytes:
        return SUMMARY.pack(*self)

    @classmethod
    def read(cls, file: Readable) -> tuple[Self, int]:
        """And where the next frame starts."""
        body, position = read_frame(file, 0, Kind.SUMMARY)
        return cls(*SUMMARY.unpack(body)), position


@dataclass(slots=True)
class LogFacts:
    """What a log remembers besides its batches, in the file `state`.

    Format 1 ends with the epochs. Format 2 goes on behind them with its number and what was added; later ones may only
    go on behind that, so that each reader finds what it knows.
    """

    start_offset: int = 0
    compacted_to: int = 0
    """Below it each key stands once and offsets have gaps. Always a segment boundary."""
    epochs: EpochHistory = field(default_factory=EpochHistory)
    topic_id: bytes = b""
    """Of the topic whose partition this is: a topic made again under the same name has another. Empty: not known, or a
    log that belongs to no topic."""
    gaps_to: int = 0
    """Below it offsets may have gaps, because they had gaps in the leader's log when they were copied."""
    tombstones_to: int = 0
    """Below it compaction has dropped tombstones: who copied less than this before may hold what they deleted."""
    is_doubtful: bool = False
    """It may lack what an in-sync replica must hold: it never stands for election until a leader says that it is
    whole."""
    restart_at: int = NO_OFFSET
    """It is being emptied, and begins anew at this offset. Whoever opens it finishes that."""
    format: int = STATE_FORMAT
    """In which it was stored."""

    def has_gaps(self, base_offset: int) -> bool:
        """May the segment that begins there?"""
        return base_offset < max(self.compacted_to, self.gaps_to)

    def encode(self) -> bytes:
        entries = self.epochs.entries()
        head = STATE_HEAD.pack(self.start_offset, self.compacted_to, len(entries))
        tail = STATE_TAIL.pack(
            STATE_FORMAT,
            self.topic_id,
            self.gaps_to,
            self.tombstones_to,
            self.restart_at,
            self.is_doubtful,
        )
        return head + b"".join(EPOCH.pack(*entry) for entry in entries) + tail

    @classmethod
    def decode(cls, body: bytes) -> Self:
        try:
            start_offset, compacted_to, count = STATE_HEAD.unpack_from(body)
            entries: Iterable[tuple[int, int]] = [
                EPOCH.unpack_from(body, STATE_HEAD.size + number * EPOCH.size) for number in range(count)
            ]
            facts = cls(start_offset, compacted_to, EpochHistory(entries), format=1)
            tail_at = STATE_HEAD.size + count * EPOCH.size
            if tail_at < len(body):
                facts.format, topic_id, *bounds, is_doubtful = STATE_TAIL.unpack_from(body, tail_at)
                facts.topic_id = topic_id if any(topic_id) else b""
                facts.gaps_to, facts.tombstones_to, facts.restart_at = bounds
                facts.is_doubtful = bool(is_doubtful)
        except StructError as error:
            raise DamagedFile(f"log state of {len(body)} bytes cannot be read") from error
        return facts
