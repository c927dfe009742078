"""Where a group begins that is new in a partition."""

from goqueue.model.starts import EARLIEST, ago_ms
from goqueue.replica.replica import Replica


def start_offset(replica: Replica, start: str, now_ms: int) -> int:
    if start == EARLIEST:
        return replica.start_offset
    long_ms = ago_ms(start)
    found = None if long_ms is None else replica.first_at_or_after(now_ms - long_ms)
    return replica.high_watermark if found is None else min(found.offset, replica.high_watermark)
