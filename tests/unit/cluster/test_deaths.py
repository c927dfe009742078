"""A node is declared dead by revoking its lease, and never too often."""

from collections.abc import Callable

from goqueue.cluster.deaths import Deaths
from goqueue.model.placements import NodeInfo
from goqueue.testing.virtual_clock import VirtualClock


class Parts:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.alive: dict[int, NodeInfo] = {}
        self.revoked: list[int] = []
        self.has_session = True
        self.deaths = Deaths(self._revoke, self.alive.get, lambda: self.has_session, self.clock)

    def _revoke(self, lease: int, on_done: Callable[[object], None]) -> None:
        self.revoked.append(lease)
        on_done(None)

    def live(self, incarnation: int, started_ms: int) -> NodeInfo:
        node = self.alive[2] = NodeInfo(2, incarnation, started_ms=started_ms, lease=incarnation * 10)
        return node


def test_the_lease_of_the_life_that_was_seen_to_end_is_revoked() -> None:
    parts = Parts()
    parts.deaths.suspect(parts.live(5, 1000))
    assert parts.revoked == [50]


def test_an_earlier_life_or_a_node_that_is_gone_is_nobody_to_declare_dead() -> None:
    parts = Parts()
    old = parts.live(5, 1000)
    parts.live(6, 2000)
    parts.deaths.suspect(old)
    parts.alive.clear()
    parts.deaths.suspect(old)
    assert parts.revoked == []


def test_who_has_no_session_declares_nobody_dead() -> None:
    parts = Parts()
    parts.has_session = False
    parts.deaths.suspect(parts.live(5, 1000))
    assert parts.revoked == []


def test_a_process_that_came_back_from_it_is_not_declared_dead_again_and_another_not_within_ten_seconds() -> None:
    parts = Parts()
    parts.deaths.suspect(parts.live(5, 1000))
    parts.clock.advance(60_000)
    parts.deaths.suspect(parts.live(6, 1000))
    assert parts.revoked == [50], "the same process has another session: it was alive"
    parts.deaths.suspect(parts.live(7, 2000))
    assert parts.revoked == [50, 70]
    parts.clock.advance(5_000)
    parts.deaths.suspect(parts.live(8, 3000))
    assert parts.revoked == [50, 70]
