"""Quotas as they are charged: a bucket of tokens for whoever a limit is for. Nothing is refused before it is used up,
and what was used beyond it is a debt, which the client has to wait for.

A bucket may go below zero by one request: else one that is larger than what fits in would never pass.
"""

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias
from weakref import WeakValueDictionary

from goqueue.model.accounts import AccessImage
from goqueue.model.quotas import (
    CONNECTIONS,
    CONSUMED,
    MUTATIONS,
    PRODUCED,
    REQUESTS,
    TIME,
    Quota,
    QuotaExceeded,
    QuotaKey,
    address_limit,
    limit_of,
    plain_address,
)
from goqueue.model.tenancy import DEFAULT_TENANT, TenantLimit

DELAY_MS_MAX = 30_000
"""A client is not told to wait for longer, nor kept waiting. What it owes beyond that stays."""
BURST_S = 1.0
BURSTS_S: Mapping[str, float] = {MUTATIONS: 11.0}
"""Topics are made by scripts, many at once and then none for days. So much is Kafka's default."""
Rate: TypeAlias = QuotaKey | TenantLimit
RATES: Mapping[str, Rate] = {
    TenantLimit.PUBLISH_BYTES_RATE: PRODUCED,
    TenantLimit.CONSUME_BYTES_RATE: CONSUMED,
    TenantLimit.PUBLISH_RATE: TenantLimit.PUBLISH_RATE,
    TenantLimit.CONSUME_RATE: TenantLimit.CONSUME_RATE,
    TenantLimit.MUTATION_RATE: MUTATIONS,
}
"""Of tenants: what is charged beside the quotas of users and clients."""
MESSAGES: Mapping[QuotaKey, TenantLimit] = {PRODUCED: TenantLimit.PUBLISH_RATE, CONSUMED: TenantLimit.CONSUME_RATE}
"""What counts the messages whose bytes are counted."""
PERCENT = 100
KEPT_MAX = 10_000
"""Clients, and buckets: each chooses its own client id, so they could fill any room."""


class TokenBucket:
    """So many a second; what was not used lately may be used at once, for one second or as long as `burst_s` says."""

    __slots__ = ("__weakref__", "_left", "_most", "_seen_s", "rate")

    def __init__(self, rate: float, now_s: float, burst_s: float = BURST_S, *, is_empty: bool = False) -> None:
        self.rate = rate
        self._most = rate * burst_s
        self._left = 0.0 if is_empty else self._most
        self._seen_s = now_s

    def is_full(self, now_s: float) -> bool:
        """It is as a new one would be."""
        return self._left + (now_s - self._seen_s) * self.rate >= self._most

    def take(self, amount: float, now_s: float) -> int:
        """How many milliseconds to wait before the next: 0, unless more was taken than there was."""
        passed_s = now_s - self._seen_s
        if passed_s > 0:  # a clock that goes backwards adds nothing
            self._left = min(self._most, self._left + passed_s * self.rate)
        self._seen_s = now_s
        self._left -= amount
        return 0 if self._left >= 0 else min(DELAY_MS_MAX, math.ceil(-self._left * 1000 / self.rate))


class SharedBucket:
    """What one takes from its own bucket is taken from that of its tenant, too. The longer wait counts."""

    __slots__ = ("_buckets", "rate")

    def __init__(self, *buckets: TokenBucket) -> None:
        self._buckets = buckets
        self.rate = min(each.rate for each in buckets)

    def take(self, amount: float, now_s: float) -> int:
        return max([each.take(amount, now_s) for each in self._buckets])


Bucket = TokenBucket | SharedBucket


class Allowance:
    """What holds for one client id of one user."""

    __slots__ = ("_buckets", "_now_s", "_on_throttled")

    def __init__(
        self,
        buckets: Mapping[Rate, Bucket],
        now_s: Callable[[], float],
        on_throttled: Callable[[str, int], None],
    ) -> None:
        self._buckets = buckets
        self._now_s = now_s
        self._on_throttled = on_throttled

    @property
    def measures_time(self) -> bool:
        return TIME in self._buckets

    @property
    def limits_mutations(self) -> bool:
        return MUTATIONS in self._buckets

    def counts(self, key: QuotaKey) -> bool:
        """Messages that are published or read: their number is limited, beside their bytes."""
        return MESSAGES[key] in self._buckets

    def take(self, key: Rate, amount: float) -> int:
        """For how many milliseconds the client has to wait."""
        delay_ms = self.use(key, amount)
        if delay_ms:
            self._on_throttled(key, delay_ms)
        return delay_ms

    def use(self, key: Rate, amount: float) -> int:
        """The same of what nobody is told of, as long as no other request comes."""
        bucket = self._buckets.get(key)
        return 0 if bucket is None else bucket.take(amount, self._now_s())

    def at_once(self, key: QuotaKey, amount: int) -> int:
        """So much, or what is given in a second if that is less."""
        bucket = self._buckets.get(key)
        return amount if bucket is None else min(amount, max(1, int(bucket.rate * BURST_S)))

    def take_time(self, seconds: float) -> int:
        """Of the event loop."""
        return self.take(TIME, seconds * PERCENT) if TIME in self._buckets else 0

    def take_messages(self, key: QuotaKey, count: int) -> int:
        """So many were published or read. For how many milliseconds the client has to wait."""
        return self.take(MESSAGES[key], count)

    def owed_ms(self, key: QuotaKey) -> int:
        """How long until what was used up is there again: bytes or requests, and messages."""
        owed_ms = self.use(key, 0)
        return max(owed_ms, self.use(MESSAGES[key], 0)) if key in MESSAGES else owed_ms

    def admit(self, key: QuotaKey | None) -> None:
        """One request, where a client can be told to come back: QuotaExceeded if this, or their number, is used up."""
        keys: tuple[Rate, ...] = (REQUESTS, TIME) if key is None else (REQUESTS, TIME, key, MESSAGES[key])
        for each in keys:
            self.check(each)
        self.use(REQUESTS, 1)

    def check(self, key: Rate) -> None:
        """QuotaExceeded: it is used up."""
        owed_ms = self.use(key, 0)
        if owed_ms:
            self._on_throttled(key, owed_ms)
            raise QuotaExceeded(key, self._buckets[key].rate, owed_ms)


