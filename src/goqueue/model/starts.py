"""What people write for where a group begins that is new in a partition: at one end of the log, or so long ago."""

import re
from datetime import timedelta

EARLIEST, LATEST = "earliest", "latest"
BY_DURATION = "by_duration:"
"""And how long ago, as ISO 8601 writes it: by_duration:PT1H30M."""
_DURATION = re.compile(
    r"P(?:(?P<days>[0-9]{1,6})D)?(?:T(?=[0-9])(?:(?P<hours>[0-9]{1,8})H)?(?:(?P<minutes>[0-9]{1,9})M)?"
    r"(?:(?P<seconds>[0-9]{1,10}(?:\.[0-9]{1,9})?)S)?)?"
)


def is_start(text: str) -> bool:
    return text in (EARLIEST, LATEST) or ago_ms(text) is not None


def ago_ms(start: str) -> int | None:
    """None: it says nothing of the kind."""
    parts = _DURATION.fullmatch(start.removeprefix(BY_DURATION)) if start.startswith(BY_DURATION) else None
    if parts is None or not any(parts.groups()):
        return None
    units = {unit: float(text or 0) for unit, text in parts.groupdict().items()}
    return round(timedelta(**units).total_seconds() * 1000)
