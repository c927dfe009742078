"""The gate: the APIs hold it instead of the broker. Whoever comes in through it gets an access, and with that a view of
the broker for each operation.
"""

from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.view.scope import Scope
from goqueue.broker.view.view import View
from goqueue.model.access import AllRights, Permission, Rights
from goqueue.model.listener import IN_PROCESS, Connected
from goqueue.model.placements import HostPort
from goqueue.ports.dice import Dice
from goqueue.ports.forwarding import Forwarding
from goqueue.runtime.clock import Clock
from goqueue.telemetry.meters import Meters


class Credentials(NamedTuple):
    """What a client has shown. Nobody is asked for anything yet."""

    api: str
    """Through which it came."""
    peer: str = ""
    connected: Connected = IN_PROCESS
    """The connection: its listener, and who its certificate says that it is."""


class Access:
    """What one principal may do: one for each connection, session or key. There is one principal as yet, which may do
    everything, and one tenant.
    """

    def __init__(self, broker: Broker, rights: Rights) -> None:
        self._broker = broker
        self._rights = rights
        self._views: dict[Permission, View] = {}
        """Bounded: permissions stand in the tables of operations."""

    def view(self, permission: Permission) -> View:
        """The broker for one operation. Raises where that needs a right on the cluster and there is none."""
        found = self._views.get(permission)
        if found is None:
            found = self._views[permission] = View(self._broker, Scope(permission, self._rights))
        return found


class Gate:
    def __init__(self, broker: Broker, rights: Rights | None = None, forwarding: Forwarding | None = None) -> None:
        self.forwarding = forwarding
        """The way to other nodes, in a cluster."""
        self._topics = broker.topics
        self._trusted = Access(broker, rights or AllRights())
        self.clock: Clock = broker.clock
        self.dice: Dice = broker.dice
        self.meters: Meters = broker.metrics.meters

    def grpc_address(self, node_id: int) -> HostPort | None:
        """Where a node offers gRPC; None: it is not there, or does not."""
        node = self._topics.image.nodes.get(node_id)
        return None if node is None else node.grpc

    def partitions(self, topic: str) -> int:
        """0: there is no such topic."""
        found = self._topics.image.topics.get(topic)
        return 0 if found is None else found.partitions

    def admit(self, credentials: Credentials) -> Access:  # noqa: ARG002  nobody is asked for any yet
        return self._trusted
