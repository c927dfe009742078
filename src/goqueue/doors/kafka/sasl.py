"""How a connection shows who it is: SaslHandshake names a mechanism, SaslAuthenticate goes through it. A connection
that has done so may do it again, as the same user, before its session ends (KIP-368).
"""

from collections.abc import Callable
from ipaddress import ip_address
from typing import NamedTuple

from goqueue.broker.access import Access
from goqueue.broker.gate import Gate
from goqueue.model.codes import Code
from goqueue.model.credentials import AccessTooOld, NotAuthenticated, OnLogin, Principal
from goqueue.model.errors import GoQueueError
from goqueue.model.listener import IN_PROCESS, Connected
from goqueue.model.refusal import Refused
from goqueue.model.scram import Mechanism
from goqueue.model.secret import hides
from goqueue.wire.sasl.oauthbearer import OAUTHBEARER, read_bearer
from goqueue.wire.sasl.plain import PLAIN, read_plain
from goqueue.wire.sasl.scram import NONCE_BYTES, ScramServer

NO_END = 0


@hides("auth_bytes")
class Answered(NamedTuple):
    """To one SaslAuthenticate."""

    code: Code = Code.NONE
    message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: int = NO_END
    access: Access | None = None
    """Whoever has shown all may do this."""
    is_for_now: bool = False
    """It says nothing of what was shown."""


OnAnswered = Callable[[Answered], None]


class SaslExchange:
    """Of one connection."""

    def __init__(
        self,
        gate: Gate,
        on_admitted: Callable[[Access, int], None],
        connected: Connected = IN_PROCESS,
        session_ms_max: int = NO_END,
    ) -> None:
        """`on_admitted`: given what the connection may do from now on, and for how many milliseconds."""
        self._session_ms_max = session_ms_max
        self._gate = gate
        self.on_admitted = on_admitted
        self.connected = connected
        self._mechanism = ""
        self._server: ScramServer | None = None
        self._principal = ""

    @property
    def mechanisms(self) -> list[str]:
        """A password or a token is not sent in clear over a network."""
        is_safe = self.connected.listener.protocol.has_tls or _is_loopback(self.connected.peer)
        logins = self._gate.logins
        has_tokens = logins is not None and logins.tokens is not None
        in_clear = (PLAIN, *((OAUTHBEARER,) if has_tokens else ()))
        return [*(str(each) for each in Mechanism), *(in_clear if is_safe else ())]

    def handshake(self, mechanism: str) -> Code:
        if self._gate.logins is None:
            return Code.ILLEGAL_SASL_STATE
        if mechanism not in self.mechanisms:
            return Code.UNSUPPORTED_SASL_MECHANISM
        self._mechanism, self._server = mechanism, None
        return Code.NONE

    def authenticate(self, data: bytes, on_answered: OnAnswered) -> None:
        if self._gate.logins is None or not self._mechanism:
            on_answered(Answered(Code.ILLEGAL_SASL_STATE, "SaslHandshake comes first"))
            return
        try:
            if self._mechanism == PLAIN:
                name, password, tenant = read_plain(data)
                self._gate.log_in(name, password, self.connected, self._when_known(on_answered, tenant))
            elif self._mechanism == OAUTHBEARER:
                token, tenant = read_bearer(data)
                self._gate.bearer(token, self.connected, self._when_known(on_answered, tenant))
            else:
                self._scram(Mechanism(self._mechanism), data, on_answered)
        except GoQueueError as error:
            on_answered(self._failed(str(error)))

    def _when_known(self, on_answered: OnAnswered, tenant: str = "") -> OnLogin:
        def logged_in(found: Principal | NotAuthenticated) -> None:
            is_wrong = isinstance(found, NotAuthenticated)
            on_answered(self._failed(str(found)) if is_wrong else self._done(found, b"", tenant))  # type: ignore[arg-type]

        return logged_in

    def _scram(self, mechanism: Mechanism, data: bytes, on_answered: OnAnswered) -> None:
        logins, host = self._gate.logins, host_of(self.connected.peer)
        assert logins is not None
        if self._server is None:
            nonce = self._gate.dice.randbytes(NONCE_BYTES).hex()
            self._server = ScramServer(mechanism, nonce, lambda name: logins.verifier(name, mechanism))
        server = self._server
        had_name = server.name
        if not had_name:
            reply = server.step(data)
            logins.check_guesses(host, server.name)
            on_answered(Answered(auth_bytes=reply))
            return
        try:
            reply = server.step(data)
        except GoQueueError:
            raise logins.fail(host, server.name) from None
        on_answered(self._done(Principal(f"User:{server.name}"), reply, server.tenant))

    def _done(self, principal: Principal, reply: bytes, tenant: str) -> Answered:
        self._mechanism, self._server = "", None
        if self._principal not in ("", principal.name):
            return self._failed("a connection stays with the user that it was made for")
        try:
            # The connection has a session that ends: what it has asked for by then is still answered.
            access = self._gate.access(principal._replace(expires_ms=0), self.connected, tenant)
        except AccessTooOld as error:
            self._mechanism = ""
            return Answered(Code.SASL_AUTHENTICATION_FAILED, str(error), is_for_now=True)
        except Refused as error:
            return self._failed(str(error))
        self._principal = principal.name
        ends = [self._session_ms_max] if self._session_ms_max else []
        if principal.expires_ms:
            ends.append(max(1, principal.expires_ms - self._gate.clock.now_ms()))
        return Answered(Code.NONE, None, reply, min(ends, default=NO_END), access)

    @property
    def has_ended(self) -> bool:
        """It was somebody's, so whoever asks without having shown it again is late, and no stranger."""
        return bool(self._principal)

    def _failed(self, words: str) -> Answered:
        self._mechanism, self._server = "", None
        return Answered(Code.SASL_AUTHENTICATION_FAILED, f"Authentication failed: {words}")

    @property
    def delay_ms(self) -> int:
        """Until a failure is told."""
        return 0 if self._gate.logins is None else self._gate.logins.delay_ms


def host_of(peer: str) -> str:
    """Of host:port."""
    return peer.rpartition(":")[0]


def _is_loopback(peer: str) -> bool:
    try:
        return ip_address(host_of(peer)).is_loopback
    except ValueError:
        return False
