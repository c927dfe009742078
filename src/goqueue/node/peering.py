"""The other nodes of the cluster: the way to them, and the listener for them. Who answers which of their requests is
added to the table of the listener by the parts of the node.
"""

from ssl import SSLContext

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.forwarding import FORWARD, Forwarding
from goqueue.broker.forwarding.scraping import SpreadMetrics
from goqueue.broker.forwarding.spread import spread
from goqueue.cluster.controller import ClusterController
from goqueue.cluster.peers import Peers
from goqueue.doors.kafka.peer_door import PeerDoor
from goqueue.model.listener import Api, ClientAuth, Listener, Protocol
from goqueue.model.node_names import NODE_RULES, node_dns_name
from goqueue.model.placements import NodeInfo
from goqueue.node.certificates import Certificates
from goqueue.node.settings import Settings
from goqueue.node.values import Address
from goqueue.ports.dice import Dice
from goqueue.ports.listening import Listening
from goqueue.ports.network import Network
from goqueue.ports.tls import ServerTls, TlsFiles, client_context
from goqueue.ports.tls_network import TlsDialing, TlsListening
from goqueue.runtime.clock import Clock

PEER = Listener(Api.KAFKA, "peer", Protocol.SSL, True, ClientAuth.REQUIRE)


def peer_files(settings: Settings) -> TlsFiles | None:
    cert, key, ca = settings.peer_cert_file, settings.peer_key_file, settings.peer_ca_file
    return None if cert is None or key is None or ca is None else TlsFiles(cert, key, None, ca)


class PeerDialing:
    """The other node must show a certificate with its name, and gets that of this one. New files count from the next
    connection on."""

    def __init__(self, tls: ServerTls) -> None:
        self._tls = tls
        self._loads = 0
        self._context: SSLContext | None = None

    def to(self, node_id: int) -> Network:
        if self._context is None or self._loads != self._tls.loads:
            files = self._tls.files
            self._loads, self._context = self._tls.loads, client_context(files.ca, files.cert, files.key)
        return TlsDialing(self._context, node_dns_name(node_id))


class Peering:
    """`open` before the node serves, `close` when nothing is asked of others any more."""

    def __init__(
        self,
        settings: Settings,
        controller: ClusterController,
        network: Network,
        clock: Clock,
        dice: Dice,
        certificates: Certificates,
    ) -> None:
        """BadCertificate: what the settings name for TLS between nodes cannot be used."""

        def secret() -> bytes:
            return controller.secret

        def find(wanted: int) -> NodeInfo | None:
            return controller.mirror.nodes.get(wanted)

        self.controller = controller
        files, node_id = peer_files(settings), settings.node_id
        self.peers = Peers(node_id, secret, find, network, clock, dice)
        listening = Listening(PEER, network)
        if files is not None:
            tls = certificates.add("peer", ServerTls(files, ClientAuth.REQUIRE))
            listening = Listening(PEER, TlsListening(tls.front, certificates.handshakes), tls, NODE_RULES, "Node")
            self.peers.network_to = PeerDialing(tls).to
        self.door = PeerDoor(node_id, secret, clock, dice, listening)

    def spread(self, broker: Broker, *, shares_ports: bool) -> Forwarding:
        """What this node cannot do its broker asks of others, and does for them. `shares_ports`: see `NodePorts`."""
        forwarding = spread(broker, self.peers)
        if shares_ports:
            SpreadMetrics(forwarding, broker.metrics)
        self.door.handlers[FORWARD] = forwarding.handle
        return forwarding

    async def open(self, address: Address) -> Address:
        """Returns where it listens; port 0 picks a free one."""
        return Address(*await self.door.open(*address))

    def stop_reading(self) -> None:
        self.door.stop_reading()

    async def close(self) -> None:
        await self.peers.close()
        await self.door.close()