class Quotas:
    """Of all clients of this node."""

    def __init__(self, now_s: Callable[[], float], on_throttled: Callable[[str, int], None]) -> None:
        """`on_throttled` is told of whom, and for how many milliseconds."""
        self._now_s = now_s
        self._on_throttled = on_throttled
        self._quotas: Mapping[str, Quota] = {}
        self._tenants: Mapping[str, Mapping[str, int]] = {}
        self._allowances: dict[tuple[str, str, str], Allowance | None] = {}
        self._buckets: WeakValueDictionary[tuple[Rate, tuple[str, ...]], TokenBucket] = WeakValueDictionary()
        """By what is limited, and for whom: a user and a client, or a tenant. Whoever has one is found here, so that
        there are never two."""
        self._kept: dict[TokenBucket, None] = {}
        """Also while nobody has them: they may not be full."""
        self._swept_s = -math.inf
        self.are_set = False
        self._limits_addresses = False

    def renew(self, image: AccessImage) -> None:
        """Whoever owes something begins anew, if any quota was changed."""
        tenants = {name: each.quotas for name, each in image.tenants.items() if RATES.keys() & each.quotas.keys()}
        if image.quotas == self._quotas and tenants == self._tenants:
            return
        self._quotas, self._tenants = image.quotas, tenants
        of_addresses = [each for each in image.quotas.values() if each.ip is not None]
        self._limits_addresses = bool(of_addresses)
        self.are_set = len(of_addresses) < len(image.quotas) or bool(tenants)
        self._allowances.clear()
        self._buckets = WeakValueDictionary()
        self._kept.clear()

    def connect(self, host: str) -> int:
        """One more connection from there. 0: it may be; else none may before so many milliseconds. Those that are
        refused are not counted: whoever tries again and again would else never come in."""
        if not self._limits_addresses:
            return 0
        address = plain_address(host)
        rate = address_limit(self._quotas, address)
        if rate is None:
            return 0
        bucket, now_s = self._bucket(CONNECTIONS, rate, ("ip", "", address)), self._now_s()
        delay_ms = bucket.take(0, now_s)
        if delay_ms:
            self._on_throttled(CONNECTIONS, delay_ms)
            return delay_ms
        bucket.take(1, now_s)
        return 0

    def of(self, user: str, client_id: str, tenant: str = DEFAULT_TENANT) -> Allowance | None:
        """None: nothing is limited."""
        if not self.are_set:
            return None
        key = user, client_id, tenant
        if key not in self._allowances:
            if len(self._allowances) >= KEPT_MAX:
                del self._allowances[next(iter(self._allowances))]
            self._allowances[key] = self._made(user, client_id, tenant)
        return self._allowances[key]

    def _made(self, user: str, client_id: str, tenant: str) -> Allowance | None:
        found: dict[Rate, Bucket] = {}
        of_tenant = {RATES[name]: rate for name, rate in self._tenants.get(tenant, {}).items() if name in RATES}
        for key in (*QuotaKey, *MESSAGES.values()):
            limit = limit_of(self._quotas, key, user, client_id) if isinstance(key, QuotaKey) else None
            buckets = [] if limit is None else [self._bucket(key, *limit)]
            if key in of_tenant:
                buckets.append(self._bucket(key, of_tenant[key], (tenant,)))
            if buckets:
                found[key] = buckets[0] if len(buckets) == 1 else SharedBucket(*buckets)
        return Allowance(found, self._now_s, self._on_throttled) if found else None

    def _bucket(self, key: Rate, rate: float, owner: tuple[str, ...]) -> TokenBucket:
        bucket = self._buckets.get((key, owner))
        if bucket is None:
            has_room = len(self._kept) < KEPT_MAX or self._make_room()
            bucket = self._buckets[key, owner] = TokenBucket(
                rate, self._now_s(), BURSTS_S.get(key, BURST_S), is_empty=not has_room
            )
        self._kept.pop(bucket, None)
        self._kept[bucket] = None
        return bucket

    def _make_room(self) -> bool:
        """A bucket that is full may go, since a new one is the same. If there is none, the one that nobody has asked
        for the longest goes before its time; and a new one begins empty, else whoever is pushed out would have a burst
        for it."""
        now_s = self._now_s()
        if now_s - self._swept_s >= BURST_S:
            self._swept_s = now_s
            for bucket in [each for each in self._kept if each.is_full(now_s)]:
                del self._kept[bucket]
        if len(self._kept) < KEPT_MAX:
            return True
        del self._kept[next(iter(self._kept))]
        return False
