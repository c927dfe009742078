"""Questions about a window that are not asked for every record."""

import re

from goqueue.machines.deliveries.blocks import (
    BLOCK,
    FOREVER,
    Range,
    blocks_of,
    clipped,
    ranges_of,
    shared,
    times_of,
    unpack_bits,
    without,
)
from goqueue.machines.deliveries.commands import RecordLook, Span
from goqueue.machines.deliveries.window import DEAD, GAP, HELD, LANE_BITS, READY, SETTLED, WAITING, Window
from goqueue.model.lanes import LANES

_OPEN = re.compile(b"[^%c%c]+" % (SETTLED, GAP))
_NOT_SETTLED = re.compile(b"[^%c]+" % SETTLED)
_WAITING_RUNS = re.compile(b"[%c-%c]+" % (WAITING, WAITING | LANES - 1))


def expired_in(window: Window, first: int, last: int, now_ms: int) -> list[int]:
    """Offsets whose time is over, whatever their state."""
    found: list[int] = []
    for number in shared(window.expires, blocks_of(first, last)):
        times = window.expires[number]
        base = number * BLOCK
        low, high = max(first - base, 0), min(last - base, BLOCK - 1)
        if min(times[low : high + 1]) <= now_ms:
            found.extend(base + index for index in range(low, high + 1) if times[index] <= now_ms)
    return found


def settled_in(window: Window, first: int, last: int) -> list[Range]:
    """What of first..last was a record and is settled; below the window all."""
    below: list[Range] = [(first, min(last, window.start - 1))] if first < window.start else []
    return below + without([(max(first, window.start), last)], unsettled(window, max(first, window.start), last, GAP))


def unsettled(window: Window, first: int, last: int, idle: int = SETTLED) -> list[Range]:
    """What of first..last is not settled, whether observed or not; with gaps if `idle` is GAP."""
    first, last = max(first, window.start), min(last, window.limit - 1)
    if first > last:
        return []
    found: list[Range] = []
    seen_last = min(last, window.end - 1)
    if first <= seen_last:
        low, high = first - window.base, seen_last + 1 - window.base
        pattern = _OPEN if idle == SETTLED else _NOT_SETTLED
        spans = [run.span() for run in pattern.finditer(window.kinds, low, high)]
        found += ((window.base + begin, window.base + end - 1) for begin, end in spans)
    first = max(first, window.end)
    if first <= last:
        left = clipped(window.chosen, first, last) if window.chosen else [(first, last)]
        settled = (
            each
            for number in sorted(shared(window.stored, blocks_of(first, last)))
            for each in ranges_of(number, unpack_bits(window.stored[number].settled))
        )
        found += without(left, settled)
    return found


def oldest_ready(window: Window) -> list[int | None]:
    found = (window.kinds.find(lane, window.start - window.base) for lane in range(LANES))
    return [None if at < 0 else window.base + at for at in found]


def record_look(window: Window, offset: int, is_dying: bool) -> RecordLook:
    """Of a record that a window has or had."""
    retry = window.retry_of(offset)
    visible_at_ms = 0 if retry is None else retry.visible_at_ms
    if not window.base <= offset < window.end:
        is_dead = offset < window.start or is_dying
        return RecordLook(0 if retry is None else retry.attempts, is_dead, is_dying, visible_at_ms)
    kind = window.kind_at(offset)
    is_waiting = WAITING <= kind < WAITING | LANES
    attempts = window.attempts[offset - window.base]
    return RecordLook(attempts, kind >= DEAD, is_dying, visible_at_ms if is_waiting else 0)


def block_due_ms(window: Window, number: int) -> int | None:
    """When the next record of a block becomes visible or expires, if any."""
    due_ms = FOREVER
    base = number * BLOCK - window.base
    begin, end = max(base, window.start - window.base), min(base + BLOCK, len(window.kinds))
    block = window.stored.get(number)
    if block is not None and block.retries:
        for first, last, visible_at_ms in times_of(block.retries):
            low, high = max(base + first, begin), min(base + last + 1, end)
            if visible_at_ms < due_ms and low < high and _WAITING_RUNS.search(window.kinds, low, high):
                due_ms = visible_at_ms
    times = window.expires.get(number)
    if times is not None:
        for index in range(begin, end):
            if window.kinds[index] & ~LANE_BITS in (READY, WAITING, HELD):
                due_ms = min(due_ms, times[index - base])
    return None if due_ms == FOREVER else due_ms


def visible_again(window: Window, number: int, now_ms: int) -> list[Range]:
    """What of a block has waited long enough."""
    block = window.stored.get(number)
    if block is None or not block.retries:
        return []
    base = number * BLOCK
    due = [(base + first, base + last) for first, last, time_ms in times_of(block.retries) if time_ms <= now_ms]
    return [
        (window.base + run.start(), window.base + run.end() - 1)
        for first, last in clipped(due, window.start, window.end - 1)
        for run in _WAITING_RUNS.finditer(window.kinds, first - window.base, last + 1 - window.base)
    ]


def tiles(spans: tuple[Span, ...], begin: int, end: int) -> tuple[Span, ...]:
    """`spans`, less what lies outside of begin..end; they must leave nothing out in between."""
    expected = begin
    is_exact = True
    for span in spans:
        assert min(span.first, end) <= expected, f"nothing was said about {expected}..{span.first - 1}"
        is_exact = is_exact and span.first == expected
        expected = max(expected, span.last + 1)
    assert expected >= end, f"nothing was said about {expected}..{end - 1}"
    if is_exact and expected == end:
        return spans
    found = []
    for span in spans:
        first, last = max(span.first, begin), min(span.last, end - 1)
        if first <= last:
            found.append(span._replace(first=first, last=last))
            begin = last + 1
    return tuple(found)
