"""What each API tells of itself when metrics are read."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class FetchSessionFacts(NamedTuple):
    sessions: int
    partitions: int
    evictions: int


class DoorFacts(NamedTuple):
    connections: int
    requests: int
    malformed: int
    open_calls: Mapping[str, int] = MappingProxyType({})
    """By method, where a door knows of them."""
    fetch_sessions: FetchSessionFacts | None = None
    """Where there are any."""
