"""How a door listens at one address, and what it learns there of whoever connects."""

import asyncio
import ssl
from typing import NamedTuple

from goqueue.model.certificate_names import CertificateNames, PrincipalRule, principal_of
from goqueue.model.errors import GoQueueError
from goqueue.model.listener import IN_PROCESS, Api, Connected, Listener
from goqueue.ports.network import LoopNetwork, Network
from goqueue.ports.tls import ServerTls, certificate_names, names_of_pem


class NotAdmitted(GoQueueError):
    """The certificate of a client is good, and does not say who that is."""


class Listening(NamedTuple):
    listener: Listener
    network: Network
    tls: ServerTls | None = None
    rules: tuple[PrincipalRule, ...] = ()
    kind: str = "User"
    """Of the principals that certificates name here."""
    is_known: bool = True
    """False: nobody has said what this listener is; whoever comes counts as if they called from inside."""

    def connected(self, transport: asyncio.BaseTransport) -> Connected:
        """NotAdmitted: it must not go on."""
        if not self.is_known:
            return IN_PROCESS
        address = transport.get_extra_info("peername")
        peer = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
        if self.tls is None:
            return Connected(self.listener, peer)
        shown = transport.get_extra_info("ssl_object")
        assert isinstance(shown, ssl.SSLObject)
        der = shown.getpeercert(binary_form=True)
        if der is None:
            return Connected(self.listener, peer)
        if shown.session_reused and self.tls.authorities_changed:
            raise NotAdmitted("the session is older than the authorities of clients: connect without resuming it")
        return Connected(self.listener, peer, self._principal(certificate_names(der)))

    def connected_by_pem(self, peer: str, pem: bytes) -> Connected:
        """Likewise, where the transport is not ours."""
        return Connected(self.listener, peer, self._principal(names_of_pem(pem)))

    def _principal(self, names: CertificateNames) -> str:
        found = principal_of(names, self.rules, self.kind)
        if found is None:
            raise NotAdmitted("no rule of tls_principal_rules gives the owner of this certificate a name")
        return found


def plain(api: Api, network: Network | None = None) -> Listening:
    """Without TLS, of a door that was not told more."""
    return Listening(Listener(api, "PLAINTEXT"), network or LoopNetwork(), is_known=False)
