"""PLAIN (RFC 4616): a name and a password in one message."""

from typing import NamedTuple

from goqueue.model.secret import hides
from goqueue.wire.sasl.acting import authorization_of, tenant_asked_for
from goqueue.wire.sasl.failure import SaslFailed

PLAIN = "PLAIN"
MESSAGE_BYTES_MAX = 4096


@hides("password")
class Plain(NamedTuple):
    name: str
    password: str
    tenant: str = ""
    """That it acts for; empty: its own."""

    def encode(self) -> bytes:
        return f"{authorization_of(self.tenant)}\0{self.name}\0{self.password}".encode()


def read_plain(data: bytes) -> Plain:
    try:
        authorization, name, password = data.decode().split("\0")
    except (UnicodeDecodeError, ValueError):
        raise SaslFailed("this is no message of PLAIN") from None
    if not name or not password or len(data) > MESSAGE_BYTES_MAX:
        raise SaslFailed("this is no message of PLAIN")
    return Plain(name, password, tenant_asked_for(authorization, name))
