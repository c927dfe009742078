"""The other nodes of the cluster: the way to them, and the listener for them. Who answers which of their requests is
added to the table of the listener by the parts of the node.
"""

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.forwarding import FORWARD, Forwarding
from goqueue.broker.forwarding.spread import spread
from goqueue.cluster.controller import ClusterController
from goqueue.cluster.peers import Peers
from goqueue.doors.kafka.peer_door import PeerDoor
from goqueue.model.placements import NodeInfo
from goqueue.node.values import Address
from goqueue.ports.dice import Dice
from goqueue.ports.network import Network
from goqueue.runtime.clock import Clock


class Peering:
    """`open` before the node serves, `close` when nothing is asked of others any more."""

    def __init__(self, node_id: int, controller: ClusterController, network: Network, clock: Clock, dice: Dice) -> None:
        def secret() -> bytes:
            return controller.secret

        def find(wanted: int) -> NodeInfo | None:
            return controller.mirror.nodes.get(wanted)

        self.controller = controller
        self.peers = Peers(node_id, secret, find, network, clock, dice)
        self.door = PeerDoor(node_id, secret, clock, dice, network)

    def spread(self, broker: Broker) -> Forwarding:
        """What this node cannot do its broker asks of others, and does for them."""
        forwarding = spread(broker, self.peers)
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
