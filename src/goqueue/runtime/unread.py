"""Records of a ledger that could not be read or applied: left out, counted and told, since one bad fact must not cost
all others, nor the start of the node.

They are not lost. A snapshot carries them along until a later record with the same key replaces them, so that every
load tries them again, that of a later version too, and tells of them.
"""

from struct import Struct
from typing import NamedTuple

from goqueue.telemetry.logs import get_logger

TOLD_MAX = 10
"""One by one, in the log; the others are only counted."""
REASON_CHARS_MAX = 200
BYTES_MAX = 64 * 1024 * 1024
"""More than this is not carried along. No snapshot is made then: the log has all of it."""
NO_OFFSET = -1
_MARK = b"\xff\xffunread"
_HEAD = Struct(">?q")

events = get_logger("runtime")


class Carried(NamedTuple):
    """An entry of a snapshot that could not be read when that was made."""

    key: bytes
    offset: int
    """Where it lies in the ledger; NO_OFFSET: it was known from an older snapshot alone."""
    value: bytes | None
    """None: a tombstone."""

    @classmethod
    def of_entry(cls, key: bytes, value: bytes) -> "Carried | None":
        """None: it is an entry like any other."""
        if not key.startswith(_MARK) or len(key) < len(_MARK) + _HEAD.size:
            return None
        is_tombstone, offset = _HEAD.unpack_from(key, len(_MARK))
        return cls(key[len(_MARK) + _HEAD.size :], offset, None if is_tombstone else value)

    def entry(self) -> tuple[bytes, bytes]:
        return _MARK + _HEAD.pack(self.value is None, self.offset) + self.key, self.value or b""

    @property
    def size(self) -> int:
        return len(self.key) + len(self.value or b"")


class Unread:
    def __init__(self, ledger: str) -> None:
        self._ledger = ledger
        self.count = 0
        """How many the last load left out."""
        self.total = 0
        """How many all loads did."""
        self._told = 0
        self._carried: dict[bytes, Carried] = {}
        self._bytes = 0

    def begin(self) -> None:
        """The ledger is read from the beginning."""
        self.count = self._told = self._bytes = 0
        self._carried.clear()

    def skip(self, where: str, error: Exception, record: Carried, facts: int = 1) -> None:
        """`facts`: for how many it stands, if it is a whole batch."""
        self.count += facts
        self.total += facts
        self.replace(record.key)
        self._carried[record.key] = record
        self._bytes += record.size
        if self._told < TOLD_MAX:
            self._told += 1
            reason = f"{type(error).__name__}: {error}"[:REASON_CHARS_MAX]
            events.error("fact skipped", ledger=self._ledger, where=where, reason=reason)

    def replace(self, key: bytes) -> None:
        """There is a later record with this key."""
        before = self._carried.pop(key, None)
        if before is not None:
            self._bytes -= before.size

    @property
    def is_too_much(self) -> bool:
        return self._bytes > BYTES_MAX

    def entries(self) -> list[tuple[bytes, bytes]]:
        """For a snapshot."""
        return [each.entry() for each in self._carried.values()]

    def __bool__(self) -> bool:
        return bool(self._carried)
