"""How a tenant comes and goes. One that is to go is `deleting` first, in one fact: from then on nobody of it comes in
and nothing of it can be made. What it had is taken away step by step, by the living node with the lowest number; a
step that is done twice does no harm, so whoever comes after a crash begins anew. Last the tenant is forgotten.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from goqueue.broker.remote.messages import Tally
from goqueue.broker.tenants.belongings import Belongings, Found, TenantStore
from goqueue.broker.tenants.group_counts import GroupCounts
from goqueue.broker.tenants.rooms import Rooms
from goqueue.broker.tenants.seats import Seats
from goqueue.broker.tenants.turns import Turns
from goqueue.broker.tenants.walk import Walk, walk
from goqueue.machines.account_result import AccountResult
from goqueue.machines.tenant_commands import ChangeTenant, CreateTenant, ForgetTenant
from goqueue.model.accounts import AccessImage
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import Tenant, TenantStatus, full
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.clock import Clock, Timer
from goqueue.runtime.coordinators import AllCoordinators
from goqueue.telemetry.logs import get_logger

events = get_logger("broker")

AGAIN_MS = 200
"""After which what is left of a tenant is looked for again, such as logs that are being removed."""
AGAIN_MS_MAX = 12_800
"""While a node does not answer, the pause doubles up to here: each look asks all shards, and tells that it failed."""


class Usage(NamedTuple):
    """What a tenant has."""

    topics: int
    partitions: int
    stored_bytes: int
    """In partitions, with what waits for its time: of each the copy of its leader."""
    groups: int
    connections: int
    users: int
    keys: int


class Others(Protocol):
    """The other nodes of a cluster, and what tenants have there."""

    def ask(
        self, tenants: Iterable[str], on_tallies: Callable[[Mapping[int, Tally]], None], *, with_groups: bool = False
    ) -> None: ...

    def stored_bytes(self, tenant_id: str) -> int:
        """As they said last."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Tenants:
    def __init__(
        self,
        store: TenantStore,
        coordinators: AllCoordinators,
        clock: Clock,
        is_mine: Callable[[], bool],
        stored_bytes: Callable[[str], int],
        group_counts: GroupCounts,
    ) -> None:
        """`is_mine`: whether this node is the one that does what is not urgent. `stored_bytes`: of a topic, where this
        node leads it."""
        self._stored_bytes = stored_bytes
        self._group_counts = group_counts
        self.rooms = Rooms(self.stored_bytes, clock.monotonic_s)
        self.seats = Seats()
        self.turns = Turns(clock)
        self.others: Others | None = None
        """In a cluster: what tenants have on other nodes."""
        self._store = store
        self._belongings = Belongings(store, coordinators)
        self._clock = clock
        self._is_mine = is_mine
        self._seen: AccessImage | None = None
        self._going: dict[str, None] = {}
        """Tenants that are being taken apart right now."""
        self._failures = 0
        """In a row."""
        self._timer: Timer | None = None
        self._is_stopped = False
        store.on_change.append(self._changed)

    def all(self) -> Mapping[str, Tenant]:
        """By id; all but the default one."""
        return self._store.access.tenants

    def create(self, tenant: Tenant, on_reply: OnReply[None]) -> None:
        """Refused while the default tenant has a name that would be the new tenant's."""
        walk(self._create(tenant), on_reply)

    def _create(self, tenant: Tenant) -> Walk[None]:
        if tenant.tenant_id not in self.all():
            found: Found = yield from self._belongings.find(tenant.tenant_id)
            if found:
                words = (
                    f"names of the tenant 'default' that begin with '{tenant.tenant_id}~' would be its: {said(found)}"
                )
                raise Refused(Code.DUPLICATE_RESOURCE, words)
        yield from self._command(CreateTenant(tenant))

    def change(self, command: ChangeTenant, on_reply: OnReply[None]) -> None:
        walk(self._command(command), on_reply)

    def find(self, tenant_id: str, on_reply: OnReply[Found]) -> None:
        """All that a tenant has: a few names of each kind."""
        walk(self._belongings.find(tenant_id), on_reply)

    def stored_bytes(self, tenant_id: str) -> int:
        """Where this node leads."""
        return sum(map(self._stored_bytes, self._belongings.topics(tenant_id)))

    def check_due(self, topic: str, due_ms: int) -> None:
        """InvalidWish: a message of this topic may not wait until then."""
        self.rooms.check_due(topic, due_ms, self._clock.now_ms())

    def usage(self, tenant_id: str, on_usage: Callable[[Usage | GoQueueError], None]) -> None:
        """Of what is spread over the nodes of a cluster, as those say that answer."""

        def told(tallies: Mapping[int, Tally]) -> None:
            stored = self.stored_bytes(tenant_id) + sum(each.stored.get(tenant_id, 0) for each in tallies.values())
            try:
                groups = self._group_counts.names(tenant_id).union(*(each.groups for each in tallies.values()))
            except GoQueueError as error:
                on_usage(error)
            else:
                connections = sum(each.connections.get(tenant_id, 0) for each in tallies.values())
                on_usage(self._usage(tenant_id, stored, len(groups), connections + self.seats.taken(tenant_id)))

        if self.others is None:
            told({})
        else:
            self.others.ask((tenant_id,), told, with_groups=True)

    def _usage(self, tenant_id: str, stored_bytes: int, groups: int, connections: int) -> Usage:
        topics, image = self._belongings.topics(tenant_id), self._store.access
        return Usage(
            topics=len(topics),
            partitions=sum(topics.values()),
            stored_bytes=stored_bytes,
            groups=groups,
            connections=connections,
            users=sum(1 for name in image.users if name.startswith(full(tenant_id, ""))),
            keys=sum(1 for each in image.keys.values() if each.tenant == tenant_id),
        )

    def delete(self, tenant_id: str, on_reply: OnReply[None]) -> None:
        """With all that it has. Answered once that is certain; it is gone when `all` does not have it any more."""
        self.change(ChangeTenant(tenant_id, status=TenantStatus.DELETING), on_reply)

    def _command(self, command: CreateTenant | ChangeTenant | ForgetTenant) -> Walk[None]:
        result: AccountResult = yield lambda done: self._store.submit(command, done)
        if result.code:
            raise Refused(result.code, result.message)

    # -- taking apart

    def start(self) -> None:
        """All coordinators of this node are there: finish what was begun."""
        self._renew_limits()
        self._look()

    def _renew_limits(self) -> None:
        self.rooms.renew(self.all())
        self.seats.renew(self.all())
        self.turns.renew(self.all())
        if self.others is not None and not self._is_stopped:
            self.rooms.told_bytes = self.others.stored_bytes
            self.others.start()

    def stop(self) -> None:
        """Nothing is begun after this. Stopping twice is fine."""
        self._is_stopped = True
        if self.others is not None:
            self.others.stop()
        if self._timer is not None:
            self._timer.cancel()

    def _changed(self) -> None:
        if self._seen is not self._store.access:
            self._seen = self._store.access
            self._renew_limits()
            self._clock.call_soon(self._look)

    def _look(self) -> None:
        if self._timer is not None:  # a change comes between two looks
            self._timer.cancel()
            self._timer = None
        deleting = [each for each in self.all().values() if each.status is TenantStatus.DELETING]
        if self._is_stopped or not deleting:
            return
        for tenant in deleting if self._is_mine() else ():
            if tenant.tenant_id not in self._going:
                self._going[tenant.tenant_id] = None
                walk(self._take_apart(tenant.tenant_id), lambda end, name=tenant.tenant_id: self._ended(name, end))  # type: ignore[misc]
        self._later()

    def _take_apart(self, tenant_id: str) -> Walk[None]:
        is_empty = yield from self._belongings.forget(tenant_id)
        if is_empty:
            yield from self._command(ForgetTenant(tenant_id))
            events.info("tenant deleted", tenant=tenant_id)

    def _ended(self, tenant_id: str, end: Any) -> None:
        self._going.pop(tenant_id, None)
        is_failed = isinstance(end, GoQueueError)
        self._failures = self._failures + 1 if is_failed else 0
        if is_failed:
            events.warning("tenant not deleted yet", tenant=tenant_id, reason=str(end))

    def _later(self) -> None:
        if self._timer is None and not self._is_stopped:
            pause_ms = min(AGAIN_MS << min(self._failures, 10), AGAIN_MS_MAX)
            self._timer = self._clock.call_after(pause_ms, self._look)


def said(found: Found) -> str:
    return "; ".join(f"{what} {', '.join(names)}" for what, names in found.items())
