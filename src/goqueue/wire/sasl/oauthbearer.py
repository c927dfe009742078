"""OAUTHBEARER (RFC 7628): a token in one message."""

from typing import NamedTuple

from goqueue.model.secret import hides
from goqueue.wire.sasl.acting import authorization_of, tenant_asked_for
from goqueue.wire.sasl.failure import SaslFailed

OAUTHBEARER = "OAUTHBEARER"
MESSAGE_BYTES_MAX = 32 * 1024
SEPARATOR = "\x01"


@hides("token")
class Bearer(NamedTuple):
    token: str
    tenant: str = ""
    """That it acts for; empty: its own."""

    def encode(self) -> bytes:
        acts_for = authorization_of(self.tenant)
        header = f"n,a={acts_for}," if acts_for else "n,,"
        return f"{header}{SEPARATOR}auth=Bearer {self.token}{SEPARATOR}{SEPARATOR}".encode()


def read_bearer(data: bytes) -> Bearer:
    """What else clients say beside it (extensions) is of no use here."""
    try:
        header, *pairs = data.decode("ascii").split(SEPARATOR)
    except UnicodeDecodeError:
        raise SaslFailed("this is no message of OAUTHBEARER") from None
    if len(data) > MESSAGE_BYTES_MAX or len(pairs) < 3 or pairs[-2:] != ["", ""]:
        raise SaslFailed("this is no message of OAUTHBEARER")
    flag, _, authorization = header.partition(",")
    if flag not in ("n", "y") or not authorization.endswith(","):
        raise SaslFailed("this is no message of OAUTHBEARER")
    tenant = tenant_asked_for(authorization[:-1].removeprefix("a="), "")
    said = [value for name, _, value in (each.partition("=") for each in pairs[:-2]) if name == "auth"]
    scheme, _, token = said[0].partition(" ") if len(said) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token:
        raise SaslFailed("this is no message of OAUTHBEARER")
    return Bearer(token.strip(), tenant)
