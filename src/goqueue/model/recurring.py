"""A recurring schedule, as its user gives it."""

from collections.abc import Sequence
from typing import NamedTuple


class Recurring(NamedTuple):
    """A message to be published whenever a cron expression says so."""

    name: str
    topic: str
    cron: str
    value: bytes | None
    key: bytes | None = None
    """Chooses the partition; without one it is the first."""
    headers: Sequence[tuple[str, bytes | None]] = ()
    timezone: str = "UTC"
    owner: str = ""
    """Who stores it: it runs while they may write to the topic. Empty: nobody in particular."""
    owner_host: str = ""
    """From where, if there are rules about addresses."""
