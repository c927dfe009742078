"""What clients sent that makes no sense is logged, within reason: a babbler must not fill the disk."""

from goqueue.doors.kafka.surroundings import Clock
from goqueue.telemetry.logs import Logger

PER_MINUTE = 10


class Complaints:
    def __init__(self, clock: Clock, events: Logger) -> None:
        self._clock = clock
        self._events = events
        self._logged = 0

    def log(self, peer: str, why: str) -> None:
        if self._logged < PER_MINUTE:
            if not self._logged:
                self._clock.call_after(60_000, self._forget)
            self._logged += 1
            self._events.warning("bad request", peer=peer, reason=why)

    def _forget(self) -> None:
        self._logged = 0
