"""Quotas as they are charged: a bucket of tokens for whoever a limit is for. Nothing is refused before it is used up,
and what was used beyond it is a debt, which the client has to wait for.

A bucket may go below zero by one request: else one that is larger than what fits in would never pass.
"""

import math
from collections.abc import Callable, Mapping

from goqueue.model.accounts import AccessImage
from goqueue.model.quotas import REQUESTS, Quota, QuotaExceeded, QuotaKey, limit_of

DELAY_MS_MAX = 30_000
"""A client is not told to wait for longer, nor kept waiting. What it owes beyond that stays."""
BURST_S = 1.0
KEPT_MAX = 10_000
"""Clients, and buckets: each chooses its own client id, so they could fill any room."""


class TokenBucket:
    """So many a second; what was not used lately may be used at once, for one second."""

    __slots__ = ("_left", "_seen_s", "rate")

    def __init__(self, rate: float, now_s: float) -> None:
        self.rate = rate
        self._left = rate * BURST_S
        self._seen_s = now_s

    def take(self, amount: float, now_s: float) -> int:
        """How many milliseconds to wait before the next: 0, unless more was taken than there was."""
        passed_s = now_s - self._seen_s
        if passed_s > 0:  # a clock that goes backwards adds nothing
            self._left = min(self.rate * BURST_S, self._left + passed_s * self.rate)
        self._seen_s = now_s
        self._left -= amount
        return 0 if self._left >= 0 else min(DELAY_MS_MAX, math.ceil(-self._left * 1000 / self.rate))


class Allowance:
    """What holds for one client id of one user."""

    __slots__ = ("_buckets", "_now_s", "_on_throttled")

    def __init__(
        self,
        buckets: Mapping[QuotaKey, TokenBucket],
        now_s: Callable[[], float],
        on_throttled: Callable[[QuotaKey, int], None],
    ) -> None:
        self._buckets = buckets
        self._now_s = now_s
        self._on_throttled = on_throttled

    def take(self, key: QuotaKey, amount: float) -> int:
        """For how many milliseconds the client has to wait."""
        delay_ms = self.use(key, amount)
        if delay_ms:
            self._on_throttled(key, delay_ms)
        return delay_ms

    def use(self, key: QuotaKey, amount: float) -> int:
        """The same of what nobody is told of, as long as no other request comes."""
        bucket = self._buckets.get(key)
        return 0 if bucket is None else bucket.take(amount, self._now_s())

    def at_once(self, key: QuotaKey, amount: int) -> int:
        """So much, or what is given in a second if that is less."""
        bucket = self._buckets.get(key)
        return amount if bucket is None else min(amount, max(1, int(bucket.rate * BURST_S)))

    def owed_ms(self, key: QuotaKey) -> int:
        """How long until what was used up is there again."""
        return self.use(key, 0)

    def admit(self, key: QuotaKey | None) -> None:
        """One request, where a client can be told to come back: QuotaExceeded if this, or their number, is used up."""
        for each in (REQUESTS,) if key is None else (REQUESTS, key):
            owed_ms = self.owed_ms(each)
            if owed_ms:
                self._on_throttled(each, owed_ms)
                raise QuotaExceeded(each, self._buckets[each].rate, owed_ms)
        self.use(REQUESTS, 1)


class Quotas:
    """Of all clients of this node."""

    def __init__(self, now_s: Callable[[], float], on_throttled: Callable[[QuotaKey, int], None]) -> None:
        """`on_throttled` is told of whom, and for how many milliseconds."""
        self._now_s = now_s
        self._on_throttled = on_throttled
        self._quotas: Mapping[str, Quota] = {}
        self._allowances: dict[tuple[str, str], Allowance | None] = {}
        self._buckets: dict[tuple[QuotaKey, tuple[str, str]], TokenBucket] = {}
        """By what is limited, and for whom."""

    @property
    def are_set(self) -> bool:
        return bool(self._quotas)

    def renew(self, image: AccessImage) -> None:
        """Whoever owes something begins anew, if any quota was changed."""
        if image.quotas == self._quotas:
            return
        self._quotas = image.quotas
        self._allowances.clear()
        self._buckets.clear()

    def of(self, user: str, client_id: str) -> Allowance | None:
        """None: nothing is limited."""
        if not self._quotas:
            return None
        key = user, client_id
        if key not in self._allowances:
            if len(self._allowances) >= KEPT_MAX:
                del self._allowances[next(iter(self._allowances))]
            self._allowances[key] = self._made(user, client_id)
        return self._allowances[key]

    def _made(self, user: str, client_id: str) -> Allowance | None:
        found: dict[QuotaKey, TokenBucket] = {}
        for key in QuotaKey:
            limit = limit_of(self._quotas, key, user, client_id)
            if limit is not None:
                found[key] = self._bucket(key, *limit)
        return Allowance(found, self._now_s, self._on_throttled) if found else None

    def _bucket(self, key: QuotaKey, rate: float, owner: tuple[str, str]) -> TokenBucket:
        bucket = self._buckets.get((key, owner))
        if bucket is None:
            if len(self._buckets) >= KEPT_MAX:
                del self._buckets[next(iter(self._buckets))]
            bucket = self._buckets[key, owner] = TokenBucket(rate, self._now_s())
        return bucket
