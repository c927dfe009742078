"""Connections and the places that tenants have for them."""

from goqueue.broker.gate import Gate
from goqueue.doors.kafka.connection import Connection
from goqueue.model.quotas import QuotaExceeded


class Seating:
    def __init__(self, gate: Gate) -> None:
        self._enter = gate.enter
        self._seats: dict[Connection, tuple[str, object]] = {}
        """The tenant of each, and how it leaves."""

    def take(self, connection: Connection, tenant: str) -> None:
        """One too many is closed at once: in Kafka's protocol nobody is told anything between two requests."""
        if self._seats.get(connection, ("",))[0] == tenant:
            return
        self.leave(connection)
        try:
            self._seats[connection] = tenant, self._enter(tenant)
        except QuotaExceeded as error:
            connection.close(str(error))

    def leave(self, connection: Connection) -> None:
        _, leave = self._seats.pop(connection, ("", None))
        if callable(leave):
            leave()
