"""Sessions of browsers that were ended before their time. All others need not be stored: a session says itself who it
is of and until when, under a seal.
"""

from collections.abc import Mapping

import msgspec

IDS_MAX = 20
"""Of one principal, ended one by one; one more ends them all."""


class EndedSessions(msgspec.Struct, frozen=True):
    """Of one principal."""

    principal: str
    ids: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Digests of the ids of sessions that were ended, and when each would have ended by itself."""
    before_ms: int = 0
    """All that were begun before this are over."""
    lasts_ms: int = 0
    """From then on nothing of this is needed: all of them would be over by themselves."""

    def has(self, session: str, begun_ms: int) -> bool:
        return session in self.ids or begun_ms < self.before_ms
