"""How a connection shows who it is: SaslHandshake names a mechanism, SaslAuthenticate goes through it. A connection
that has done so may do it again, as the same user, before its session ends (KIP-368).
"""

from collections.abc import Callable
from ipaddress import ip_address
from typing import NamedTuple

from goqueue.broker.gate import Access, Gate, NotAuthenticated, Principal
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.listener import IN_PROCESS, Connected
from goqueue.model.scram import Mechanism
from goqueue.wire.sasl.plain import PLAIN, read_plain
from goqueue.wire.sasl.scram import NONCE_BYTES, ScramServer

NO_END = 0


class Answered(NamedTuple):
    """To one SaslAuthenticate."""

    code: Code = Code.NONE
    message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: int = NO_END
    access: Access | None = None
    """Whoever has shown all may do this."""


OnAnswered = Callable[[Answered], None]


class SaslExchange:
    """Of one connection."""

    def __init__(
        self, gate: Gate, on_admitted: Callable[[Access, int], None], connected: Connected = IN_PROCESS
    ) -> None:
        """`on_admitted`: given what the connection may do from now on, and for how many milliseconds."""
        self._gate = gate
        self.on_admitted = on_admitted
        self.connected = connected
        self._mechanism = ""
        self._server: ScramServer | None = None
        self._principal = ""

    @property
    def mechanisms(self) -> list[str]:
        """A password is not sent in clear over a network."""
        is_safe = self.connected.listener.protocol.has_tls or _is_loopback(self.connected.peer)
        return [*(str(each) for each in Mechanism), *((PLAIN,) if is_safe else ())]

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
                self._plain(data, on_answered)
            else:
                self._scram(Mechanism(self._mechanism), data, on_answered)
        except GoQueueError as error:
            on_answered(self._failed(str(error)))

    def _plain(self, data: bytes, on_answered: OnAnswered) -> None:
        given = read_plain(data)

        def logged_in(found: Principal | NotAuthenticated) -> None:
            failed = isinstance(found, NotAuthenticated)
            on_answered(self._failed(str(found)) if failed else self._done(found, b""))  # type: ignore[arg-type]

        self._gate.log_in(given.name, given.password, self.connected, logged_in)

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
        on_answered(self._done(Principal(f"User:{server.name}"), reply))

    def _done(self, principal: Principal, reply: bytes) -> Answered:
        self._mechanism, self._server = "", None
        if self._principal not in ("", principal.name):
            return self._failed("a connection stays with the user that it was made for")
        self._principal = principal.name
        access = self._gate.access(principal, self.connected)
        left_ms = max(1, principal.expires_ms - self._gate.clock.now_ms()) if principal.expires_ms else NO_END
        return Answered(Code.NONE, None, reply, left_ms, access)

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
