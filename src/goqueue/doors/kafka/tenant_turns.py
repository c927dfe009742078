"""Connections take the turns of their tenants: one that is read is charged for the time, and of a tenant that takes
more than its part, one connection is read in a turn of the event loop.
"""

from functools import partial

from goqueue.broker.gate import Gate
from goqueue.doors.kafka.connection import Connection


class TenantTurns:
    def __init__(self, gate: Gate) -> None:
        self._turns = gate.turns
        self._read_s = 0.0
        self._let: Connection | None = None

    def read_began(self) -> None:
        self._read_s = self._turns.now_s()

    def read_ended(self, connection: Connection) -> None:
        """If its tenant has had more than its part, it is read again when the others have been."""
        if not self._read_s or connection.access is None:
            return  # the first tenant was made by what was read
        now_s, tenant = self._turns.now_s(), connection.access.tenancy.tenant
        spent_s, self._read_s = now_s - self._read_s, 0.0
        self._turns.spend(tenant, spent_s, now_s)
        if connection is self._let or connection.is_resting or self._turns.may_begin(tenant, now_s):
            return
        connection.hold()
        self._turns.line_up(tenant, connection, partial(self._go_on, connection))

    def lost(self, connection: Connection) -> None:
        if connection.access is not None:
            self._turns.leave(connection.access.tenancy.tenant, connection)

    def _go_on(self, connection: Connection) -> None:
        self._let = connection
        try:
            connection.go_on()  # what it has of a frame already is no turn of its own
        finally:
            self._let = None
