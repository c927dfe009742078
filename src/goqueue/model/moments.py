"""What people write for time: one reading for headers, settings, doors and the command line.

Moments are milliseconds since 1970, from 0 to the end of the year 9999. Nothing is guessed: a time of day without an
offset, or a number that could be seconds, is not taken for what it may have meant.
"""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

from goqueue.model.errors import InvalidMoment

MOMENT_MS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999, the last one that RFC 3339 can write."""

DURATION_FORMS = "milliseconds (1500) or parts such as 500ms, 1h30m, 3 days, 2w, the largest unit first"
MOMENT_FORMS = (
    "RFC 3339 with an offset (2026-11-16T10:00:00Z), milliseconds since 1970 (1794823200000), "
    "now, or relative to now (-10m, +2h)"
)

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_UNIT_NAMES = {
    "ms": ("ms", "msec", "msecs", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "week", "weeks"),
}
_MS_BY_NAME = {name: _UNITS_MS[unit] for unit, names in _UNIT_NAMES.items() for name in names}

_DIGITS_MAX = 15  # as many as MOMENT_MS_MAX has
_TEXT_CHARS_MAX = 64
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_TIMESTAMP_END = 2**63
_PART = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([a-z]+)")
_RELATIVE = re.compile(r"(?:now)?\s*([+-])(.+)", re.IGNORECASE)
_RFC_3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def parse_duration_ms(written: str | int) -> int:
    """Milliseconds. A number without unit is milliseconds, as everywhere in our settings."""
    if isinstance(written, int) and not isinstance(written, bool):
        duration_ms: int | None = written
    elif isinstance(written, str):
        duration_ms = _duration_ms(written)
    else:
        duration_ms = None
    if duration_ms is None or not 0 <= duration_ms <= MOMENT_MS_MAX:
        raise InvalidMoment(f"{shown(written)} is no duration: possible are {DURATION_FORMS}")
    return duration_ms


def parse_moment_ms(written: str | int, now_ms: int) -> int:
    """Milliseconds since 1970. A fraction below a millisecond is cut off."""
    if isinstance(written, int) and not isinstance(written, bool):
        moment_ms: int | None = written
    elif isinstance(written, str):
        moment_ms = _moment_ms(written.strip(), now_ms)
    else:
        moment_ms = None
    if moment_ms is None:
        raise InvalidMoment(f"{shown(written)} is no time: possible are {MOMENT_FORMS}")
    if not 0 <= moment_ms <= MOMENT_MS_MAX:
        raise InvalidMoment(f"{shown(written)} lies outside of the years 1970 to 9999")
    return moment_ms


def parse_timestamp_ms(written: str | int, now_ms: int) -> int:
    """As `parse_moment_ms`, for the timestamp of a record, which its producer chose and which is taken back as
    `format_moment` wrote it: before 1970 and after 9999 it is a number, and -1 is none at all.
    """
    number = int(written) if isinstance(written, str) and _NUMBER.fullmatch(written) else written
    if isinstance(number, int) and not isinstance(number, bool) and -_TIMESTAMP_END <= number < _TIMESTAMP_END:
        return number
    return parse_moment_ms(written, now_ms)


def parse_absolute_ms(text: str) -> int | None:
    """A moment that needs no clock: RFC 3339 or milliseconds since 1970. None: neither, or out of range."""
    if text.isascii() and text.isdigit():
        moment_ms = int(text) if len(text) <= _DIGITS_MAX else -1
    else:
        rfc_3339_ms = _rfc_3339_ms(text)
        moment_ms = -1 if rfc_3339_ms is None else rfc_3339_ms
    return moment_ms if 0 <= moment_ms <= MOMENT_MS_MAX else None


def format_moment(moment_ms: int) -> str:
    """RFC 3339 in UTC, milliseconds only where there are some; what has no such form stays a number."""
    if not 0 <= moment_ms <= MOMENT_MS_MAX:
        return str(moment_ms)
    seconds, milliseconds = divmod(moment_ms, 1000)
    return f"{_format_second(seconds)}.{milliseconds:03}Z" if milliseconds else f"{_format_second(seconds)}Z"


@lru_cache(maxsize=256)
def _format_second(seconds: int) -> str:
    """Many messages have the same few: what is shown together is mostly of one moment."""
    moment = _EPOCH + seconds * 1000 * _MILLISECOND
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


def format_duration(duration_ms: int) -> str:
    """As `parse_duration_ms` reads it and Go writes it: 1h2m3.5s."""
    hours, left_ms = divmod(max(0, duration_ms), _UNITS_MS["h"])
    minutes, left_ms = divmod(left_ms, _UNITS_MS["m"])
    words = [f"{hours}h"] * bool(hours) + [f"{minutes}m"] * bool(minutes)
    if left_ms or not words:
        seconds, milliseconds = divmod(left_ms, _UNITS_MS["s"])
        fraction = f".{milliseconds:03}".rstrip("0") if milliseconds else ""
        words.append(f"{seconds}{fraction}s")
    return "".join(words)


def shown(written: object) -> str:
    """What somebody wrote, for a message: never long."""
    text = repr(written)
    return text if len(text) <= _TEXT_CHARS_MAX else text[:_TEXT_CHARS_MAX] + "..."


def _moment_ms(text: str, now_ms: int) -> int | None:
    if text.lower() == "now":
        return now_ms
    if text.isascii() and text.isdigit():
        return int(text) if len(text) <= _DIGITS_MAX else MOMENT_MS_MAX + 1
    if relative := _RELATIVE.fullmatch(text):
        sign, distance = relative.groups()
        distance_ms = None if distance.strip().isdigit() else _duration_ms(distance)  # -10 of what?
        if distance_ms is None:
            return None
        return now_ms - distance_ms if sign == "-" else now_ms + distance_ms
    return _rfc_3339_ms(text)


def _rfc_3339_ms(text: str) -> int | None:
    parts = _RFC_3339.fullmatch(text)
    if parts is None:
        return None
    date, time, fraction, offset = parts.groups()
    try:
        moment = datetime.fromisoformat(f"{date}T{time}{'+00:00' if offset in 'Zz' else offset}")
    except ValueError:  # a 31st of February, a 25th hour
        return None
    fraction_ms = int(fraction.ljust(3, "0")[:3]) if fraction else 0
    return (moment - _EPOCH) // _MILLISECOND + fraction_ms


def _duration_ms(text: str) -> int | None:
    text = text.strip().lower()
    if not text.isascii() or not text or len(text) > _TEXT_CHARS_MAX:
        return None
    if text.isdigit():
        return int(text)
    total_ms = Decimal(0)
    position, smallest_ms = 0, MOMENT_MS_MAX
    while position < len(text):
        part = _PART.match(text, position)
        unit_ms = _MS_BY_NAME.get(part[2]) if part else None
        # Falling units make "1h1h" and "30m1h", which are slips of the pen, no durations.
        if part is None or unit_ms is None or unit_ms >= smallest_ms:
            return None
        total_ms += Decimal(part[1]) * unit_ms
        position, smallest_ms = part.end(), unit_ms
    return int(total_ms) if total_ms == int(total_ms) else None
