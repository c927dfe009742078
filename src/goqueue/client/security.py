"""How a client shows who it is, the same for Kafka and HTTP: an API key, or a user with a password; over TLS or not."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from goqueue.client.errors import InvalidArgument
from goqueue.model.accounts import parse_key

if TYPE_CHECKING:
    import ssl

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True)
class Security:
    """`Security(api_key="gqk_...")`, or `Security(user="alice", password="...")`; secrets are not shown."""

    api_key: str | None = field(default=None, repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    mechanism: str = "SCRAM-SHA-256"
    """Of a user: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. A key is always PLAIN."""
    tls: bool = False
    """Whether the Kafka port speaks TLS; over HTTP the address says https."""
    ca_file: str | Path | None = None
    """Whom to believe, instead of the authorities of this machine (PEM)."""
    cert_file: str | Path | None = None
    key_file: str | Path | None = None

    def __post_init__(self) -> None:
        if self.api_key is not None and (self.user is not None or self.password is not None):
            raise InvalidArgument("an API key or a user, not both")
        if self.api_key is not None and parse_key(self.api_key) is None:
            raise InvalidArgument("this is no API key: one begins with gqk_")
        if (self.user is None) != (self.password is None):
            raise InvalidArgument("a user needs a password, and a password a user")
        if self.mechanism not in MECHANISMS:
            raise InvalidArgument(f"mechanism is one of {', '.join(MECHANISMS)}; not {self.mechanism!r}")

    @property
    def has_credentials(self) -> bool:
        return self.api_key is not None or self.user is not None

    def ssl_context(self) -> "ssl.SSLContext":
        import ssl  # not before it is needed: it takes its time

        context = ssl.create_default_context(cafile=self.ca_file)
        if self.cert_file is not None:
            context.load_cert_chain(self.cert_file, self.key_file)
        return context
