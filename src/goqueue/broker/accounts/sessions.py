"""Sessions of browsers. A session is a text under a seal, which says who it is of and until when: any node of a cluster
honours one that another has begun, and nothing is kept of it but that it was ended.
"""

import base64
import binascii
import hmac

import msgspec

from goqueue.broker.accounts.accounts import Accounts, OnReply
from goqueue.broker.accounts.sealing import CannotUnseal
from goqueue.broker.tenants.belonging import account_of, home_of
from goqueue.model.accounts import USER
from goqueue.model.credentials import NotAuthenticated, Principal
from goqueue.model.scram import Mechanism
from goqueue.model.secret import Secret
from goqueue.model.sessions import LASTS_MS, Session
from goqueue.ports.dice import Dice
from goqueue.runtime.clock import Clock

RENEW_MS = 60 * 1000
"""A browser gets its session anew when it has not for so long: it says when it was last used."""
ID_BYTES = 32
TEXT_MAX = 4096
"""What browsers keep of a cookie."""
SEALED_AS = "session"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Session).decode


class Sessions:
    def __init__(self, accounts: Accounts, clock: Clock, dice: Dice, secret: bytes) -> None:
        """`secret`: of the cluster."""
        self._accounts = accounts
        self._clock = clock
        self._dice = dice
        self.sealing = accounts.sealing.derived(b"sessions", secret)
        self._csrf_key = hmac.digest(secret, b"csrf of sessions", "sha256")

    def begin(self, principal: Principal, *, by_password: bool) -> Session:
        """NotAuthenticated: its user has no password any more."""
        now_ms = self._clock.now_ms()
        ended = self._accounts.image.ended_sessions.get(principal.name)
        # Clocks of nodes differ.
        begun_ms = max(now_ms, 0 if ended is None else ended.before_ms, self._tenant_ms(principal.name) + 1)
        stamp = self._stamp(principal.name) if by_password else b""
        if by_password and not stamp:
            raise NotAuthenticated
        session_id = self._dice.randbytes(ID_BYTES)
        return Session(session_id, principal.name, principal.roles, begun_ms, now_ms + LASTS_MS, now_ms, stamp)

    def text(self, session: Session) -> Secret[str]:
        """What a browser keeps."""
        return self.sealed(SEALED_AS, _encode(session))

    def sealed(self, of: str, data: bytes) -> Secret[str]:
        return Secret(base64.urlsafe_b64encode(self.sealing.seal(of, data)).decode().rstrip("="))

    def unsealed(self, of: str, text: Secret[str]) -> bytes | None:
        """None: no node of this cluster has sealed it."""
        given = text.reveal()
        if not given or len(given) > TEXT_MAX:
            return None
        try:
            return self.sealing.open(of, base64.b64decode(given + "=" * (-len(given) % 4), b"-_", validate=True))
        except (binascii.Error, ValueError, CannotUnseal):
            return None

    def read(self, text: Secret[str]) -> Session | None:
        """None: this is none of ours, and says nothing."""
        data = self.unsealed(SEALED_AS, text)
        if data is None:
            return None
        try:
            return _decode(data)
        except msgspec.MsgspecError:  # of another version
            return None

    def is_over(self, session: Session) -> bool:
        """Its time has come, somebody has ended it, its user has another password, or its tenant is another one that
        was made since, under the same id."""
        ended, now_ms = self._accounts.image.ended_sessions.get(session.principal), self._clock.now_ms()
        if now_ms >= session.idle_ms or (ended is not None and ended.has(session.digest, session.begun_ms)):
            return True
        if session.begun_ms <= self._tenant_ms(session.principal):
            return True
        return bool(session.stamp) and not hmac.compare_digest(session.stamp, self._stamp(session.principal))

    def renewed(self, session: Session) -> Session | None:
        """None: it need not be, yet."""
        now_ms = self._clock.now_ms()
        return msgspec.structs.replace(session, seen_ms=now_ms) if now_ms - session.seen_ms >= RENEW_MS else None

    def csrf(self, session: Session) -> Secret[str]:
        """Known to pages of this node only: others cannot read its answers."""
        return Secret(hmac.digest(self._csrf_key, session.session_id, "sha256").hex())

    def end(self, session: Session, on_reply: OnReply[None], *, is_all: bool = False) -> None:
        """`is_all`: all of its principal. They are over on this node when told, and on others a moment later."""
        ends_ms = max(self._clock.now_ms() + LASTS_MS, session.ends_ms) if is_all else session.ends_ms
        self._accounts.end_session(session.principal, "" if is_all else session.digest, ends_ms, on_reply)

    def _tenant_ms(self, principal: str) -> int:
        """When the tenant of a principal was made; 0: it has always been there, or is not any more."""
        image = self._accounts.image
        found = image.tenants.get(home_of(image, principal))
        return 0 if found is None else found.created_ms

    def _stamp(self, principal: str) -> bytes:
        """Of what a password is checked by now; empty, of somebody who has none: nothing was stamped so."""
        name = principal.removeprefix(f"{USER}:")
        found = None
        if account_of(self._accounts.image, principal) is not None:
            found = self._accounts.verifier(name, Mechanism.SHA_256)
        if found is None:
            return b""
        return hmac.digest(self._csrf_key, b"stamp" + found.salt + found.stored_key, "sha256")[:16]
