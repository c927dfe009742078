"""What a tenant may still publish, as far as its quotas limit that: how large a message is, how long it waits, and how
much is stored. Whoever publishes asks here, through whichever API it came, at the leader of the partition.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from goqueue.broker.delays.schedules import Delayed
from goqueue.model.codes import Code
from goqueue.model.errors import InvalidWish
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import HOUR_MS, MARK, Tenant, TenantLimit, tenant_said

COUNTED_S = 1.0
"""What retention and deletes have freed is seen after so long; what is published counts at once."""
ROOM_LIMITS = frozenset({TenantLimit.STORAGE_BYTES, TenantLimit.MESSAGE_BYTES, TenantLimit.DELAY_HOURS})


class Room:
    """Of one tenant, on this node."""

    __slots__ = (
        "_count",
        "_counted_s",
        "_delay_hours",
        "_now_s",
        "_storage_max",
        "_stored",
        "_told",
        "message_bytes_max",
    )

    def __init__(
        self, tenant: Tenant, count: Callable[[], int], told: Callable[[], int], now_s: Callable[[], float]
    ) -> None:
        """`count`: what is stored in partitions that this node leads. `told`: what other nodes say of theirs."""
        quotas = tenant.quotas
        self.message_bytes_max = quotas.get(TenantLimit.MESSAGE_BYTES)
        self._delay_hours = quotas.get(TenantLimit.DELAY_HOURS)
        self._storage_max = quotas.get(TenantLimit.STORAGE_BYTES)
        self._count = count
        self._told = told
        self._now_s = now_s
        self._counted_s = -math.inf
        self._stored = 0

    def may_pass(self, size: int) -> bool:
        """No message in a batch of so many bytes can be too large."""
        return self.message_bytes_max is None or size <= self.message_bytes_max

    def takes(self, size: int) -> bool:
        """Whether a batch of so many bytes is stored as it is. False: `admit` says why not."""
        is_taken = self.may_pass(size) and (self._storage_max is None or self._total() + size <= self._storage_max)
        self._stored += size if is_taken else 0
        return is_taken

    def admit(self, size: int) -> bool:
        """A batch of so many bytes. False: somebody has to look how large its messages are."""
        limit = self._storage_max
        if limit is not None and self._total() + size > limit:
            words = f"the quota {TenantLimit.STORAGE_BYTES} of the tenant is {limit}, and {self._total()} are stored"
            raise Refused(Code.POLICY_VIOLATION, words)
        self._stored += size
        return self.may_pass(size)

    def _total(self) -> int:
        now_s = self._now_s()
        if now_s - self._counted_s >= COUNTED_S:
            self._counted_s, self._stored = now_s, self._count()
        return self._stored + self._told()

    def check_delays(self, base_offset: int, delayed: Sequence[Delayed], now_ms: int) -> None:
        """InvalidWish: some may not wait as long."""
        hours = self._delay_hours
        if hours is None:
            return
        late = [each for each in delayed if each.due_ms - now_ms > hours * HOUR_MS]
        if late:
            error = InvalidWish(_too_late(hours, late[0].due_ms - now_ms))
            error.faults = {each.record.offset - base_offset: _too_late(hours, each.due_ms - now_ms) for each in late}
            raise error

    def check_due(self, due_ms: int, now_ms: int) -> None:
        if self._delay_hours is not None and due_ms - now_ms > self._delay_hours * HOUR_MS:
            raise InvalidWish(_too_late(self._delay_hours, due_ms - now_ms))


def _too_late(hours: int, delay_ms: int) -> str:
    return (
        f"the quota {TenantLimit.DELAY_HOURS} of the tenant is {hours}, which is {hours * HOUR_MS} ms; "
        f"the delay is {delay_ms} ms"
    )


class Rooms:
    def __init__(self, stored_bytes: Callable[[str], int], now_s: Callable[[], float]) -> None:
        """`stored_bytes`: of a tenant, in partitions that this node leads."""
        self._stored_bytes = stored_bytes
        self._now_s = now_s
        self._seen: Mapping[str, Tenant] = {}
        self._rooms: dict[str, Room] = {}
        self.told_bytes: Callable[[str], int] = lambda tenant_id: 0
        """In a cluster: what other nodes store of a tenant, as they said last."""

    def renew(self, tenants: Mapping[str, Tenant]) -> None:
        if tenants is self._seen:
            return
        self._seen = tenants
        self._rooms = {
            name: Room(
                each,
                lambda name=name: self._stored_bytes(name),  # type: ignore[misc]
                lambda name=name: self.told_bytes(name),  # type: ignore[misc]
                self._now_s,
            )
            for name, each in tenants.items()
            if ROOM_LIMITS & each.quotas.keys()
        }

    def of(self, topic: str) -> Room | None:
        """Of the tenant of a topic; None: nothing is limited."""
        return self._rooms.get(tenant_said(topic)) if self._rooms and MARK in topic else None

    def check_due(self, topic: str, due_ms: int, now_ms: int) -> None:
        """InvalidWish: a message of this topic may not wait until then."""
        room = self.of(topic)
        if room is not None:
            room.check_due(due_ms, now_ms)
