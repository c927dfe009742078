"""A thread that renews the session of a real node, on a connection of its own: neither a busy event loop nor a long
listing holds it up.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Protocol

from goqueue.cluster.etcd.endpoints import Endpoints, EtcdOptions
from goqueue.cluster.etcd.messages import RENEW
from goqueue.cluster.etcd.port import EtcdFault
from goqueue.cluster.session import RENEW_MS, RETRY_MS, Session

DEADLINE_S = 0.7
"""Of one renewal: a member that stands still leaves time to ask another one."""


def boot_time_s() -> float:
    """Seconds since the machine was started; they go on while it is suspended, where the system can tell."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Renewals(Protocol):
    """A connection of the thread's own to whatever keeps the lease."""

    def renew(self, lease: int) -> int:
        """For how many seconds; 0: it is over. EtcdFault: nobody knows."""

    def close(self) -> None: ...


class EtcdRenewals:
    def __init__(self, options: EtcdOptions) -> None:
        self._endpoints = Endpoints(options)

    def renew(self, lease: int) -> int:
        ttl_s: int = self._endpoints.ask(RENEW, RENEW.request(ID=lease), deadline_s=DEADLINE_S).TTL
        return ttl_s

    def close(self) -> None:
        self._endpoints.close()


class ThreadRenewer:
    """For the loop that it was made in."""

    def __init__(self, connect: Callable[[], Renewals]) -> None:
        self._connect = connect
        self._loop = asyncio.get_running_loop()
        self._over: threading.Event | None = None

    def start(self, session: Session, lease: int) -> None:
        self.stop()
        self._over = over = threading.Event()
        threading.Thread(target=self._run, args=(session, lease, over), name="session", daemon=True).start()

    def stop(self) -> None:
        if self._over is not None:
            self._over.set()
            self._over = None

    def _run(self, session: Session, lease: int, over: threading.Event) -> None:
        renewals = self._connect()
        try:
            pause_ms = RENEW_MS
            while not over.wait(pause_ms / 1000):
                # A stuck loop serves nobody: let others take its place.
                pause_ms = RETRY_MS if session.is_loop_stuck() else self._renew(renewals, session, lease, over)
        finally:
            renewals.close()

    def _renew(self, renewals: Renewals, session: Session, lease: int, over: threading.Event) -> int:
        """For how long to wait then."""
        sent_s = session.now_s()
        try:
            ttl_s = renewals.renew(lease)
        except EtcdFault:
            return RETRY_MS
        if ttl_s > 0:
            session.renewed(lease, sent_s)
        elif not over.is_set():
            over.set()
            try:
                self._loop.call_soon_threadsafe(session.lost, lease)
            except RuntimeError:
                return 0  # the loop has ended: there is nobody to tell
        return RENEW_MS
