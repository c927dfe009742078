"""A node that is most likely dead is declared so, before its session ends by itself. That is safe whatever the truth:
if it lives, it has lost a session and gets another. But one link with a rejecting firewall must not depose a healthy
node again and again.
"""

from collections.abc import Callable

from goqueue.model.placements import NodeInfo
from goqueue.runtime.clock import Clock
from goqueue.telemetry.logs import get_logger

AGAIN_S = 10.0
"""Between two declarations for one node."""

events = get_logger("cluster")

Revoke = Callable[[int, Callable[[object], None]], None]


class Deaths:
    def __init__(
        self, revoke: Revoke, find: Callable[[int], NodeInfo | None], session_holds: Callable[[], bool], clock: Clock
    ) -> None:
        """`revoke`: ends a lease. `find`: a node that is alive, by its id. `session_holds`: of this node."""
        self._revoke = revoke
        self._find = find
        self._session_holds = session_holds
        self._clock = clock
        self._declared: dict[int, tuple[float, int]] = {}
        """By node: when, and the start of which process."""
        self.count = 0

    def suspect(self, node: NodeInfo) -> None:
        """Its connection was reset, and it refused two dials since."""
        known = self._find(node.node_id)
        if known is None or known.incarnation != node.incarnation or not self._session_holds():
            return
        now_s = self._clock.monotonic_s()
        at_s, started_ms = self._declared.get(node.node_id, (-AGAIN_S, -1))
        if now_s - at_s < AGAIN_S or started_ms == known.started_ms:
            return
        self._declared[node.node_id] = now_s, known.started_ms
        self.count += 1
        events.warning("node declared dead", node=node.node_id, incarnation=node.incarnation)
        # Not the key alone: renewals would succeed, and it would think itself alive until its watch told it.
        self._revoke(known.lease, lambda fault: None)
