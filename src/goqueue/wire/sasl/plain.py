"""PLAIN (RFC 4616): a name and a password in one message."""

from typing import NamedTuple

from goqueue.wire.sasl.failure import SaslFailed

PLAIN = "PLAIN"
MESSAGE_BYTES_MAX = 4096


class Plain(NamedTuple):
    name: str
    password: str

    def encode(self) -> bytes:
        return f"\0{self.name}\0{self.password}".encode()


def read_plain(data: bytes) -> Plain:
    try:
        authorization, name, password = data.decode().split("\0")
    except (UnicodeDecodeError, ValueError):
        raise SaslFailed("this is no message of PLAIN") from None
    if not name or not password or len(data) > MESSAGE_BYTES_MAX:
        raise SaslFailed("this is no message of PLAIN")
    if authorization not in ("", name):  # aiokafka says its own name again
        raise SaslFailed("nobody may act for another user")
    return Plain(name, password)
