"""What a client has shown, before anybody has looked whether it is right."""

import base64
import binascii
from typing import NamedTuple, Self

from goqueue.broker.accounts.logins import NotAuthenticated
from goqueue.model.listener import IN_PROCESS, Connected

SIGNED = "aws4-hmac-sha256"


class Credentials(NamedTuple):
    api: str
    """Through which it came."""
    peer: str = ""
    connected: Connected = IN_PROCESS
    """The connection: its listener, and who its certificate says that it is."""
    key: str = ""
    """An API key."""
    principal: str | None = None
    """Who asks, by the word of another node of this cluster: it has proved itself. None: none has said anything."""
    basic: str = ""
    """A name and a password as Basic has them. A key goes first."""
    signature: str = ""
    """As AWS has them: whoever knows the whole request checks it."""

    @classmethod
    def of_headers(cls, api: str, connected: Connected, authorization: str, api_key: str) -> Self:
        """Of a request that shows them itself: `Authorization` (Bearer, Basic or a signature of AWS; other schemes say
        nothing here) and `X-API-Key`."""
        scheme, _, rest = authorization.strip().partition(" ")
        scheme, rest = scheme.lower(), rest.strip()
        key = (rest if scheme == "bearer" else "") or api_key.strip()
        signature = authorization if scheme == SIGNED and not key else ""
        return cls(api, connected.peer, connected, key, None, rest if scheme == "basic" else "", signature)

    def name_and_password(self) -> tuple[str, str]:
        """What `basic` says."""
        try:
            name, colon, password = base64.b64decode(self.basic, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            name, colon, password = "", "", ""
        if not colon or not name:
            raise NotAuthenticated("Authorization is not as Basic has it")
        return name, password
