"""Connections and the places that tenants have for them."""

from goqueue.broker.gate import Gate, host_of
from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.surroundings import Clock
from goqueue.model.quotas import QuotaExceeded

REFUSED_MS_MAX = 1000
"""How long a connection that is not wanted is left alone before it is closed."""


class Seating:
    def __init__(self, gate: Gate) -> None:
        self._enter = gate.enter
        self._quotas = gate.quotas
        self._seats: dict[Connection, tuple[str, object]] = {}
        """The tenant of each, and how it leaves."""

    def arrive(self, connection: Connection, clock: Clock) -> None:
        """One too many from an address is closed, but not at once: its client would dial again at once."""
        delay_ms = self._quotas.connect(host_of(connection.peer))
        if delay_ms:
            connection.hold()  # for good: a mute would be over when it is closed, and what it has sent be carried out
            why = "too many connections from this address in a second"
            clock.call_after(min(delay_ms, REFUSED_MS_MAX), lambda: connection.close(why))

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
