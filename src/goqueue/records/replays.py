"""What is asked of a group that shall read again, and what came of it."""

from collections.abc import Sequence
from typing import NamedTuple

from goqueue.model.moments import parse_moment_ms
from goqueue.model.ranges import Range
from goqueue.model.starts import EARLIEST, LATEST
from goqueue.records.filters import RecordFilter

NOWHERE = -1
"""As a place before a move: the group was never there."""


class Where(NamedTuple):
    """A place in every partition of a topic; exactly one of these."""

    end: str | None = None
    """earliest or latest"""
    offset: int | None = None
    moment_ms: int | None = None

    @classmethod
    def parse(cls, written: str | int, now_ms: int) -> "Where":
        """A number is an offset; a text is earliest, latest or a time. InvalidMoment: it is none of these."""
        if isinstance(written, int):
            return cls(offset=written)
        return cls(end=written) if written in (EARLIEST, LATEST) else cls(moment_ms=parse_moment_ms(written, now_ms))


class Moved(NamedTuple):
    partition: int
    before: int
    after: int


class ReplayRequest(NamedTuple):
    group_id: str
    topic: str
    start: Where
    stop: Where
    """Not included."""
    filter: RecordFilter = RecordFilter()
    partitions: Sequence[int] | None = None
    records_per_second: int = 0
    is_dry_run: bool = False
    fork_as: str | None = None
    """Replay into a copy of the group under this name; the group itself stays as it is."""


class Replayed(NamedTuple):
    partition: int
    first_offset: int
    next_offset: int
    records: int
    """That will be delivered again (or would be, in a dry run)."""


class Difference(NamedTuple):
    """Offsets of one partition that only one of two groups has settled."""

    topic: str
    partition: int
    only_first: tuple[Range, ...]
    only_second: tuple[Range, ...]
