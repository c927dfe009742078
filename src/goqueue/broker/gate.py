"""The gate: the APIs hold it instead of the broker. Whoever comes in through it gets an access, and with that a view of
the broker for each operation.
"""

from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.view.scope import Scope
from goqueue.broker.view.view import View
from goqueue.model.access import AllRights, Permission, Rights
from goqueue.ports.dice import Dice
from goqueue.runtime.clock import Clock
from goqueue.telemetry.meters import Meters


class Credentials(NamedTuple):
    """What a client has shown. Nobody is asked for anything yet."""

    api: str
    """Through which it came."""
    peer: str = ""


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
    def __init__(self, broker: Broker, rights: Rights | None = None) -> None:
        self._trusted = Access(broker, rights or AllRights())
        self.clock: Clock = broker.clock
        self.dice: Dice = broker.dice
        self.meters: Meters = broker.metrics.meters

    def admit(self, credentials: Credentials) -> Access:  # noqa: ARG002  nobody is asked for any yet
        return self._trusted
