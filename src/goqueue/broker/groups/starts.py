"""Where a group begins that is new in a partition: at one end of the log, or so long ago."""

import re
from datetime import timedelta

from goqueue.replica.replica import Replica

EARLIEST, LATEST = "earliest", "latest"
BY_DURATION = "by_duration:"
"""And how long ago, as ISO 8601 writes it: by_duration:PT1H30M."""
_DURATION = re.compile(
    r"P(?:(?P<days>[0-9]{1,6})D)?(?:T(?=[0-9])(?:(?P<hours>[0-9]{1,8})H)?(?:(?P<minutes>[0-9]{1,9})M)?"
    r"(?:(?P<seconds>[0-9]{1,10}(?:\.[0-9]{1,9})?)S)?)?"
)


def is_start(text: str) -> bool:
    return text in (EARLIEST, LATEST) or _ago_ms(text) is not None


def start_offset(replica: Replica, start: str, now_ms: int) -> int:
    if start == EARLIEST:
        return replica.start_offset
    ago_ms = _ago_ms(start)
    found = None if ago_ms is None else replica.first_at_or_after(now_ms - ago_ms)
    return replica.high_watermark if found is None else min(found.offset, replica.high_watermark)


def _ago_ms(start: str) -> int | None:
    parts = _DURATION.fullmatch(start.removeprefix(BY_DURATION)) if start.startswith(BY_DURATION) else None
    if parts is None or not any(parts.groups()):
        return None
    units = {unit: float(text or 0) for unit, text in parts.groupdict().items()}
    return round(timedelta(**units).total_seconds() * 1000)
