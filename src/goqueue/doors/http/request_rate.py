"""A limit on requests per second, for all clients together: a bucket that fills as time goes by."""

from collections.abc import Callable

from goqueue.doors.http.asgi import Header


class RequestRate:
    def __init__(self, now_s: Callable[[], float], requests_per_second_max: int) -> None:
        self._now_s = now_s
        self._most = requests_per_second_max
        self._left = float(requests_per_second_max)
        self._seen_s = now_s()

    def take(self) -> tuple[Header, ...] | None:
        """None: go on. Otherwise what to tell the client beside the refusal."""
        now_s = self._now_s()
        self._left = min(self._most, self._left + (now_s - self._seen_s) * self._most)
        self._seen_s = now_s
        if self._left >= 1:
            self._left -= 1
            return None
        return (b"retry-after", b"1"), (b"x-ratelimit-limit", b"%d" % self._most), (b"x-ratelimit-remaining", b"0")
