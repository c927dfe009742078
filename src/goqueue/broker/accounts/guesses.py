"""Who guesses is slowed down: by address and name together, since a limit by name alone would let strangers lock users
out.
"""

import ipaddress
from collections.abc import Callable

FAILURES_MAX = 10
"""At once; then one a second."""
BUCKETS_MAX = 4096


class Guesses:
    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._failures: dict[tuple[str, str], tuple[float, float]] = {}
        """How many, and when that was counted."""

    def may(self, host: str, name: str) -> bool:
        return self._count(_key(host, name)) < FAILURES_MAX

    def failed(self, host: str, name: str) -> None:
        key = _key(host, name)
        count = self._count(key) + 1
        self._failures.pop(key, None)
        if len(self._failures) >= BUCKETS_MAX:
            del self._failures[next(iter(self._failures))]  # the oldest
        self._failures[key] = count, self._now_s()

    def _count(self, key: tuple[str, str]) -> float:
        count, at_s = self._failures.get(key, (0.0, 0.0))
        return max(0.0, count - max(0.0, self._now_s() - at_s)) if count else 0.0


def _key(host: str, name: str) -> tuple[str, str]:
    """A customer has a /64 of IPv6, and as many addresses as they like."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host, name
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False)), name
    return host, name
