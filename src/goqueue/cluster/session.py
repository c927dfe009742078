"""The session of a node: others take it for alive while its lease in etcd is renewed, and it may say of itself that
nobody has taken its place only as long as they must. So it counts from when a renewal was *sent*, since etcd may have
done it any time after that, and gives itself two thirds of the lease.

A busy event loop must not lose the session, and one that is stuck must: whoever renews does it outside of the loop, and
asks first whether that has been heard of lately. A node that starts has a session before it has opened its logs.
"""

from collections.abc import Callable
from typing import Protocol

from goqueue.cluster.etcd.port import Etcd, EtcdFault
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.logs import get_logger

events = get_logger("cluster")

RENEW_MS = 700
RETRY_MS = 250
"""After a renewal that failed."""
HEARTBEAT_MS = 500
LOOP_SILENT_S_MAX = 1.5
"""With the lease behind it, and half a second in which etcd looks at leases, others lead within 5 s."""
VALID_SHARE = 2 / 3


class Renewer(Protocol):
    """Renews a lease again and again: a thread in a real node, the loop in a simulation."""

    def start(self, session: "Session", lease: int) -> None: ...

    def stop(self) -> None:
        """Nothing is renewed any more; one that is under way may still arrive."""


class Session:
    def __init__(self, clock: Clock, now_s: Callable[[], float], ttl_s: int, renewer: Renewer) -> None:
        """`now_s` counts while the machine is suspended too: etcd does not wait for it."""
        self.on_lost: Callable[[], None] = lambda: None
        """Called in the loop when etcd says that the lease is over."""
        self.ttl_s = ttl_s
        self.lease = 0
        """0: there is no session."""
        self._clock = clock
        self._now_s = now_s
        self._renewer = renewer
        self._valid_until_s = 0.0
        self._renewed_s = 0.0
        """When the last renewal that etcd did was sent."""
        self._heard_s = 0.0
        """When the loop was last known to run."""
        self._is_serving = False
        self._timer: Timer | None = None

    def now_s(self) -> float:
        return self._now_s()

    def begin(self, lease: int, sent_s: float) -> None:
        """`sent_s`: when this lease was asked for, by `now_s`."""
        self.end()
        self.lease = lease
        self._valid_until_s = sent_s + self.ttl_s * VALID_SHARE
        self._renewed_s = sent_s
        self._beat()
        self._renewer.start(self, lease)

    def end(self) -> None:
        """It is over, or is to be: from here on it is not valid and nobody renews it."""
        if self.lease:
            self._renewer.stop()
        self.lease = 0
        self._valid_until_s = 0.0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def serve(self) -> None:
        """From now on the loop has to run: before, it opens logs, for seconds where there are many, and leads none."""
        self._heard_s = self._now_s()
        self._is_serving = True

    def is_valid(self) -> bool:
        """Nobody can have taken this node's place."""
        return self._now_s() < self._valid_until_s

    def age_s(self) -> float:
        """Since etcd was last heard of by it; 0 while it is valid. A watch alone may be that of an etcd without its
        majority, which has nothing new to tell."""
        return 0.0 if self.is_valid() else self._now_s() - self._renewed_s

    def _beat(self) -> None:
        self._heard_s = self._now_s()
        self._timer = self._clock.call_after(HEARTBEAT_MS, self._beat)

    # -- for whoever renews, in whatever thread

    def is_loop_stuck(self) -> bool:
        return self._is_serving and self._now_s() - self._heard_s > LOOP_SILENT_S_MAX

    def renewed(self, lease: int, sent_s: float) -> None:
        if lease == self.lease:
            self._valid_until_s = max(self._valid_until_s, sent_s + self.ttl_s * VALID_SHARE)
            self._renewed_s = max(self._renewed_s, sent_s)

    # -- for whoever renews, in the loop

    def lost(self, lease: int) -> None:
        """etcd knows of no such lease."""
        if lease != self.lease:
            return
        events.warning("session lost", lease=lease)
        self.end()
        self.on_lost()


class LoopRenewer:
    """Renews in the loop itself, for a simulation: time passes nowhere else there."""

    def __init__(self, etcd: Etcd, clock: Clock) -> None:
        self._etcd = etcd
        self._clock = clock
        self._timer: Timer | None = None
        self._round = 0

    def start(self, session: Session, lease: int) -> None:
        self.stop()
        self._later(RENEW_MS, session, lease)

    def stop(self) -> None:
        self._round += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _later(self, delay_ms: int, session: Session, lease: int) -> None:
        self._timer = self._clock.call_after(delay_ms, lambda: self._renew(session, lease))

    def _renew(self, session: Session, lease: int) -> None:
        number, sent_s = self._round, session.now_s()

        def done(ttl_s: int | EtcdFault) -> None:
            if number != self._round:
                return
            if isinstance(ttl_s, EtcdFault):
                self._later(RETRY_MS, session, lease)
            elif ttl_s == 0:
                session.lost(lease)
            else:
                session.renewed(lease, sent_s)
                self._later(RENEW_MS, session, lease)

        self._etcd.renew(lease, done)
