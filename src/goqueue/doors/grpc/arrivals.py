"""Who calls through a gRPC listener: grpc does the handshake, and tells the certificate with each call."""

from collections.abc import Callable
from typing import Any

import grpc
from grpc import aio

from goqueue.broker.gate import host_of
from goqueue.doors.grpc.errors import UNAUTHENTICATED, GrpcError
from goqueue.model.listener import IN_PROCESS, ClientAuth, Connected
from goqueue.model.quotas import CONNECTIONS, QuotaExceeded
from goqueue.ports.listening import Listening, NotAdmitted
from goqueue.ports.tls import BadCertificate, ServerTls

KNOWN_MAX = 1000
PEERS_MAX = 10_000
CERTIFICATE = "x509_pem_cert"


class Arrivals:
    """Of one listener."""

    def __init__(self, listening: Listening) -> None:
        self._listening = listening
        self._principals: dict[bytes, str | None] = {}
        """By certificate: to parse one takes longer than many a call."""
        self._peers: dict[str, None] = {}
        """Connections that have called before, the oldest first."""

    def bind(self, server: aio.Server, address: str) -> int:
        """RuntimeError: the address cannot be had."""
        tls = self._listening.tls
        if tls is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, _credentials(tls))

    def arrive(self, peer: str, connect: Callable[[str], int]) -> None:
        """`peer`: host:port of a call. grpc tells of no connection, so one is known by its first call. `connect`: how
        many milliseconds an address has to wait. QuotaExceeded: there were too many from this one."""
        if peer in self._peers:
            return
        delay_ms = connect(host_of(peer))
        if delay_ms:
            words = f"the quota {CONNECTIONS} of this address is used up; try again in {delay_ms} ms"
            raise QuotaExceeded(CONNECTIONS, 0, delay_ms, words)
        if len(self._peers) >= PEERS_MAX:
            del self._peers[next(iter(self._peers))]
        self._peers[peer] = None

    def connected(self, context: Any) -> Connected:
        """`context`: of a call. GrpcError: the certificate is good, and its owner has no name."""
        if not self._listening.is_known:
            return IN_PROCESS
        peer: str = context.peer()
        if self._listening.tls is None:
            return Connected(self._listening.listener, peer)
        shown = context.auth_context().get(CERTIFICATE)
        if not shown:
            return Connected(self._listening.listener, peer)
        pem: bytes = shown[0]
        if pem not in self._principals:
            try:
                found = self._listening.connected_by_pem(peer, pem).principal
            except (NotAdmitted, BadCertificate) as error:
                raise GrpcError(str(error), UNAUTHENTICATED) from None
            if len(self._principals) >= KNOWN_MAX:
                self._principals.clear()
            self._principals[pem] = found
        return Connected(self._listening.listener, peer, self._principals[pem])


def _credentials(tls: ServerTls) -> grpc.ServerCredentials:
    """grpc asks before each handshake, in a thread of its own, whether there is another certificate."""
    told = tls.loads

    def configuration() -> grpc.ServerCertificateConfiguration:
        key, cert, ca = tls.pem()
        return grpc.ssl_server_certificate_configuration([(key, cert)], ca)

    def changed() -> grpc.ServerCertificateConfiguration | None:
        nonlocal told
        if tls.loads == told:
            return None
        found = configuration()
        told = tls.loads
        return found

    is_required = tls.client_auth is ClientAuth.REQUIRE
    return grpc.dynamic_ssl_server_credentials(configuration(), changed, is_required)  # type: ignore[arg-type]  # it may
