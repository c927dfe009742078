"""Listeners: where clients connect, how they speak there, and what is known of a client before it has said a word.

Whoever admits clients is handed one `Connected` for each connection.
"""

from enum import StrEnum
from typing import NamedTuple

from goqueue.model.placements import HostPort


class Protocol(StrEnum):
    """Kafka's words. The other APIs have the first two: their credentials come with each request."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_tls(self) -> bool:
        return self in (Protocol.SSL, Protocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL)


class ClientAuth(StrEnum):
    """Whether a client is asked for a certificate. One that shows a wrong one is refused in any case."""

    NONE = "none"
    REQUEST = "request"
    REQUIRE = "require"


class Api(StrEnum):
    """What is spoken on a listener. HTTP has SQS and the schema registry, too; METRICS has metrics and health only."""

    KAFKA = "kafka"
    HTTP = "http"
    GRPC = "grpc"
    METRICS = "metrics"


class Listener(NamedTuple):
    api: Api
    name: str
    """One of its API; clients are told the addresses of the listener with the same name on every node."""
    protocol: Protocol = Protocol.PLAINTEXT
    requires_authentication: bool = False
    """A client that has not shown who it is may do nothing here. False: it is let in as it is."""
    client_auth: ClientAuth = ClientAuth.NONE
    advertised: HostPort | None = None
    """None: the address that is listened on."""


class Connected(NamedTuple):
    """A client that has connected."""

    listener: Listener
    peer: str = ""
    """Its address, as host:port."""
    principal: str | None = None
    """`User:<name>`, by the certificate that it has shown, which was verified, and the rules for names in it. None: it
    has shown none."""


IN_PROCESS = Connected(Listener(Api.KAFKA, "in-process"))
"""Of a broker in a test, or inside an application: nobody listens."""
