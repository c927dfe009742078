"""Tenants take turns, not connections: one with many that are always busy would have as many turns as connections, and
all others would wait for each of them. So of a tenant that takes more than its part of the event loop's time, one
connection is read in a turn of the loop, and the others wait for theirs. Nothing is lost by it: a loop that has nothing
else to do begins its next turn at once.
"""

from collections import defaultdict, deque

from goqueue.broker.gate import Gate
from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.surroundings import Clock

WINDOW_S = 0.1
PARTS = 4
"""Among so many tenants the time is shared out at least, or among as many as are there."""


class TenantTurns:
    def __init__(self, clock: Clock, gate: Gate) -> None:
        self._clock = clock
        self.are_taken = bool(gate.tenants())
        """There are others than the default one."""
        self._read_s = 0.0
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._before: defaultdict[str, float] = defaultdict(float)
        """Seconds of each tenant, in this window and in the last one."""
        self._began_s = clock.monotonic_s()
        self._waiting: dict[str, deque[Connection]] = {}
        """By tenant: connections that have had their turn. Of each there is a call to `_turn` under way."""
        self._let: Connection | None = None

    def read_began(self) -> None:
        self._read_s = self._clock.monotonic_s()

    def read_ended(self, connection: Connection) -> None:
        """If its tenant has had more than its part, it is read again when the others have been."""
        if not self._read_s or connection.access is None:
            return  # the first tenant was made by what was read
        now_s, tenant = self._clock.monotonic_s(), connection.access.tenancy.tenant
        spent_s, self._read_s = now_s - self._read_s, 0.0
        if now_s - self._began_s >= WINDOW_S:
            is_next = now_s - self._began_s < 2 * WINDOW_S
            self._before = self._spent if is_next else defaultdict(float)
            self._spent = defaultdict(float)
            self._began_s = now_s
        self._spent[tenant] += spent_s
        if connection is self._let or connection.is_resting or not self._is_heavy(tenant, now_s):
            return
        connection.hold()
        if tenant not in self._waiting:
            self._waiting[tenant] = deque()
            self._clock.call_soon(lambda: self._turn(tenant))
        self._waiting[tenant].append(connection)

    def _is_heavy(self, tenant: str, now_s: float) -> bool:
        parts = max(PARTS, len(self._spent.keys() | self._before.keys()))
        used_s = self._spent[tenant] + self._before.get(tenant, 0.0)
        return used_s * parts > WINDOW_S + (now_s - self._began_s)

    def _turn(self, tenant: str) -> None:
        """A turn of the loop later: the next one may be read."""
        waiting = self._waiting[tenant]
        self._let = waiting.popleft()
        try:
            self._let.go_on()  # what it has of a frame already is no turn of its own
        finally:
            self._let = None
            if waiting:
                self._clock.call_soon(lambda: self._turn(tenant))
            else:
                del self._waiting[tenant]
