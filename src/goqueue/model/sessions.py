"""Sessions of browsers. One that is under way is not stored: it says itself who it is of and until when, under a seal.
One that was ended before its time is.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from goqueue.model.secret import hides

LASTS_MS = 12 * 60 * 60 * 1000
IDLE_MS = 30 * 60 * 1000
"""A session that nothing was asked with for so long is over."""
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


@hides("session_id", "stamp")
class Session(msgspec.Struct, frozen=True, array_like=True):
    """As it is sealed."""

    session_id: bytes
    principal: str
    roles: tuple[str, ...]
    """That a token gave when it was begun, beside those of an account."""
    begun_ms: int
    ends_ms: int
    seen_ms: int
    """When it was last used, to the minute."""
    stamp: bytes
    """Of the password that it was begun with: with another it is over. Empty: it was begun with a token."""

    @property
    def digest(self) -> str:
        """By which others may know it, without being able to use it."""
        return hashlib.sha256(self.session_id).hexdigest()[:32]

    @property
    def idle_ms(self) -> int:
        """When it is over unless it is used."""
        return min(self.ends_ms, self.seen_ms + IDLE_MS)
