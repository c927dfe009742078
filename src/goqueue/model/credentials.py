"""What a client has shown, before anybody has looked whether it is right, and who it is afterwards."""

import base64
import binascii
from collections.abc import Callable
from typing import NamedTuple, Self

from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.listener import IN_PROCESS, Connected
from goqueue.model.refusal import Refused
from goqueue.model.secret import Secret
from goqueue.model.sessions import Session

NOTHING = Secret("")
SIGNED = "aws4-hmac-sha256"


class AccessTooOld(GoQueueError):
    """This node has not heard of changes of users, keys and rules for so long that it lets nobody in."""

    retriable = True

    def __init__(self, age_s: float) -> None:
        super().__init__(
            f"this node has not reached the metadata store for {age_s:.0f} s: it does not know who may come in; try "
            "another node, or later"
        )


class NotAuthenticated(Refused):
    """Who asks has not shown who they are, or showed what is wrong."""

    def __init__(self, message: str = "credentials are needed") -> None:
        super().__init__(Code.SASL_AUTHENTICATION_FAILED, message)


class SessionOver(NotAuthenticated):
    def __init__(self) -> None:
        super().__init__("the session is over: log in again")


class WrongSignature(NotAuthenticated):
    """There is such a key, and this was not signed with its secret."""


class Principal(NamedTuple):
    """Somebody who has shown who they are."""

    name: str
    """With its kind: `User:alice`."""
    expires_ms: int = 0
    """When what was shown ends; 0: it does not."""
    roles: tuple[str, ...] = ()
    """That a token gives, beside those of an account."""


OnLogin = Callable[[Principal | NotAuthenticated], None]


class Credentials(NamedTuple):
    api: str
    """Through which it came."""
    peer: str = ""
    connected: Connected = IN_PROCESS
    """The connection: its listener, and who its certificate says that it is."""
    key: Secret[str] = NOTHING
    """An API key, or a token."""
    principal: str | None = None
    """Who asks, by the word of another node of this cluster: it has proved itself. None: none has said anything."""
    basic: Secret[str] = NOTHING
    """A name and a password as Basic has them. A key goes first."""
    signature: str = ""
    """As AWS has them: whoever knows the whole request checks it."""
    tenant: str = ""
    """That it says it acts for; empty: its own."""
    session: Session | None = None
    """Of a browser: it was sealed by a node of this cluster, and may be over."""

    @classmethod
    def of_headers(cls, api: str, connected: Connected, authorization: str, api_key: str, tenant: str = "") -> Self:
        """Of a request that shows them itself: `Authorization` (Bearer, Basic or a signature of AWS; other schemes say
        nothing here) and `X-API-Key`."""
        scheme, _, rest = authorization.strip().partition(" ")
        scheme, rest = scheme.lower(), rest.strip()
        key = (rest if scheme == "bearer" else "") or api_key.strip()
        signature = authorization if scheme == SIGNED and not key else ""
        basic = rest if scheme == "basic" else ""
        return cls(api, connected.peer, connected, _hidden(key), None, _hidden(basic), signature, tenant)

    def name_and_password(self) -> tuple[str, str]:
        """What `basic` says."""
        try:
            name, colon, password = base64.b64decode(self.basic.reveal(), validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            name, colon, password = "", "", ""
        if not colon or not name:
            raise NotAuthenticated("Authorization is not as Basic has it")
        return name, password


def _hidden(text: str) -> Secret[str]:
    return Secret(text) if text else NOTHING
