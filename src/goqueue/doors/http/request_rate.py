"""A limit on requests per second, for all clients together: a bucket that fills as time goes by."""

from collections.abc import Callable

from goqueue.doors.http.asgi import Header


class RequestRate:
    def __init__(self, now_ms: Callable[[], int], requests_per_second_max: int) -> None:
        self._now_ms = now_ms
        self._most = requests_per_second_max
        self._left = float(requests_per_second_max)
        self._seen_ms = now_ms()

    def take(self) -> tuple[Header, ...] | None:
        """None: go on. Otherwise what to tell the client beside the refusal."""
        now_ms = self._now_ms()
        self._left = min(self._most, self._left + (now_ms - self._seen_ms) * self._most / 1000)
        self._seen_ms = now_ms
        if self._left >= 1:
            self._left -= 1
            return None
        return (b"retry-after", b"1"), (b"x-ratelimit-limit", b"%d" % self._most), (b"x-ratelimit-remaining", b"0")
