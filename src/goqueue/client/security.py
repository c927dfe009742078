"""How a client shows who it is, over Kafka, HTTP and gRPC: an API key, a user with a password, or a token of an
identity provider; with TLS or not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from goqueue.client.errors import InvalidArgument
from goqueue.model.accounts import parse_key
from goqueue.model.secret import Secret
from goqueue.model.tenancy import is_tenant_id

if TYPE_CHECKING:
    import ssl

OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def revealed(given: str | Secret[str]) -> str:
    return given if isinstance(given, str) else given.reveal()


@dataclass(frozen=True)
class Security:
    """`Security(api_key="gqk_...")`, `Security(user="alice", password="...")` or `Security(token=get_token)`. Secrets
    are kept as `Secret`: nothing shows them but `reveal`."""

    api_key: str | Secret[str] | None = None
    user: str | None = None
    password: str | Secret[str] | None = None
    token: str | Secret[str] | Callable[[], str] | None = None
    """A JWT; or what gives one, asked for each connection and each request: tokens do not live long."""
    mechanism: str = "SCRAM-SHA-256"
    """Of a user: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. A key is always PLAIN."""
    tls: bool = False
    """Whether the Kafka or gRPC port speaks TLS; over HTTP the address says https."""
    ca_file: str | Path | None = None
    """Whom to believe, instead of the authorities of this machine (PEM)."""
    tenant: str | None = None
    """That an admin of the cluster acts for; everybody else belongs to one tenant and need not say which."""
    cert_file: str | Path | None = None
    key_file: str | Path | None = None
    key_password: str | Secret[str] | None = None
    """Of the key file, if it has one."""

    def __post_init__(self) -> None:
        for name in ("api_key", "password", "token", "key_password"):
            given = getattr(self, name)
            if isinstance(given, str):
                object.__setattr__(self, name, Secret(given))
        has_user = self.user is not None or self.password is not None
        if (self.api_key is not None) + has_user + (self.token is not None) > 1:
            raise InvalidArgument("an API key, a user or a token: one of them")
        if self.api_key is not None and parse_key(revealed(self.api_key)) is None:
            raise InvalidArgument("this is no API key: one begins with gqk_")
        if (self.user is None) != (self.password is None):
            raise InvalidArgument("a user needs a password, and a password a user")
        if (self.cert_file is None) != (self.key_file is None):
            raise InvalidArgument("a certificate needs its key, and a key its certificate: cert_file and key_file")
        if self.tenant is not None and not is_tenant_id(self.tenant):
            raise InvalidArgument(f"{self.tenant!r} is no id of a tenant: small letters, digits and dashes")
        if self.mechanism not in MECHANISMS:
            raise InvalidArgument(f"mechanism is one of {', '.join(MECHANISMS)}; not {self.mechanism!r}")

    @property
    def has_credentials(self) -> bool:
        return self.api_key is not None or self.user is not None or self.token is not None

    def token_text(self) -> str:
        """InvalidArgument: what should give a token gave none."""
        assert self.token is not None
        found = self.token() if callable(self.token) else revealed(self.token)
        if not found or not (found.isascii() and found.isprintable()):
            raise InvalidArgument("this is no token: one is text without spaces")
        return found

    @property
    def sasl(self) -> tuple[str, str, str]:
        """Mechanism, name and password, of one that has credentials."""
        if self.token is not None:
            return OAUTHBEARER, "", self.token_text()
        if self.api_key is not None:
            key = parse_key(revealed(self.api_key))
            assert key is not None
            return "PLAIN", key.key_id, key.secret.reveal()
        assert self.user is not None
        assert self.password is not None
        return self.mechanism, self.user, revealed(self.password)

    @property
    def authorization(self) -> str:
        """As HTTP and gRPC send it; empty: there is nothing to show."""
        if self.api_key is not None:
            return f"Bearer {revealed(self.api_key)}"
        if self.token is not None:
            return f"Bearer {self.token_text()}"
        if self.user is None:
            return ""
        assert self.password is not None
        from base64 import b64encode

        return "Basic " + b64encode(f"{self.user}:{revealed(self.password)}".encode()).decode()

    def ssl_context(self) -> "ssl.SSLContext":
        """InvalidArgument: a file cannot be used."""
        import ssl  # not before it is needed: it takes its time

        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.cert_file is not None:
                password = None if self.key_password is None else revealed(self.key_password)
                context.load_cert_chain(self.cert_file, self.key_file, password)
        except OSError as error:  # what is wrong with a certificate is one, too
            named = " and ".join(
                str(each) for each in (self.ca_file, self.cert_file, self.key_file) if each is not None
            )
            why = error.reason if isinstance(error, ssl.SSLError) and error.reason else error.strerror or str(error)
            raise InvalidArgument(f"TLS cannot be set up with {named}: {why}") from None
        return context
