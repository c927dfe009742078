"""When a recurring schedule runs: cron expressions of five fields, read in a time zone.

A run is meant for a time on the wall. Where clocks go back, an hour comes twice and a time in it counts once, the first
time. Where they go forward, an hour is missing and what falls into it runs once, when the gap ends. An expression that
names every hour is not meant for times on the wall but for intervals: it runs on through both, once every real hour.

The library counts expressions with a `*` at the front of the minute or the hour among the latter kind, as Debian's cron
does; that would run `0 */2 * * *` twice at 2:00 or not at all. So such fields are written out before it sees them.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

FIELDS = 5
CRON_MAX = 256
NEVER = -1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_HOURS_OF_DAY = 24


class InvalidCron(ValueError):
    """The message says what is wrong."""


class Moments:
    """The moments of one expression in one time zone."""

    def __init__(self, cron: str, timezone: str) -> None:
        """Raises InvalidCron."""
        self._zone = _find_zone(timezone)
        self._cron = _written_out(cron)

    def after(self, ms: int) -> int:
        """The first one behind `ms`, or NEVER."""
        try:
            moments = CronSim(self._cron, self._local(ms))
            # A time in the hour that comes twice is given for the first time even if that is over.
            while (moment := _to_ms(next(moments))) <= ms:
                pass
        except (StopIteration, OverflowError):
            return NEVER
        return moment

    def last(self, known_ms: int, now_ms: int) -> int:
        """The last one up to `now_ms`, given that `known_ms` is one that is not behind it."""
        try:
            hint = _to_ms(next(CronSim(self._cron, self._local(now_ms + 1000), reverse=True)))
        except (StopIteration, OverflowError):
            hint = known_ms
        # Going backwards the library passes over times near a change of the clocks; forwards from there it does not.
        moment = max(hint, known_ms) if hint <= now_ms else known_ms
        while NEVER < (following := self.after(moment)) <= now_ms:
            moment = following
        return moment

    def _local(self, ms: int) -> datetime:
        return (_EPOCH + ms * _MILLISECOND).astimezone(self._zone)


def _to_ms(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND


def _find_zone(timezone: str) -> tzinfo:
    try:
        return UTC if timezone == "UTC" else ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):  # unknown, not a name at all, the name of a directory of zones
        raise InvalidCron(f"unknown time zone {timezone!r}") from None


def _written_out(cron: str) -> str:
    fields = cron.split()
    if len(cron) > CRON_MAX or len(fields) != FIELDS:
        raise InvalidCron(f"a cron expression has five fields and at most {CRON_MAX} characters, not {cron[:80]!r}")
    try:
        parsed = CronSim(cron, _EPOCH)
    except (CronSimError, AssertionError, ValueError) as error:
        raise InvalidCron(f"cron expression {cron!r}: {error}") from None
    minute, hour, *rest = fields
    if len(parsed.hours) == _HOURS_OF_DAY:
        hour = "*"
    else:
        minute = f"0-59{minute[1:]}" if minute.startswith("*") else minute
        hour = f"0-23{hour[1:]}" if hour.startswith("*") else hour
    return " ".join((minute, hour, *rest))
