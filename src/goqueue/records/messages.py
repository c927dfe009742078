"""A message as its sender gives it, and where it went."""

from typing import NamedTuple

from goqueue.model.errors import GoQueueError
from goqueue.model.lanes import Lane
from goqueue.records.native import Headers
from goqueue.records.wishes import DEDUP_ID, DELAY_MS, DELIVER_AT, EXPIRES_AT, PRIORITY

NO_HEADERS: Headers = []


class NewMessage(NamedTuple):
    """A record and its delivery wishes."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = NO_HEADERS
    partition: int | None = None
    """None: by key, or in turns."""
    timestamp_ms: int | None = None
    lane: Lane = Lane.NORMAL
    delay_ms: int | None = None
    deliver_at_ms: int | None = None
    expires_at_ms: int | None = None
    dedup_id: bytes | None = None
    may_be_compressed: bool = False
    """If it does not fit otherwise: it came so, perhaps, and more fits into a compressed batch."""

    def all_headers(self) -> Headers:
        if self[5:10] == _NO_WISHES:
            return self.headers
        wishes: Headers = []
        if self.lane != Lane.NORMAL:
            wishes.append((PRIORITY, Lane(self.lane).name.lower().encode()))
        for name, number in (
            (DELAY_MS, self.delay_ms),
            (DELIVER_AT, self.deliver_at_ms),
            (EXPIRES_AT, self.expires_at_ms),
        ):
            if number is not None:
                wishes.append((name, b"%d" % number))
        if self.dedup_id is not None:
            wishes.append((DEDUP_ID, self.dedup_id))
        return [*self.headers, *wishes] if wishes else self.headers


_NO_WISHES = (Lane.NORMAL, None, None, None, None)
"""From `lane` to `dedup_id`, as most messages have it."""


class Sent(NamedTuple):
    """Where a message is, or why it is not."""

    partition: int
    offset: int
    """Of a delayed message: the place kept free for it, which is its name until it is due. Of one that was published
    before (`gq-dedup-id`): where that is."""
    error: GoQueueError | None = None
    durability: str = "disk"
    """What was reached when it was acknowledged: `disk`, or `os`, which the machine may still lose."""
