"""How far a queue group is behind, in numbers: apart from the queues themselves, since only those who watch ask."""

from typing import NamedTuple

from goqueue.records.batch import split
from goqueue.records.decode import decode
from goqueue.replica.replica import Replica


class QueueLag(NamedTuple):
    """What a group has still to do in one partition."""

    ready: tuple[int, int, int, int, int]
    """By lane, as `leased`."""
    leased: tuple[int, int, int, int, int]
    waiting: int
    """For the end of a delay, or for an earlier record of their key."""
    dying: int
    """On their way to the dead letters."""
    replaying: int
    beyond: int
    """Offsets that the group has not looked at yet: it looks only so far ahead."""
    oldest_age_ms: int | None
    """Of the first record that is not settled; None: all are."""


class Measured(NamedTuple):
    """Records of all groups."""

    leased: int
    waiting: int
    """For the end of a retry's delay."""
    dying: int


def time_of(replica: Replica, offset: int) -> int | None:
    """When the record at `offset`, or the next one that there is, was published."""
    piece = replica.read(offset, 1, replica.last_stable_offset) if offset < replica.last_stable_offset else None
    if piece is None:
        return None
    for batch in split(piece.view()):
        if not batch.is_control:
            times = [record.timestamp for record in decode(batch) if record.offset >= offset]
            return times[0] if times else batch.max_timestamp
    return None
