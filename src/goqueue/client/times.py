"""How people write times, for signatures."""

from typing import TypeAlias

from goqueue.client.errors import InvalidArgument
from goqueue.model.errors import InvalidMoment
from goqueue.model.moments import parse_duration_ms

Duration: TypeAlias = str | int
"""As people write it: "30s", "3 days"; a number is milliseconds."""
Moment: TypeAlias = str | int
"""RFC 3339, milliseconds since 1970, "now", or relative to now: "-10m", "+2h"."""


def duration_s(name: str, value: Duration) -> float:
    try:
        return parse_duration_ms(value) / 1000
    except InvalidMoment as error:
        raise InvalidArgument(f"{name}: {error}") from None
