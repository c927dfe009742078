"""Old segments go away, whole and oldest first: by age, and by the size of the log. The active one is sealed when its
turn comes, so that an idle log is emptied too."""

from goqueue.storage.log import Log
from goqueue.storage.options import UNLIMITED
from goqueue.storage.segment import Segment


def expire(log: Log, now_ms: int, limit_offset: int | None = None) -> int:
    """Apply the log's retention; returns how many segments went. `limit_offset`: nothing at or behind it may go."""
    if not log.options.deletes:
        return 0
    limit = deletable_to(log, limit_offset)
    if _is_too_old(log, log.segments.active, now_ms) and log.segments.active.size:
        log.roll(now_ms)
    over_bytes = log.segments.size_bytes - log.options.retention_bytes
    start_offset = log.start_offset
    expired = 0
    for segment in log.segments.sealed:
        is_too_much = log.options.retention_bytes != UNLIMITED and over_bytes >= segment.size
        if segment.next_offset > limit or not (is_too_much or _is_too_old(log, segment, now_ms)):
            break
        over_bytes -= segment.size
        start_offset = max(start_offset, segment.next_offset)
        expired += 1
    if expired:
        log.advance_start(start_offset)
    return expired


def deletable_to(log: Log, limit_offset: int | None = None) -> int:
    """What stands at or behind it stays: a crash or another leader may still take it back."""
    limit = log.synced_offset if log.committed_offset is None else min(log.committed_offset(), log.synced_offset)
    return limit if limit_offset is None else min(limit, limit_offset)


def newest_ms(segment: Segment) -> int:
    """Records without a timestamp are as old as their segment."""
    return segment.max_timestamp if segment.max_timestamp >= 0 else segment.created_ms


def _is_too_old(log: Log, segment: Segment, now_ms: int) -> bool:
    return log.options.retention_ms != UNLIMITED and newest_ms(segment) < now_ms - log.options.retention_ms
