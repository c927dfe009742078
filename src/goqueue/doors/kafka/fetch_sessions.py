"""Fetch sessions of clients (KIP-227): which partitions a consumer reads, said once and then only changed.

There are so many for all. Who comes when there is no room reads without one, and names all partitions each time; as in
Kafka, room is made by sessions that were not used for two minutes, then by smaller ones that are older than that. A
session belongs to its connection and ends with it: nobody else can use it, and its client begins anew.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from goqueue.broker.reading.fetch_session import FetchSession
from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.surroundings import Clock
from goqueue.model.codes import Code
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import DEFAULT_TENANT, SHARE, Tenant, TenantLimit
from goqueue.wire.kafka.notation import INT32_MAX

NO_SESSION = 0
FULL_EPOCH, FINAL_EPOCH = 0, -1
SESSIONS_MAX = 1000
PARTITIONS_MAX = 250_000
"""Of all sessions together, some 500 bytes each. One session, and one tenant, may have a quarter of them."""
OF_CONNECTION_MAX = 4
STALE_MS = 120_000


class KeptSession:
    __slots__ = (
        "connection",
        "created_ms",
        "epoch",
        "number",
        "partitions",
        "reading",
        "tenant",
        "used_ms",
        "uses_ids",
    )

    def __init__(self, connection: Connection, number: int, reading: FetchSession, *, uses_ids: bool) -> None:
        self.connection = connection
        self.number = number
        self.reading = reading
        self.uses_ids = uses_ids
        """Topics are named by their ids."""
        self.tenant = DEFAULT_TENANT if connection.access is None else connection.access.tenancy.tenant
        self.epoch = FULL_EPOCH + 1
        """What the next request must say."""
        self.partitions = 0
        """As they were counted last."""
        self.created_ms = self.used_ms = 0


class FetchSessions:
    """Invariant: `_by_number` is in the order in which they were used."""

    def __init__(
        self,
        clock: Clock,
        tenants: Callable[[], Mapping[str, Tenant]] = dict,
        sessions_max: int = SESSIONS_MAX,
        partitions_max: int = PARTITIONS_MAX,
    ) -> None:
        self._clock = clock
        self._tenants = tenants
        self._sessions_max = sessions_max
        self._partitions_max = partitions_max
        self._by_number: dict[int, KeptSession] = {}
        self._by_connection: dict[Connection, dict[KeptSession, None]] = {}
        self._sessions_of: Counter[str] = Counter()
        self._partitions_of: Counter[str] = Counter()
        """By tenant."""
        self._number = 0
        self.partitions = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._by_number)

    def open(self, connection: Connection, reading: FetchSession, *, uses_ids: bool) -> KeptSession | None:
        """None: there is no room. It names what it reads already."""
        own = self._by_connection.get(connection, {})
        if len(own) >= OF_CONNECTION_MAX:
            self._evict(next(iter(own)))
        kept = KeptSession(connection, self._next_number(), reading, uses_ids=uses_ids)
        kept.created_ms = self._now_ms()
        if not self._make_room(kept):
            return None
        self._by_number[kept.number] = kept
        self._by_connection.setdefault(connection, {})[kept] = None
        self._sessions_of[kept.tenant] += 1
        self.used(kept)
        return kept

    def find(self, connection: Connection, number: int, epoch: int, *, uses_ids: bool) -> KeptSession:
        """The session that a request goes on with. Refused: it has to begin anew."""
        kept = self._by_number.get(number)
        if kept is None or kept.connection is not connection:
            raise Refused(Code.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {number}")
        if epoch != kept.epoch:
            raise Refused(Code.INVALID_FETCH_SESSION_EPOCH, f"epoch {epoch} is not {kept.epoch}")
        if uses_ids is not kept.uses_ids:
            raise Refused(Code.FETCH_SESSION_TOPIC_ID_ERROR, "a session names topics either by name or by id")
        return kept

    def went_on(self, kept: KeptSession) -> None:
        """A request has changed what it reads. Refused: that is more than there is room for."""
        self.used(kept)
        is_large = kept.partitions > self._partitions_max // SHARE or self.partitions > self._partitions_max
        if is_large or not self._has_share(kept.tenant, 0, 0):
            self._evict(kept)
            raise Refused(Code.FETCH_SESSION_ID_NOT_FOUND, "there is no room for so many partitions")
        kept.epoch = kept.epoch + 1 if kept.epoch < INT32_MAX else FULL_EPOCH + 1

    def used(self, kept: KeptSession) -> None:
        del self._by_number[kept.number]
        self._by_number[kept.number] = kept
        kept.used_ms = self._now_ms()
        self._count(kept, len(kept.reading.entries))

    def close(self, connection: Connection, number: int) -> None:
        """If there is such a session. A fetch that waits is answered with what there is."""
        kept = self._by_number.get(number)
        if kept is not None and kept.connection is connection:
            self._end(kept)

    def lost(self, connection: Connection) -> None:
        for kept in list(self._by_connection.get(connection, ())):
            self._remove(kept)
            kept.reading.close()

    # -- room

    def _make_room(self, wanted: KeptSession) -> bool:
        size = len(wanted.reading.entries)
        if size > self._partitions_max // SHARE:
            return False
        while True:
            is_share_full = not self._has_share(wanted.tenant, 1, size)
            if not is_share_full and len(self) < self._sessions_max and self.partitions + size <= self._partitions_max:
                return True
            others: Iterable[KeptSession] = self._by_number.values()
            if is_share_full:  # a tenant makes room for itself
                others = (one for one in others if one.tenant == wanted.tenant)
            victim = self._victim(others, size, wanted.created_ms)
            if victim is None:
                return False
            self._evict(victim)

    def _has_share(self, tenant: str, sessions: int, partitions: int) -> bool:
        """Whether it may have so many more."""
        known = self._tenants().get(tenant)
        if known is None:
            return True
        most = known.most(TenantLimit.FETCH_SESSIONS, self._sessions_max)
        partitions_most = self._partitions_max // SHARE
        has_partitions = self._partitions_of[tenant] + partitions <= partitions_most
        return has_partitions and self._sessions_of[tenant] + sessions <= most

    def _victim(self, others: Iterable[KeptSession], size: int, now_ms: int) -> KeptSession | None:
        rest: Iterator[KeptSession] = iter(others)
        first = next(rest, None)
        if first is None or now_ms - first.used_ms > STALE_MS:
            return first
        old = [one for one in (first, *rest) if now_ms - one.created_ms > STALE_MS and one.partitions < size]
        return min(old, key=lambda one: one.partitions, default=None)

    def _evict(self, kept: KeptSession) -> None:
        self.evictions += 1
        self._end(kept)

    def _end(self, kept: KeptSession) -> None:
        self._remove(kept)
        kept.reading.hurry()
        kept.reading.close()

    def _remove(self, kept: KeptSession) -> None:
        del self._by_number[kept.number]
        own = self._by_connection[kept.connection]
        del own[kept]
        if not own:
            del self._by_connection[kept.connection]
        self._sessions_of[kept.tenant] -= 1
        self._count(kept, 0)

    def _count(self, kept: KeptSession, partitions: int) -> None:
        more = partitions - kept.partitions
        kept.partitions = partitions
        self.partitions += more
        self._partitions_of[kept.tenant] += more

    def _next_number(self) -> int:
        """Those that went round the number space are gone long since, and one that is not is passed over."""
        while True:
            self._number = self._number % INT32_MAX + 1
            if self._number not in self._by_number:
                return self._number

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_s() * 1000)
