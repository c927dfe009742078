"""What a probe is told of one part of a node."""

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    PASS = "pass"  # noqa: S105  no password
    WARN = "warn"
    """All is served that is there, but somebody has to look: waiting or a restart does not mend it."""
    FAIL = "fail"


class Check(NamedTuple):
    name: str
    status: Status
    message: str
