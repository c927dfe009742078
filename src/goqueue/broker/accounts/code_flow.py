"""Log-in of a person at an identity provider: the authorisation code flow of OpenID Connect, with PKCE. What has to be
known again when the person comes back travels with the browser, under a seal, so that any node may take the answer.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from goqueue.broker.accounts.logins import Logins
from goqueue.broker.accounts.tokens import Tokens
from goqueue.model.credentials import NotAuthenticated, OnLogin, Principal
from goqueue.model.secret import Secret, hides
from goqueue.ports.dice import Dice
from goqueue.runtime.aside import Aside
from goqueue.runtime.clock import Clock

BEGUN_MS_MAX = 10 * 60 * 1000
"""How long a person may take at the issuer."""
WAITING_MAX = 20
"""Codes that wait to be exchanged."""
RANDOM_BYTES = 32
SEALED_AS = "log-in"
WHO = "a code"
"""The name under which guesses are counted, for each address."""

Exchange = Callable[[Mapping[str, str]], bytes]
"""In a thread: the issuer's answer to this form. OSError or GoQueueError: there is none."""


class Client(NamedTuple):
    """As the issuer knows this cluster."""

    client_id: str
    issuer: str
    authorization_url: str
    exchange: Exchange


@hides("state", "nonce", "verifier")
class Begun(msgspec.Struct, frozen=True, array_like=True):
    state: str
    nonce: str
    verifier: str
    redirect_uri: str
    back_to: str
    """The page that the person wants to see then."""
    begun_ms: int


class _Answer(msgspec.Struct):
    id_token: str


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Begun).decode
_answer = msgspec.json.Decoder(_Answer).decode


class CodeFlow:
    def __init__(self, client: Client, tokens: Tokens, logins: Logins, aside: Aside, clock: Clock, dice: Dice) -> None:
        self._client = client
        self._tokens = tokens
        self._logins = logins
        self._aside = aside
        self._clock = clock
        self._dice = dice
        self._waiting = 0

    def begin(self, redirect_uri: str, back_to: str) -> tuple[str, Secret[str]]:
        """Where the person has to go, and what the browser keeps meanwhile."""
        state, nonce, verifier = (_text(self._dice.randbytes(RANDOM_BYTES)) for _ in range(3))
        begun = Begun(state, nonce, verifier, redirect_uri, back_to, self._clock.now_ms())
        asked = {
            "response_type": "code",
            "client_id": self._client.client_id,
            "redirect_uri": redirect_uri,
            "scope": "openid",
            "state": state,
            "nonce": nonce,
            "code_challenge": _text(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        url = self._client.authorization_url
        joined = f"{url}{'&' if '?' in url else '?'}{urlencode(asked)}"
        return joined, self._logins.sessions.sealed(SEALED_AS, _encode(begun))

    def begun(self, kept: Secret[str], state: str, issuer: str | None) -> Begun:
        """What the answer with this state is to. NotAuthenticated: to nothing that this browser has begun."""
        data = self._logins.sessions.unsealed(SEALED_AS, kept)
        try:
            found = None if data is None else _decode(data)
        except msgspec.MsgspecError:  # of another version
            found = None
        if found is None or self._clock.now_ms() - found.begun_ms > BEGUN_MS_MAX:
            raise NotAuthenticated("this browser has begun no log-in of late; begin again")
        if Secret(found.state) != Secret(state) or issuer not in (None, self._client.issuer):
            raise NotAuthenticated("this is the answer to another log-in; begin again")
        return found

    def finish(self, begun: Begun, code: str, host: str, on_login: OnLogin) -> None:
        """Told later: the code is exchanged for a token, which says who it is."""
        try:
            self._logins.check_guesses(host, WHO)
            if self._waiting >= WAITING_MAX:
                raise NotAuthenticated("too many log-ins wait for the issuer; try again later")
        except NotAuthenticated as error:
            on_login(error)
            return
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": begun.redirect_uri,
            "code_verifier": begun.verifier,
        }
        got: list[bytes] = []

        def done(error: BaseException | None) -> None:
            self._waiting -= 1
            try:
                token = _answer(got[0]).id_token if error is None else ""
            except (msgspec.MsgspecError, UnicodeDecodeError):
                token = ""
            if not token:
                self._logins.fail(host, WHO)
                on_login(NotAuthenticated("the issuer gave no token for this code; begin again"))
                return
            self._tokens.check_id(token, self._client.client_id, begun.nonce, checked)

        def checked(found: Principal | NotAuthenticated) -> None:
            if isinstance(found, NotAuthenticated):
                self._logins.fail(host, WHO)
            on_login(found)

        self._waiting += 1
        self._aside(lambda: got.append(self._client.exchange(form)), done)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
