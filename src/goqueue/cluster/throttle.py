"""A token bucket: how much may be copied in a second by those that catch up."""

BURST_S = 0.1


class Throttle:
    def __init__(self, bytes_per_s: int) -> None:
        self.bytes_per_s = bytes_per_s
        self._owed = 0.0
        """Bytes that were spent beyond what has been earned."""
        self._at_s = 0.0

    def spend(self, size: int, now_s: float) -> None:
        self._earn(now_s)
        self._owed += size

    def wait_ms(self, now_s: float) -> float:
        """0: go on; else a millisecond at least."""
        self._earn(now_s)
        beyond = self._owed - self.bytes_per_s * BURST_S
        return max(1.0, beyond / self.bytes_per_s * 1000) if beyond > 0 else 0.0

    def _earn(self, now_s: float) -> None:
        self._owed = max(0.0, self._owed - (now_s - self._at_s) * self.bytes_per_s)
        self._at_s = now_s
