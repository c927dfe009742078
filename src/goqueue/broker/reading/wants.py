"""What is asked of a read, and what is got."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from goqueue.model.codes import Code
from goqueue.records.slice import Slice

NO_EPOCH = -1
NO_ID = b""


class Want(msgspec.Struct, frozen=True, gc=False):
    """One partition of a read."""

    topic: str
    """As its reader calls it."""
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int = NO_EPOCH
    topic_id: bytes = NO_ID
    """Says which topic is meant, if it is not empty; the name does not count then."""


class Got(msgspec.Struct, frozen=True, gc=False):
    code: Code
    high_watermark: int = -1
    last_stable_offset: int = -1
    start_offset: int = -1
    piece: Slice | None = None
    size: int = 0
    """In bytes, of the piece."""
    aborted: Sequence[tuple[int, int]] = ()
    """(producer id, first offset) of transactions whose records in `piece` must not be shown."""
    withheld: int = 0
    """Bytes that its reader has room for in this partition, and that are no whole batch: as in Kafka they count for
    `Limits.min_bytes`."""

    def without_records(self, withheld: int = 0) -> "Got":
        return Got(self.code, self.high_watermark, self.last_stable_offset, self.start_offset, withheld=withheld)


class Limits(NamedTuple):
    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    is_read_committed: bool = False
    consumer: str = ""
    """Who reads, as far as it says."""


NO_LIMITS = Limits(0, 0, 0)
